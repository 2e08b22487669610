"""Checks of pauses that people set or that Joiner sets itself."""

from collections.abc import Iterable, Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, KubernetesFacts, NodePoolEvent, ReadFailure
from cli.pause.text import format_pause
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_elapsed, join_names
from shared.state.pauses import list_active_pauses
from shared.state.schedules import apply_schedules

MAX_LISTED_NAMES: Final = 3


def check_pauses(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check for pauses that were forgotten or not intended."""
    kubernetes, check = facts.kubernetes, CheckReporter("pauses")
    if kubernetes is None:
        return
    if isinstance(kubernetes.namespaces, ReadFailure):
        yield check.skip("pauses", kubernetes.namespaces, "list on namespaces")
        return
    if isinstance(kubernetes.node_pools, ReadFailure):
        yield check.skip("pauses of NodePools", kubernetes.node_pools, "list on nodepools.karpenter.sh")
    pools = () if isinstance(kubernetes.node_pools, ReadFailure) else kubernetes.node_pools
    cluster = apply_schedules(
        ClusterSnapshot(
            taken_at=facts.now,
            node_pools=pools,
            namespaces=kubernetes.namespaces,
            node_classes=() if isinstance(kubernetes.node_classes, ReadFailure) else kubernetes.node_classes,
            node_claims=() if isinstance(kubernetes.node_claims, ReadFailure) else kubernetes.node_claims,
        )
    )
    pauses, problems = list_active_pauses(cluster)
    for problem in problems:
        yield check.fail(
            f"{problem.kind} {problem.name}: {problem.message}",
            "remove it with `joiner resume`, or set it again with `joiner pause`",
        )
    for pause in pauses:
        yield check.warn(format_pause(pause, facts.now), f"{pause.get_resume_command()} ends the pause now")
    automatic_results = list(_check_automatic_pauses(kubernetes, facts, check))
    if not pauses and not any(result.level == "warn" for result in automatic_results):
        suffix = ", and Joiner pauses nothing itself" if kubernetes.pause_events == () else ""
        yield check.accept(f"no pause is set{suffix}")
    yield from automatic_results


def _check_automatic_pauses(
    kubernetes: KubernetesFacts, facts: DoctorFacts, check: CheckReporter
) -> Iterator[CheckResult]:
    if isinstance(kubernetes.pause_events, ReadFailure):
        yield check.skip(
            "pauses that Joiner sets itself", kubernetes.pause_events, "list on events in the namespace default"
        )
        return
    for message, events in sorted(_group_by_message(kubernetes.pause_events or ()).items()):
        pools = sorted({event.pool for event in events})
        event_age = format_elapsed(facts.now - max(event.at for event in events))
        message_text = f"NodePool {join_names(pools, MAX_LISTED_NAMES)}: {message} ({event_age} ago)"
        yield check.warn(
            message_text, f"`joiner explain nodepool {pools[0]}` shows the reason; the pause ends automatically"
        )


def _group_by_message(events: Iterable[NodePoolEvent]) -> dict[str, list[NodePoolEvent]]:
    events_by_message: dict[str, list[NodePoolEvent]] = {}
    for event in events:
        events_by_message.setdefault(event.message, []).append(event)
    return events_by_message
