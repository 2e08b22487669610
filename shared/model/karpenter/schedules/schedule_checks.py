"""The annotation joiner.dev/schedule of NodePools and CapacityBuffers: its grammar, and what the object allows."""

from collections.abc import Callable

from shared.model.core.labels import SCHEDULE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import NODES
from shared.model.karpenter.schedule import Schedule, ScheduleWindow
from shared.model.karpenter.schedules.schedule_grammar import BUFFER_KEYS, NODE_POOL_KEYS, parse_schedule


def parse_node_pool_schedule(meta: ObjectMeta, *, is_static: bool) -> Schedule | None:
    """Parse the schedule of a NodePool; None if it has none. *is_static*: whether it has spec.replicas.

    Raises:
        ValueError: the schedule is invalid; the message has the field and the fix.
    """
    schedule = parse_schedule(meta, NODE_POOL_KEYS)
    _check_windows(schedule, _find_static_error if is_static else _find_dynamic_error)
    return schedule


def parse_buffer_schedule(meta: ObjectMeta, *, is_scalable: bool) -> Schedule | None:
    """Parse the schedule of a CapacityBuffer; None if it has none.

    Raises:
        ValueError: the schedule is invalid; the message has the field and the fix.
    """
    schedule = parse_schedule(meta, BUFFER_KEYS)
    if not is_scalable:
        _check_windows(schedule, _find_template_error)
    return schedule


def _check_windows(schedule: Schedule | None, find_error: Callable[[ScheduleWindow], str]) -> None:
    for window in schedule.windows if schedule is not None else ():
        if error := find_error(window):
            raise ValueError(f"metadata.annotations[{SCHEDULE}]: window {window.name}: {error}")


def _find_static_error(window: ScheduleWindow) -> str:
    values = window.values
    names = [name for name, _ in values.limits if name != NODES]
    if names or values.limit_usd_per_hour:
        return "with spec.replicas, only nodes can be limited: write limits.nodes, or remove the limit"
    if values.consolidation_policy or values.consolidate_after:
        return "nodes of a NodePool with spec.replicas are not consolidated: remove the consolidation values"
    return ""


def _find_dynamic_error(window: ScheduleWindow) -> str:
    if window.values.replicas is None:
        return ""
    return "replicas needs a NodePool with spec.replicas: write limits.nodes=0 or paused=Launches to launch no nodes"


def _find_template_error(window: ScheduleWindow) -> str:
    if window.values.percentage is None:
        return ""
    return "percentage needs spec.scalableRef: write replicas=0 or another number of replicas"
