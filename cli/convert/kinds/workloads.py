"""Conversion of Karpenter's annotations and labels in Pods and in workloads; all other fields stay unchanged."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from cli.convert.fields.metadata import (
    V1_ANNOTATION_BY_OLD_ANNOTATION,
    V1_LABEL_BY_OLD_LABEL,
    convert_annotation_key,
    convert_label_key,
)
from cli.convert.fields.other_annotations import find_foreign_annotation
from cli.convert.reading.remarks import FieldPath, RemarkCollector
from shared.model.core.labels import DISRUPTED_TAINT

JsonObject = dict[str, Any]
_POD_TEMPLATE_PATH: Final = ("spec", "template")
POD_PATH_BY_KIND: Final[dict[str, FieldPath]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "Deployment": _POD_TEMPLATE_PATH,
    "ReplicaSet": _POD_TEMPLATE_PATH,
    "ReplicationController": _POD_TEMPLATE_PATH,
    "StatefulSet": _POD_TEMPLATE_PATH,
    "DaemonSet": _POD_TEMPLATE_PATH,
    "Job": _POD_TEMPLATE_PATH,
    "Rollout": _POD_TEMPLATE_PATH,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Path of the pod (template) in each kind."""
_OLD_LABELS: Final = ("karpenter.sh/provisioner-name", "node.k8s.aws/capacity-type")
_OLD_TAINT: Final = "karpenter.sh/disruption"
_KARPENTER_ANNOTATIONS: Final = frozenset((*V1_ANNOTATION_BY_OLD_ANNOTATION, *V1_ANNOTATION_BY_OLD_ANNOTATION.values()))


def convert_workload(value: JsonObject, remarks: RemarkCollector) -> JsonObject:
    """Return *value* with the current annotations and labels; *value* itself if nothing changes or it has no pod."""
    if value["kind"] not in POD_PATH_BY_KIND:
        for where, message in _find_old_names(value):
            remarks.add_warning(where, message)
        return value
    path = POD_PATH_BY_KIND[value["kind"]]
    if not isinstance(_get_value_at(value, path), dict):
        return value
    converted_value = deepcopy(value)
    pod = _get_value_at(converted_value, path)
    _convert_annotations(pod, path, remarks)
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _convert_node_selector(spec, (*path, "spec", "nodeSelector"), remarks)
        _convert_tolerations(spec, (*path, "spec", "tolerations"), remarks)
        for where, holder, key in _find_label_references(spec, (*path, "spec")):
            holder[key] = convert_label_key(holder[key], where, remarks)
    return value if converted_value == value else converted_value


def _find_old_names(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each obsolete Karpenter key in *value*, which is of a kind that is not converted."""
    for path, key in _find_old_keys(value, ()):
        current_name = V1_ANNOTATION_BY_OLD_ANNOTATION.get(key) or V1_LABEL_BY_OLD_LABEL[key]
        yield (
            path,
            f"{key} is called {current_name} now, and {value['kind']} is passed as it is: write the new name yourself",
        )


def _find_old_keys(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_old_keys(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in V1_ANNOTATION_BY_OLD_ANNOTATION or key in _OLD_LABELS:
                yield (*path, key), key
            yield from _find_old_keys(item, (*path, key))


def _get_value_at(value: Any, path: FieldPath) -> Any:  # noqa: ANN401 - JSON
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _convert_annotations(pod: JsonObject, path: FieldPath, remarks: RemarkCollector) -> None:
    meta = pod.get("metadata")
    old_annotations = meta.get("annotations") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(old_annotations, dict):
        return
    annotations_path = (*path, "metadata", "annotations")
    converted: JsonObject = {}
    for key, value in old_annotations.items():
        if (foreign := find_foreign_annotation(str(key), value)) is not None:
            if foreign.replacement and foreign.replacement not in old_annotations:
                converted[foreign.replacement] = "true"
                message = f'adds {foreign.replacement}: "true", which has the same meaning for Joiner'
            else:
                message = f"has no effect on Joiner: {foreign.reason}"
            remarks.add_change((*annotations_path, key), message)
        name = convert_annotation_key(str(key), (*annotations_path, key), remarks)
        if name in _KARPENTER_ANNOTATIONS and isinstance(value, bool):
            message = f'the API server accepts only strings, so it is quoted: "{str(value).lower()}"'
            remarks.add_change((*annotations_path, key), message)
            value = str(value).lower()  # noqa: PLW2901 - the same value, quoted
        converted[name] = value
    meta["annotations"] = converted


def _convert_node_selector(spec: JsonObject, path: FieldPath, remarks: RemarkCollector) -> None:
    node_selector = spec.get("nodeSelector")
    if isinstance(node_selector, dict) and not node_selector.keys().isdisjoint(V1_LABEL_BY_OLD_LABEL):
        spec["nodeSelector"] = {
            convert_label_key(key, (*path, key), remarks): value for key, value in node_selector.items()
        }


def _convert_tolerations(spec: JsonObject, path: FieldPath, remarks: RemarkCollector) -> None:
    """Convert tolerations of the old disruption taint to the current one."""
    tolerations = spec.get("tolerations")
    if not isinstance(tolerations, list):
        return
    for index, toleration in enumerate(tolerations):
        if isinstance(toleration, dict) and toleration.get("key") == _OLD_TAINT:
            remarks.add_change(
                (*path, index), f"the taint {_OLD_TAINT} is renamed to {DISRUPTED_TAINT}, without a value"
            )
            kept_fields = {key: value for key, value in toleration.items() if key not in ("value", "operator")}
            tolerations[index] = kept_fields | {"key": DISRUPTED_TAINT, "operator": "Exists"}


def _find_label_references(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any, str]]:  # noqa: ANN401 - JSON
    """Yield each reference to a node label: keys of affinity expressions and topology keys."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_label_references(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if (
                isinstance(item, str)
                and item in V1_LABEL_BY_OLD_LABEL
                and (key == "topologyKey" or (key == "key" and "operator" in value))
            ):
                yield (*path, key), value, key
            else:
                yield from _find_label_references(item, (*path, key))
