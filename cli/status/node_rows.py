"""The rows of the node table: price, utilization, state, and the reason why the node is not disrupted."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec

from cli.facts.mode import describe_mode
from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.consolidation_policy import explain_consolidation_refusal, explain_emptiness_refusal
from shared.decide.disruption.drift.drift import DRIFTED
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import is_condition_true
from shared.model.core.resources import CPU, MEMORY
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.karpenter.pause import parse_disruption_pauses
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.state.pauses import ActivePause, list_active_pauses
from shared.state.state_node import StateNode

PAUSE_SETTING: Final = "disruption-paused"
DISRUPTABLE_STATES: Final = ("ready", "drifted")
"""States of a node that can be disrupted voluntarily."""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a NodePool, or an in-flight node."""

    name: str
    """The Node's name; the NodeClaim's name while there is no Node."""
    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    usd_per_hour: float
    """0 if it is unknown."""
    cpu: tuple[int, int]
    """Requested and allocatable, in thousandths."""
    memory: tuple[int, int]
    """Requested and allocatable, in bytes."""
    pods: int
    """Without DaemonSet pods."""
    age: timedelta | None
    state: str
    keep_reason: tuple[str, str]
    """Why it is not disrupted voluntarily now: reason and message, both "" if nothing blocks disruption."""

    @property
    def cpu_share(self) -> float:
        """Requested share of the CPUs; 1 is all of them."""
        return _compute_share(self.cpu)

    @property
    def memory_share(self) -> float:
        """Requested share of the memory."""
        return _compute_share(self.memory)


SORT_KEYS: Final[dict[str, Callable[[NodeRow], Any]]] = {
    "price": lambda row: -row.usd_per_hour,
    "cpu": lambda row: -row.cpu_share,
    "memory": lambda row: -row.memory_share,
    "pods": lambda row: -row.pods,
    "age": lambda row: -(row.age or timedelta()),
    "name": lambda row: row.name,
    "pool": lambda row: row.pool,
    "type": lambda row: row.instance_type,
    "state": lambda row: row.state,
    "blocked": lambda row: row.keep_reason[0],
}
"""The sort keys; numbers in descending order, text in ascending order."""


def build_node_rows(
    cluster_state: ClusterState, pools: Collection[str] = (), settings: Settings | None = None
) -> tuple[NodeRow, ...]:
    """Return the nodes of NodePools, or only those of *pools*; *settings*: those of the deployment, if known."""
    holds, _ = list_active_pauses(cluster_state.snapshot)
    all_holds = (*holds, *_list_setting_pauses(settings))
    rows = (
        _build_row(state_node, cluster_state, all_holds)
        for state_node in cluster_state.nodes
        if (state_node.pool or state_node.claim is not None) and (not pools or state_node.pool in pools)
    )
    return tuple(_apply_dry_run_mode(row, settings) for row in rows)


def _list_setting_pauses(settings: Settings | None) -> Iterator[ActivePause]:
    try:
        holds = parse_disruption_pauses(settings.disruption_paused) if settings is not None else ()
    except ValueError:  # of an older or newer installation
        return
    for hold in holds:
        yield from (ActivePause(pool=pool, key=PAUSE_SETTING, pause=hold) for pool in hold.pools or ("",))


def _apply_dry_run_mode(row: NodeRow, settings: Settings | None) -> NodeRow:
    """Return *row*; if Joiner only plans disruption, with this as the reason why the node is not disrupted."""
    mode = None if settings is None else describe_mode(settings)
    if mode is None or row.keep_reason[0] or row.state not in DISRUPTABLE_STATES or "planned" not in mode.state:
        return row
    return msgspec.structs.replace(row, keep_reason=("Planned", f"{mode.message}; {mode.fix}"))


def filter_node_rows(rows: Iterable[NodeRow], text: str) -> list[NodeRow]:
    """Return the rows that contain each word of *text* in a name, label, state or reason."""
    words = text.lower().split()
    return [row for row in rows if all(word in _get_searched_text(row) for word in words)]


def _get_searched_text(row: NodeRow) -> str:
    parts = (row.name, row.pool, row.instance_type, row.capacity_type, row.zone, row.state, row.keep_reason[0])
    return "\n".join(parts).lower()


def sort_node_rows(rows: Iterable[NodeRow], key: str, *, is_reversed: bool = False) -> list[NodeRow]:
    """Return *rows* sorted by *key*, then by name."""
    by_name = sorted(rows, key=lambda row: row.name)
    return sorted(by_name, key=SORT_KEYS[key], reverse=is_reversed)


def _build_row(state: StateNode, cluster_state: ClusterState, holds: Iterable[ActivePause]) -> NodeRow:
    meta, used, allocatable = state.meta, state.sum_pod_requests(), state.compute_allocatable()
    pool = cluster_state.node_pools.get(state.pool)
    created_at = (state.node or state.claim or state).meta.created_at
    return NodeRow(
        name=state.node.name if state.node is not None else state.name,
        pool=state.pool,
        instance_type=meta.get_label(INSTANCE_TYPE),
        capacity_type=meta.get_label(CAPACITY_TYPE),
        zone=meta.get_label(ZONE),
        usd_per_hour=cluster_state.price_list.get_price(meta, pool.node_class.name if pool is not None else ""),
        cpu=(used[CPU], allocatable[CPU]),
        memory=(used[MEMORY], allocatable[MEMORY]),
        pods=sum(not pod.is_daemon() and not pod.is_terminal() for pod in state.pods),
        age=None if created_at is None else max(cluster_state.taken_at - created_at, timedelta()),
        state=_get_state(state),
        keep_reason=_find_keep_reason(state, cluster_state, holds),
    )


def _get_state(state: StateNode) -> str:
    if state.is_marked_for_deletion():
        return "deleting"
    if not state.is_initialized():
        return "in-flight"
    if state.node is None or not state.node.is_ready():
        return "not ready"
    return "drifted" if state.claim is not None and is_condition_true(state.claim.conditions, DRIFTED) else "ready"


def _find_keep_reason(state: StateNode, cluster_state: ClusterState, holds: Iterable[ActivePause]) -> tuple[str, str]:
    candidate = evaluate_candidate(state, cluster_state)
    if isinstance(candidate, BlockedVerdict):
        return candidate.reason, candidate.message
    disruption_reason = _get_disruption_reason(candidate)
    pools = ("", candidate.pool.name)
    pause = next((hold for hold in holds if disruption_reason in hold.pause.reasons and hold.pool in pools), None)
    if pause is not None:
        setting_text = "; ".join(filter(None, (pause.pause.describe(), f"setting {PAUSE_SETTING}")))
        return "Paused", setting_text if pause.key == PAUSE_SETTING else pause.build_message()
    if disruption_reason == DRIFTED:
        return "", ""
    kept_verdict = (
        explain_emptiness_refusal(candidate, cluster_state, frozenset())
        if candidate.is_empty()
        else explain_consolidation_refusal(candidate, cluster_state)
    )
    return ("", "") if kept_verdict is None else (kept_verdict.reason, kept_verdict.message)


def _get_disruption_reason(candidate: Candidate) -> str:
    if is_condition_true(candidate.claim.conditions, DRIFTED):
        return DRIFTED
    return "Empty" if candidate.is_empty() else "Underutilized"


def _compute_share(amounts: tuple[int, int]) -> float:
    return amounts[0] / amounts[1] if amounts[1] else 0.0
