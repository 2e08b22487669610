"""Lint rules about Spot shares: annotations of NodePools and of pods."""

from collections.abc import Iterator
from typing import Any

from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.fixes import get_value_at
from cli.convert.reading.remarks import FieldPath, format_path
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import ON_DEMAND_BASE, SPOT_SHARE
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.spot_share import (
    SHARE_ANNOTATIONS,
    WORKLOAD_UNITS,
    allows_both_capacity_types,
    find_pool_share_problem,
    find_share_problem,
    find_spot_share,
)

_METADATA: FieldPath = ("metadata", "annotations")


def lint_node_pool_share(source_object: SourceObject, pool: NodePool) -> Iterator[LintFinding]:
    """Check the Spot share of *pool*: its values, and whether it has an effect."""
    problem = find_pool_share_problem(pool)
    if problem:
        key, _, message = problem.partition(": ")
        text = f"{message}; until it is fixed, no nodes are launched, and none are disrupted voluntarily"
        yield build_finding(source_object, "error", (*_METADATA, key), text)
        return
    set_keys = [key for key in SHARE_ANNOTATIONS if pool.meta.get_annotation(key)]
    if not set_keys:
        return
    message = ""
    if pool.replicas is not None:
        message = "has no effect on a static NodePool: remove it"
    elif not allows_both_capacity_types(pool):
        message = "has no effect: the NodePool must allow spot and on-demand: allow both, or remove it"
    elif find_spot_share(pool) is None:
        message = f"has no effect: 100 % may be Spot and the base is 0: set {SPOT_SHARE} or {ON_DEMAND_BASE}"
    if message:
        yield build_finding(source_object, "warning", (*_METADATA, set_keys[0]), message)


def lint_workload_share(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check the Spot share of the pods that an object is or creates."""
    kind = source_object.value["kind"]
    pod_path = POD_PATH_BY_KIND.get(kind)
    if pod_path is None:
        return
    path: FieldPath = (*pod_path, *_METADATA)
    keys, annotations = _find_share_annotations(source_object, path)
    if keys and kind == "DaemonSet":
        message = "has no effect on pods of a DaemonSet: remove it"
        yield build_finding(source_object, "warning", (*path, keys[0]), message)
    elif keys:
        meta = ObjectMeta(name="", annotations=build_pairs({key: str(annotations[key]) for key in keys}))
        key, _, message = find_share_problem(meta, WORKLOAD_UNITS).partition(": ")
        if message:
            text = f"{message}; until it is fixed, the pods get no nodes"
            yield build_finding(source_object, "error", (*path, key), text)
    if pod_path:
        for key in _find_share_annotations(source_object, _METADATA)[0][:1]:
            message = f"has no effect on a {kind}, only on its pods: move it to {format_path(path)}"
            yield build_finding(source_object, "warning", (*_METADATA, key), message)


def _find_share_annotations(source_object: SourceObject, path: FieldPath) -> tuple[list[str], dict[str, Any]]:
    """Return the keys of shares among the annotations at *path*, and all annotations."""
    annotations = get_value_at(source_object.value, path)
    if not isinstance(annotations, dict):
        return [], {}
    return [key for key in SHARE_ANNOTATIONS if annotations.get(key) not in (None, "")], annotations
