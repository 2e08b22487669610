"""Lint rules about gangs: annotations of the pods that an object is or creates."""

from collections.abc import Iterator
from typing import Final

from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.fixes import get_value_at
from cli.convert.reading.remarks import FieldPath, format_path
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import GANG, GANG_SIZE, GANG_TOPOLOGY
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.kubernetes.gangs.gang import find_gang_membership, find_topology_problem
from shared.model.kubernetes.pod import Pod, PodSpec

_METADATA: Final[FieldPath] = ("metadata",)
_OWN_ANNOTATIONS: Final = (GANG, GANG_SIZE, GANG_TOPOLOGY)


def lint_gang(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check the gang of the pods that an object is or creates."""
    pod_path = POD_PATH_BY_KIND.get(source_object.value["kind"])
    if pod_path is None:
        return
    path: FieldPath = (*pod_path, *_METADATA)
    meta = ObjectMeta(
        name="",
        labels=build_pairs(_read_texts(source_object, (*path, "labels"))),
        annotations=build_pairs(_read_texts(source_object, (*path, "annotations"))),
    )
    membership = find_gang_membership(Pod(meta=meta, spec=PodSpec()))
    problems = [membership.problem if membership is not None else "", find_topology_problem(meta)]
    for problem in problems:
        key, _, message = problem.partition(": ")
        if message:
            text = f"{message}; until it is fixed, the pods get no nodes if the setting gangs is on"
            yield build_finding(source_object, "error", (*path, "annotations", key), text)
    if membership is None and meta.get_annotation(GANG_SIZE) not in ("", "1"):
        message = f"has no effect: the pods are in no gang; add the annotation {GANG}"
        yield build_finding(source_object, "warning", (*path, "annotations", GANG_SIZE), message)
    if pod_path:
        own_keys = _read_texts(source_object, (*_METADATA, "annotations")).keys()
        for key in [name for name in _OWN_ANNOTATIONS if name in own_keys][:1]:
            kind = source_object.value["kind"]
            message = f"has no effect on a {kind}, only on its pods: move it to {format_path((*path, 'annotations'))}"
            yield build_finding(source_object, "warning", (*_METADATA, "annotations", key), message)


def _read_texts(source_object: SourceObject, path: FieldPath) -> dict[str, str]:
    """Return the labels or annotations at *path*; values that are no text are written as text."""
    values = get_value_at(source_object.value, path)
    return {str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {}
