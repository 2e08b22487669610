"""Invocations of disrupt in any order of their calls, some of which have lost the lease: the interleavings modelled.

A process stands still at every call to the outside, before and after it, until it is resumed. Whoever stands for longer
than the lease lasts has lost it without knowing. Whatever the budget is written as (a number, a percentage, one for the
whole cluster), one node may go at a time.
"""

from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.actions.lease import LASTS
from tests.property.test_actions_laws import Process
from tests.unit.disrupted_world import Idle

BUDGET = 1
Budgets = dict[str, str]
NUMBER: Budgets = {"budget": "1"}
PERCENTAGE: Budgets = {"budget": "33%"}
TOGETHER: Budgets = {"budget": "100%", "together": '[{"nodes": "5"}, {"nodes": "1"}]'}
BUDGETS = {"number": NUMBER, "percentage": PERCENTAGE, "cluster": TOGETHER}


def nothing_begun(said: Budgets = NUMBER) -> Idle:
    """Three empty nodes, of which one may go."""
    return Idle("a", "b", "c", **said)


def proposed(said: Budgets = NUMBER) -> Idle:
    """One of them is proposed, and it is time to decide."""
    idle = nothing_begun(said)
    idle.disrupt()
    idle.clock.advance(timedelta(seconds=6))
    return idle


def invalid(said: Budgets = NUMBER) -> Idle:
    """One of them is proposed, and has a pod by now."""
    idle = proposed(said)
    [name] = idle.tainted()
    idle.pod(on=f"node-{name}")
    return idle


def replacing(*by: str, said: Budgets) -> Idle:
    """A node that has drifted is being replaced; another, which is empty, has to wait."""
    idle = Idle("b", **said)
    idle.machine("a", drifted=True)
    idle.begin(idle.order("a", by=by))
    idle.disrupt()
    idle.later(seconds=1)
    assert idle.made() == set(by)
    return idle


def launched(said: Budgets = NUMBER) -> Idle:
    """The replacement is fit for use: its node may go."""
    idle = replacing("new", said=said)
    idle.come_up("new")
    return idle


def failed(said: Budgets = NUMBER) -> Idle:
    """One of two replacements is gone."""
    idle = replacing("new", "newer", said=said)
    idle.api.delete("nodeclaims.karpenter.sh", "new")
    return idle


SCENES: tuple[Callable[[Budgets], Idle], ...] = (nothing_begun, proposed, invalid, launched, failed)


def judge(idle: Idle, when: str) -> None:
    """Say what must hold at any moment."""
    going = idle.deleting() - {"new", "newer"}
    assert len(going) <= BUDGET, f"{when}: {sorted(going)} go"
    if "a" in going and idle.made():
        conditions = idle.api.get("nodeclaims.karpenter.sh", "new")["status"]["conditions"]
        assert any(one["type"] == "Initialized" and one["status"] == "True" for one in conditions), when


def settle(idle: Idle, when: str) -> None:
    """Let others come when all is over: all that is begun comes to its end, and nothing is left behind."""
    for _ in range(4):
        idle.later()
        judge(idle, when)
    open_nodes = {target.claim for one in idle.standings().values() if one.is_open for target in one.command.targets}
    assert idle.tainted() | idle.told() <= open_nodes | idle.deleting(), when
    assert len(idle.deleting() - {"new", "newer"}) == BUDGET, when


def overtaken(scene: Callable[[Budgets], Idle], stop: int) -> bool:
    """Let one be overtaken at its *stop*th call, and wake up when all is over; answer whether it was at its end."""
    idle, when = scene(NUMBER), f"after {stop} steps"
    one, other = (Process(idle, name, idle.disrupt) for name in ("one", "other"))
    for _ in range(stop):
        one.resume()
    was_over = one.over
    idle.clock.advance(LASTS + timedelta(seconds=1))
    other.finish()
    judge(idle, when)
    one.finish()
    judge(idle, when)
    settle(idle, when)
    return was_over


def outlived(scene: Callable[[Budgets], Idle], stop: int) -> bool:
    """The same, but what it had decided about is in use by the time that it wakes up, and others have gone for it."""
    idle, when = scene(NUMBER), f"after {stop} steps"
    one = Process(idle, "one", idle.disrupt)
    for _ in range(stop):
        one.resume()
    was_over = one.over
    for number, name in enumerate(sorted(idle.tainted() - idle.deleting())):
        idle.pod(f"late-{number}", on=f"node-{name}")
    for _ in range(3):
        idle.later()
        judge(idle, when)
    one.finish()
    judge(idle, when)
    settle(idle, when)
    return was_over


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("how", [overtaken, outlived], ids=lambda how: how.__name__)
def test_who_is_overtaken_at_any_call_exceeds_no_budget_and_leaves_nothing(
    how: Callable[[Callable[[Budgets], Idle], int], bool], scene: Callable[[Budgets], Idle]
) -> None:
    steps = next(stop for stop in count() if how(scene, stop))
    assert steps > 20


WRITES = {("table", "write"), ("table", "remove"), ("kube", "create"), ("kube", "patch"), ("kube", "delete")}


def writes_of(scene: Callable[[Budgets], Idle], said: Budgets) -> list[int]:
    """Answer after how many steps an invocation stands before a call that changes something."""
    idle, count_, found = scene(said), 0, list[int]()
    one = Process(idle, "one", idle.disrupt)
    while not one.over:
        one.resume()
        count_ += 1
        last = idle.calls[-1] if idle.calls else None
        if last is not None and (last.port, last.method) in WRITES and last.when == "before":
            found.append(count_)
    return found


@pytest.mark.parametrize("said", BUDGETS.values(), ids=BUDGETS.keys())
@pytest.mark.parametrize("scene", [nothing_begun, proposed], ids=lambda scene: scene.__name__)
def test_two_that_stand_before_any_of_their_writes_are_overtaken_by_a_third_and_exceed_no_budget(
    scene: Callable[[Budgets], Idle], said: Budgets
) -> None:
    """Each pair of writes: one sweep stands before the first, another before the second, the retried one runs."""
    stops = writes_of(scene, said)
    assert len(stops) > 4
    for first in stops:
        for second in stops:
            idle, when = scene(said), f"{first} and {second} steps"
            one, other, retried = (Process(idle, name, idle.disrupt) for name in ("one", "other", "retried"))
            for process, stop in ((one, first), (other, second)):
                for _ in range(stop):
                    process.resume()
                idle.clock.advance(LASTS + timedelta(seconds=1))
            for process in (retried, one, other):
                process.finish()
                judge(idle, when)
            settle(idle, when)


@given(
    st.sampled_from(SCENES),
    st.sampled_from(sorted(BUDGETS)),
    st.lists(st.tuples(st.sampled_from((0, 1, 2)), st.integers(1, 12), st.booleans()), max_size=16),
    st.sets(st.sampled_from((0, 1))),
)
def test_two_and_a_retried_one_in_any_order_of_their_calls_exceed_no_budget_and_leave_nothing(
    scene: Callable[[Budgets], Idle], said: str, schedule: list[tuple[int, int, bool]], dying: set[int]
) -> None:
    idle = scene(BUDGETS[said])
    processes = [Process(idle, name, idle.disrupt) for name in ("one", "other", "retried")]
    for who, steps, is_late in schedule:
        if is_late:
            idle.clock.advance(LASTS + timedelta(seconds=1))
        for _ in range(steps):
            processes[who].resume()
        judge(idle, str(schedule))
    for who, process in enumerate(processes):
        process.kill() if who in dying else process.finish()
        judge(idle, str(schedule))
    settle(idle, str(schedule))
