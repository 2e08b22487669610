"""Lint rules about annotations of Cluster Autoscaler and AWS Node Termination Handler."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from cli.convert.fields.other_annotations import find_foreign_annotation
from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.remarks import FieldPath, format_path
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED

HonorSetting: TypeAlias = Literal["on", "off", ""]
"""The deployment's setting honor-cluster-autoscaler-annotations; "": unknown."""
HONOR_SETTING_NAME: Final = "honor-cluster-autoscaler-annotations"
_METADATA: Final = ("metadata", "annotations")
_PROTECTING_PATHS: Final[dict[str, dict[str, FieldPath]]] = {
    SAFE_TO_EVICT: {kind: (*path, *_METADATA) for kind, path in POD_PATH_BY_KIND.items()},
    SCALE_DOWN_DISABLED: {
        "Node": _METADATA,
        "NodeClaim": _METADATA,
        "NodePool": ("spec", "template", *_METADATA),
    },
}
"""By annotation and kind, the path of the annotations that a pod or node has or gets."""
_PROTECTED_OBJECTS: Final = {SAFE_TO_EVICT: "pods", SCALE_DOWN_DISABLED: "nodes"}
_UNPROTECTED_KIND: Final = "DaemonSet"


def lint_other_annotations(
    source_object: SourceObject, path: FieldPath, annotations: Mapping[str, Any], honor: HonorSetting
) -> Iterator[LintFinding]:
    """Report annotations of other autoscalers in the *annotations* at *path* that have no effect with *honor*."""
    for key, value in annotations.items():
        foreign = find_foreign_annotation(str(key), value)
        if foreign is None or foreign.replacement in annotations:
            continue
        if not isinstance(value, str):
            text = str(value).lower()
            message = f'must be a string: write it in quotes: "{text}"'
            yield build_finding(source_object, "error", (*path, key), message)
        message = (
            _explain_protection(source_object.value["kind"], path, str(key), honor)
            if foreign.replacement
            else f"has no effect on Joiner: {foreign.reason}"
        )
        if message:
            yield build_finding(source_object, "warning", (*path, key), message)


def _explain_protection(kind: str, path: FieldPath, key: str, honor: HonorSetting) -> str:
    """Return why the annotation *key*, which keeps a pod or node, has no effect; "" if it has one."""
    fix = f'write {DO_NOT_DISRUPT}: "true"'
    if key == SAFE_TO_EVICT and kind == _UNPROTECTED_KIND:
        return "has no effect on pods of a DaemonSet, which never keep a node: remove it"
    protecting_path = _PROTECTING_PATHS[key].get(kind)
    if protecting_path is None:
        return f"has no effect on a {kind}, only on {_PROTECTED_OBJECTS[key]}: move it there"
    if protecting_path != path:
        return f"has no effect here: {fix} in {format_path(protecting_path)}"
    if honor == "on":
        return ""
    if honor == "off":
        return f"has no effect on Joiner: {fix}, or set {HONOR_SETTING_NAME}: on"
    return f"has no effect on Joiner unless its setting {HONOR_SETTING_NAME} is on: {fix}, or set it"
