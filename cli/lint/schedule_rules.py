"""Lint rules about schedules: invalid ones, and annotations without an effect."""

from collections.abc import Iterator
from typing import Final

from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import SCHEDULE, SCHEDULE_TIME_ZONE
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.schedules.schedule_checks import parse_buffer_schedule, parse_node_pool_schedule

SCHEDULED_KINDS: Final = ("NodePool", "CapacityBuffer")
SCHEDULE_PROBLEM_PREFIX: Final = "metadata.annotations["
"""How the message of a NodePool that is invalid because of its schedule starts."""


def lint_schedule(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check the schedule of *source_object*."""
    metadata, spec = source_object.value.get("metadata"), source_object.value.get("spec")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    keys = [key for key in (SCHEDULE, SCHEDULE_TIME_ZONE) if isinstance(annotations, dict) and key in annotations]
    if not keys or not isinstance(annotations, dict):
        return
    kind = source_object.value["kind"]
    if kind not in SCHEDULED_KINDS:
        message = f"has no effect on a {kind}, only on a {' or '.join(SCHEDULED_KINDS)}: move it there"
        yield build_finding(source_object, "warning", ("metadata", "annotations", keys[0]), message)
        return
    if SCHEDULE not in keys:
        message = f"has no effect without {SCHEDULE}: add a schedule, or remove it"
        yield build_finding(source_object, "warning", ("metadata", "annotations", SCHEDULE_TIME_ZONE), message)
        return
    fields = spec if isinstance(spec, dict) else {}
    meta = ObjectMeta(name="", annotations=build_pairs({key: str(annotations[key]) for key in keys}))
    try:
        if kind == "NodePool":
            parse_node_pool_schedule(meta, is_static=fields.get("replicas") is not None)
        else:
            parse_buffer_schedule(meta, is_scalable=fields.get("scalableRef") is not None)
    except ValueError as error:
        field, _, message = str(error).partition("]: ")
        key = field.removeprefix(SCHEDULE_PROBLEM_PREFIX)
        yield build_finding(source_object, "error", ("metadata", "annotations", key), message)
