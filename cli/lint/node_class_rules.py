"""Lint rules about annotations of an EC2NodeClass that are invalid or have no effect: canary, and pause of launches."""

from collections.abc import Iterator

from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import (
    CANARY,
    CANARY_APPROVED,
    CANARY_REJECTED,
    IMAGE_MINIMUM_AGE,
    LAUNCH_FAILURES,
    PAUSE_AFTER_FAILURES,
)
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.health.canary import parse_canary_settings
from shared.model.karpenter.health.launch_failures import find_history_problem, parse_failure_limit
from shared.model.karpenter.node_class import EC2NodeClass

NODE_CLASS_KEYS = (IMAGE_MINIMUM_AGE, CANARY, CANARY_APPROVED, CANARY_REJECTED, PAUSE_AFTER_FAILURES, LAUNCH_FAILURES)


def lint_node_class_annotations(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check the annotations of an EC2NodeClass on *source_object*."""
    metadata = source_object.value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    keys = [key for key in NODE_CLASS_KEYS if isinstance(annotations, dict) and key in annotations]
    if not keys or not isinstance(annotations, dict):
        return
    kind = source_object.value["kind"]
    if kind != "EC2NodeClass":
        message = f"has no effect on a {kind}, only on an EC2NodeClass: move it there"
        yield build_finding(source_object, "warning", ("metadata", "annotations", keys[0]), message)
        return
    pairs = build_pairs({key: str(annotations[key]) for key in keys})
    node_class = EC2NodeClass(meta=ObjectMeta(name="", annotations=pairs))
    for problem in (*parse_canary_settings(node_class).problems, *_list_pause_problems(node_class)):
        field, _, message = problem.partition("]: ")
        path = ("metadata", "annotations", field.removeprefix("metadata.annotations["))
        yield build_finding(source_object, "error", path, message)


def _list_pause_problems(node_class: EC2NodeClass) -> Iterator[str]:
    try:
        parse_failure_limit(node_class)
    except ValueError as error:
        yield str(error)
    if problem := find_history_problem(node_class):
        yield problem
