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

from shared.store.lease import LEASE_TTL
from tests.property.lifecycle.test_actions_laws import Process
from tests.support.disrupted_world import Idle

MAX_DISRUPTED_NODES = 1
Budgets = dict[str, str]
NUMBER: Budgets = {"budget": "1"}
PERCENTAGE: Budgets = {"budget": "33%"}
TOGETHER: Budgets = {"budget": "100%", "together": '[{"nodes": "5"}, {"nodes": "1"}]'}
BUDGETS = {"number": NUMBER, "percentage": PERCENTAGE, "cluster": TOGETHER}


def build_idle_scene(budgets: Budgets = NUMBER) -> Idle:
    """Three empty nodes, of which one may go."""
    return Idle("a", "b", "c", **budgets)


def build_proposed_scene(budgets: Budgets = NUMBER) -> Idle:
    """One of them is proposed, and it is time to decide."""
    idle = build_idle_scene(budgets)
    idle.disrupt()
    idle.clock.advance(timedelta(seconds=6))
    return idle


def build_invalid_scene(budgets: Budgets = NUMBER) -> Idle:
    """One of them is proposed, and has a pod by now."""
    idle = build_proposed_scene(budgets)
    [name] = idle.list_tainted_claims()
    idle.create_pod(on=f"node-{name}")
    return idle


def build_replacing_scene(*replacements: str, budgets: Budgets) -> Idle:
    """A node that has drifted is being replaced; another, which is empty, has to wait."""
    idle = Idle("b", **budgets)
    idle.create_claimed_node("a", drifted=True)
    idle.store_command(idle.make_command("a", replacements=replacements))
    idle.disrupt()
    idle.advance_and_disrupt(seconds=1)
    assert idle.list_replacement_claims() == set(replacements)
    return idle


def build_launched_scene(budgets: Budgets = NUMBER) -> Idle:
    """The replacement is initialized: its node may go."""
    idle = build_replacing_scene("new", budgets=budgets)
    idle.bring_up_node("new")
    return idle


def build_failed_scene(budgets: Budgets = NUMBER) -> Idle:
    """One of two replacements is gone."""
    idle = build_replacing_scene("new", "newer", budgets=budgets)
    idle.api.delete("nodeclaims.karpenter.sh", "new")
    return idle


SCENES: tuple[Callable[[Budgets], Idle], ...] = (
    build_idle_scene,
    build_proposed_scene,
    build_invalid_scene,
    build_launched_scene,
    build_failed_scene,
)


def assert_invariants(idle: Idle, when: str) -> None:
    """Assert what must hold at any moment."""
    going = idle.list_deleting_claims() - {"new", "newer"}
    assert len(going) <= MAX_DISRUPTED_NODES, f"{when}: {sorted(going)} go"
    if "a" in going and idle.list_replacement_claims():
        conditions = idle.api.get("nodeclaims.karpenter.sh", "new")["status"]["conditions"]
        assert any(condition["type"] == "Initialized" and condition["status"] == "True" for condition in conditions), (
            when
        )


def settle_and_assert(idle: Idle, when: str) -> None:
    """Run later invocations: all commands complete, and nothing is left behind."""
    for _ in range(4):
        idle.advance_and_disrupt()
        assert_invariants(idle, when)
    open_nodes = {
        target.claim
        for command_state in idle.read_command_states().values()
        if command_state.is_open
        for target in command_state.command.targets
    }
    assert idle.list_tainted_claims() | idle.list_claims_with_reason() <= open_nodes | idle.list_deleting_claims(), when
    assert len(idle.list_deleting_claims() - {"new", "newer"}) == MAX_DISRUPTED_NODES, when


def run_overtaken(scene: Callable[[Budgets], Idle], stop: int) -> bool:
    """Let a second process overtake the first at its *stop*th call; return whether the first had already ended."""
    idle, when = scene(NUMBER), f"after {stop} steps"
    first_process, second_process = (Process(idle, name, idle.disrupt) for name in ("one", "other"))
    for _ in range(stop):
        first_process.resume()
    was_over = first_process.over
    idle.clock.advance(LEASE_TTL + timedelta(seconds=1))
    second_process.finish()
    assert_invariants(idle, when)
    first_process.finish()
    assert_invariants(idle, when)
    settle_and_assert(idle, when)
    return was_over


