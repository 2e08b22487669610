"""Lint rules about the canary of an EC2NodeClass: invalid annotations, and annotations without an effect."""

from collections.abc import Iterator

from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import CANARY, CANARY_APPROVED, CANARY_REJECTED, IMAGE_MINIMUM_AGE
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.health.canary import parse_canary_settings
from shared.model.karpenter.node_class import EC2NodeClass

CANARY_KEYS = (IMAGE_MINIMUM_AGE, CANARY, CANARY_APPROVED, CANARY_REJECTED)


def lint_canary(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check the annotations of a canary on *source_object*."""
    metadata = source_object.value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    keys = [key for key in CANARY_KEYS if isinstance(annotations, dict) and key in annotations]
    if not keys or not isinstance(annotations, dict):
        return
    kind = source_object.value["kind"]
    if kind != "EC2NodeClass":
        message = f"has no effect on a {kind}, only on an EC2NodeClass: move it there"
        yield build_finding(source_object, "warning", ("metadata", "annotations", keys[0]), message)
        return
    pairs = build_pairs({key: str(annotations[key]) for key in keys})
    node_class = EC2NodeClass(meta=ObjectMeta(name="", annotations=pairs))
    for problem in parse_canary_settings(node_class).problems:
        field, _, message = problem.partition("]: ")
        path = ("metadata", "annotations", field.removeprefix("metadata.annotations["))
        yield build_finding(source_object, "error", path, message)
