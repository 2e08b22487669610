"""Costs, savings, evictions and waiting times of a fleet document."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from cli.explain.evidence import Evidence
from cli.explain.node_records import find_node_record
from cli.fleet.decisions.object_index import ObjectIndex
from cli.fleet.document.fleet_document import FleetSeries
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.recording.fleet_recorder import RecordedNode, RecordedPod
from cli.journal.evictions import iterate_evictions
from shared.decide.disruption.pauses import SUCCESSFUL_PHASES

COMPARED_WITH: Final = "no disruption commands"
_ONE_HOUR: Final = timedelta(hours=1)
_MAX_WAIT_POINTS: Final = 60
_MIN_WAIT_WINDOW_SECONDS: Final = 60


def list_price_changes(nodes: Iterable[RecordedNode]) -> Iterator[tuple[datetime, float]]:
    """Yield when instances with a known price began (positive USD per hour) and ended to cost (negative)."""
    for recorded_node in nodes:
        price = recorded_node.node.price
        launched_at = next((at for at, state in recorded_node.states if state not in ("requested", "gone")), None)
        if price is None or launched_at is None:
            continue
        yield launched_at, price
        if recorded_node.ended_at is not None:
            yield recorded_node.ended_at, -price


def compute_cost_usd(nodes: Iterable[RecordedNode], start: datetime, end: datetime) -> float:
    """Return the cost of *nodes* between *start* and *end*, in USD."""
    return sum(price * (max(end - max(at, start), timedelta()) / _ONE_HOUR) for at, price in list_price_changes(nodes))


def list_savings(evidence: Evidence) -> list[tuple[datetime, float]]:
    """Return when disruption commands completed, and the USD per hour that each saves."""
    completed = {
        note.name: (at, note.usd_per_hour)
        for at, note in evidence.iterate_notes("Command")
        if note.verdict in SUCCESSFUL_PHASES
    }
    return sorted(completed.values())


def compute_saved_usd(savings: Iterable[tuple[datetime, float]], end: datetime) -> float:
    """Return the USD that *savings* amount to at *end*."""
    return sum(usd_per_hour * (max(end - at, timedelta()) / _ONE_HOUR) for at, usd_per_hour in savings)


def build_comparison_series(
    nodes: Sequence[RecordedNode], savings: Sequence[tuple[datetime, float]], start: datetime, end: datetime
) -> Iterator[FleetSeries]:
    """Yield the cost per hour without the disruption commands; nothing if there were none."""
    if not savings:
        return
    changes = sorted([*list_price_changes(nodes), *savings])
    points: dict[int, float] = {}
    usd_per_hour = 0.0
    for at, change in changes:
        usd_per_hour += change
        points[convert_to_milliseconds(max(at, start))] = round(usd_per_hour, 6) + 0.0
    points[convert_to_milliseconds(end)] = round(usd_per_hour, 6) + 0.0
    yield FleetSeries(
        id="usdPerHour.withoutCommands",
        title="without disruption commands",
        unit="USD/h",
        t=tuple(points),
        v=tuple(points.values()),
    )


def build_wait_series(pods: Iterable[RecordedPod], start: datetime, end: datetime) -> Iterator[FleetSeries]:
    """Yield p50 and p95 of the seconds from pending to running, of the unschedulable pods of each interval."""
    window_seconds = max((end - start).total_seconds() / _MAX_WAIT_POINTS, _MIN_WAIT_WINDOW_SECONDS)
    waits_by_window: dict[int, list[float]] = {}
    for recorded_pod in pods:
        running_since = recorded_pod.running_since
        if recorded_pod.was_unschedulable and running_since is not None and running_since >= start:
            window = int((running_since - start).total_seconds() // window_seconds)
            waited = (running_since - recorded_pod.started_at).total_seconds()
            waits_by_window.setdefault(window, []).append(waited)
    if not waits_by_window:
        return
    windows = sorted(waits_by_window)
    times = tuple(
        convert_to_milliseconds(min(start + timedelta(seconds=(window + 1) * window_seconds), end))
        for window in windows
    )
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        values = tuple(_compute_percentile(waits_by_window[window], share) for window in windows)
        yield FleetSeries(
            id=f"pendingToRunning.{name}", title=f"pending to running, {name}", unit="s", t=times, v=values, step=False
        )


def _compute_percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which *share* of *values* lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def find_eviction_reasons(evidence: Evidence, index: ObjectIndex) -> dict[int, str]:
    """Return the reason of each evicted pod's end, by the pod's index: why its node was removed."""
    reasons: dict[int, str] = {}
    for cycle in evidence.cycles:
        for name, action in iterate_evictions(cycle):
            record = find_node_record(evidence.node_records, action.node)
            cause = (record.deleted_why if record is not None else "") or action.message
            for pod in index.find_pods([("Pod", name)], cycle.entry.at):
                reasons[pod] = f"Evicted: {cause}"
    return reasons


def count_evictions(reasons: Mapping[int, str]) -> dict[str, int]:
    """Return the number of evictions by reason, most frequent first."""
    counts = Counter(reason.removeprefix("Evicted: ") for reason in reasons.values())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