def run_outlived(scene: Callable[[Budgets], Idle], stop: int) -> bool:
    """Like `run_overtaken`, but the proposed nodes have pods when the process resumes.

    And other nodes were disrupted.
    """
    idle, when = scene(NUMBER), f"after {stop} steps"
    process = Process(idle, "one", idle.disrupt)
    for _ in range(stop):
        process.resume()
    was_over = process.over
    for number, name in enumerate(sorted(idle.list_tainted_claims() - idle.list_deleting_claims())):
        idle.create_pod(f"late-{number}", on=f"node-{name}")
    for _ in range(3):
        idle.advance_and_disrupt()
        assert_invariants(idle, when)
    process.finish()
    assert_invariants(idle, when)
    settle_and_assert(idle, when)
    return was_over


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("run", [run_overtaken, run_outlived], ids=lambda how: how.__name__)
def test_disrupt_that_loses_its_lease_at_any_call_exceeds_no_budget_and_leaves_no_stale_taint(
    run: Callable[[Callable[[Budgets], Idle], int], bool], scene: Callable[[Budgets], Idle]
) -> None:
    steps = next(stop for stop in count() if run(scene, stop))
    assert steps > 20


WRITES = {("table", "write"), ("table", "remove"), ("kube", "create"), ("kube", "patch"), ("kube", "delete")}


def list_write_stops(scene: Callable[[Budgets], Idle], budgets: Budgets) -> list[int]:
    """Return the numbers of steps after which an invocation is about to make a write."""
    idle, count_, stops = scene(budgets), 0, list[int]()
    process = Process(idle, "one", idle.disrupt)
    while not process.over:
        process.resume()
        count_ += 1
        last = idle.calls[-1] if idle.calls else None
        if last is not None and (last.port, last.method) in WRITES and last.phase == "before":
            stops.append(count_)
    return stops


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS.keys())
@pytest.mark.parametrize("scene", [build_idle_scene, build_proposed_scene], ids=lambda scene: scene.__name__)
def test_two_disrupt_runs_stalled_before_writes_and_a_third_exceed_no_budget(
    scene: Callable[[Budgets], Idle], budgets: Budgets
) -> None:
    """Each pair of writes: one sweep stands before the first, another before the second, the retried one runs."""
    stops = list_write_stops(scene, budgets)
    assert len(stops) > 4
    for first in stops:
        for second in stops:
            idle, when = scene(budgets), f"{first} and {second} steps"
            first_process, second_process, retried = (
                Process(idle, name, idle.disrupt) for name in ("one", "other", "retried")
            )
            for process, stop in ((first_process, first), (second_process, second)):
                for _ in range(stop):
                    process.resume()
                idle.clock.advance(LEASE_TTL + timedelta(seconds=1))
            for process in (retried, first_process, second_process):
                process.finish()
                assert_invariants(idle, when)
            settle_and_assert(idle, when)


@given(
    st.sampled_from(SCENES),
    st.sampled_from(sorted(BUDGETS)),
    st.lists(st.tuples(st.sampled_from((0, 1, 2)), st.integers(1, 12), st.booleans()), max_size=16),
    st.sets(st.sampled_from((0, 1))),
)
def test_three_concurrent_disrupt_runs_in_any_call_order_exceed_no_budget(
    scene: Callable[[Budgets], Idle], budget_name: str, schedule: list[tuple[int, int, bool]], dying: set[int]
) -> None:
    idle = scene(BUDGETS[budget_name])
    processes = [Process(idle, name, idle.disrupt) for name in ("one", "other", "retried")]
    for process_number, steps, is_late in schedule:
        if is_late:
            idle.clock.advance(LEASE_TTL + timedelta(seconds=1))
        for _ in range(steps):
            processes[process_number].resume()
        assert_invariants(idle, str(schedule))
    for process_number, process in enumerate(processes):
        process.kill_at_next_call() if process_number in dying else process.finish()
        assert_invariants(idle, str(schedule))
    settle_and_assert(idle, str(schedule))
