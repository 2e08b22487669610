"""The nodes one by one: what each costs, how full it is, how it is, and what keeps it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec

from cli.checks.acting import acting
from shared.disruption.candidates import Blocked, Candidate, Field, assess, field_of
from shared.disruption.drifting import DRIFTED
from shared.disruption.eligibility import kept_from_consolidation, kept_from_emptiness
from shared.model.cluster import Cluster
from shared.model.holds import Held, held_in
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.objects import is_true
from shared.model.resources import CPU, MEMORY
from shared.model.state import StateNode
from shared.settings import Settings, paused_from

LAST: Final = timedelta.max
SETTING: Final = "joiner:disruption-paused"
MOVABLE: Final = ("ready", "drifted")
"""States of a node that may go by choice."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a NodePool, or one on its way."""

    name: str
    """The Node's; its claim's while there is no Node."""
    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    usd_per_hour: float
    """0 where it is not known."""
    cpu: tuple[int, int]
    """Requested and allocatable, in thousandths."""
    memory: tuple[int, int]
    """The same in bytes."""
    pods: int
    """Daemons' are none."""
    age: timedelta | None
    state: str
    keeps: tuple[str, str]
    """Why it does not go by choice at present, as reason and message; both "" if nothing speaks against it."""

    @property
    def cpu_share(self) -> float:
        """How much of the processors is requested; 1 is all of it."""
        return _share(self.cpu)

    @property
    def memory_share(self) -> float:
        """The same of memory."""
        return _share(self.memory)


KEYS: Final[dict[str, Callable[[Row], Any]]] = {
    "price": lambda one: -one.usd_per_hour,
    "cpu": lambda one: -one.cpu_share,
    "memory": lambda one: -one.memory_share,
    "pods": lambda one: -one.pods,
    "age": lambda one: -(one.age or timedelta()),
    "name": lambda one: one.name,
    "pool": lambda one: one.pool,
    "type": lambda one: one.instance_type,
    "state": lambda one: one.state,
    "keeps": lambda one: one.keeps[0],
}
"""What may come first; numbers fall, words rise."""


def rows_of(cluster: Cluster, pools: Collection[str] = (), told: Settings | None = None) -> tuple[Row, ...]:
    """Answer the nodes of NodePools, or of these *pools* only, by name; *told*: what functions are told, if known."""
    field, (held, _) = field_of(cluster), held_in(cluster)
    ours = (one for one in field.states if one.pool or one.claim is not None)
    rows = (_row(one, field, (*held, *_by_setting(told))) for one in ours if not pools or one.pool in pools)
    return tuple(_as_planned(one, told) for one in rows)


def _by_setting(told: Settings | None) -> Iterator[Held]:
    try:
        holds = paused_from(told.disruption_paused) if told is not None else ()
    except ValueError:  # of an installation that is older, or newer
        return
    for hold in holds:
        yield from (Held(pool=pool, key=SETTING, hold=hold) for pool in hold.pools or ("",))


def _as_planned(row: Row, told: Settings | None) -> Row:
    """Answer *row*; what might go stays where disruption is only planned."""
    does = None if told is None else acting(told)
    if does is None or row.keeps[0] or row.state not in MOVABLE or "planned" not in does.state:
        return row
    return msgspec.structs.replace(row, keeps=("Planned", f"{does.what}; {does.remedy}"))


def ranked(rows: Iterable[Row], key: str, *, is_reversed: bool = False) -> list[Row]:
    """Answer *rows* by *key*, equal ones by name."""
    by_name = sorted(rows, key=lambda one: one.name)
    return sorted(by_name, key=KEYS[key], reverse=is_reversed)


def _row(state: StateNode, field: Field, held: Iterable[Held]) -> Row:
    meta, used, has = state.meta, state.used(), state.allocatable()
    pool = field.pools.get(state.pool)
    born = (state.node or state.claim or state).meta.created_at
    return Row(
        name=state.node.name if state.node is not None else state.name,
        pool=state.pool,
        instance_type=meta.label(INSTANCE_TYPE),
        capacity_type=meta.label(CAPACITY_TYPE),
        zone=meta.label(ZONE),
        usd_per_hour=field.prices.price(meta, pool.node_class.name if pool is not None else ""),
        cpu=(used[CPU], has[CPU]),
        memory=(used[MEMORY], has[MEMORY]),
        pods=sum(not pod.is_daemon() and not pod.is_terminal() for pod in state.pods),
        age=None if born is None else max(field.now - born, timedelta()),
        state=_state(state),
        keeps=_keeps(state, field, held),
    )


def _state(state: StateNode) -> str:
    if state.is_marked():
        return "going"
    if not state.is_initialized():
        return "coming"
    if state.node is None or not state.node.is_ready():
        return "not ready"
    return "drifted" if state.claim is not None and is_true(state.claim.conditions, DRIFTED) else "ready"


def _keeps(state: StateNode, field: Field, held: Iterable[Held]) -> tuple[str, str]:
    one = assess(state, field)
    if isinstance(one, Blocked):
        return one.reason, one.message
    wanted = _reason(one)
    paused = next((some for some in held if wanted in some.hold.what and some.pool in ("", one.pool.name)), None)
    if paused is not None:
        said = paused.hold.words()
        setting = f"{said + '; ' if said else ''}the setting {SETTING} says so"
        return "Paused", setting if paused.key == SETTING else paused.why()
    if wanted == DRIFTED:
        return "", ""
    kept = kept_from_emptiness(one, field, frozenset()) if one.is_empty() else kept_from_consolidation(one, field)
    return ("", "") if kept is None else (kept.reason, kept.message)


def _reason(one: Candidate) -> str:
    if is_true(one.claim.conditions, DRIFTED):
        return DRIFTED
    return "Empty" if one.is_empty() else "Underutilized"


def _share(some: tuple[int, int]) -> float:
    return some[0] / some[1] if some[1] else 0.0
