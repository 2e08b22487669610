"""Laws of disruption, for any cluster: of what a sweep decides, and of what becomes of it."""

import math
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.disruption.budgets import UNLIMITED, allowance, is_going
from shared.disruption.commands import advance
from shared.disruption.leftovers import tidy
from shared.disruption.proposals import is_touched
from shared.disruption.scenes import busy, scene_of, touched
from shared.disruption.standings import asked_for, proposed
from shared.disruption.sweep import Sweep, sweep
from shared.disruption.validation import still_holds
from shared.lifecycle.decide import decide as keep
from shared.model import labels
from shared.model.action import Action, CreateNodeClaim, DeleteObject, EvictPod, PatchStatus, TaintNode
from shared.model.cluster import Cluster
from shared.model.commands import Command, Invalid, Standing
from shared.model.nodepools import Budget
from shared.model.objects import condition, is_true
from shared.model.state import StateNode, state_nodes
from shared.scheduling.placement import Options
from tests.property.lifecycle_world import Little, clusters, orders
from tests.unit.lifecycle_cases import NOW, POOL, changed, of


class Planner:
    """What disrupt does in a cycle, with a memory in place of the table."""

    def __init__(self) -> None:
        """Begin without commands."""
        self.standings: dict[str, Standing] = {}

    def look(self, cluster: Cluster) -> tuple[Action, ...]:
        """Go on with what was begun, begin what a sweep finds; answer the actions."""
        scene = scene_of(cluster)
        engaged = busy(self.standings.values()) | touched(scene)
        actions: list[Action] = []
        for name in sorted(self.standings):
            actions += self._step(name, cluster)
        found = sweep(cluster, options=Options(), busy=engaged | busy(self.standings.values()))
        for command in found.commands:
            self.standings[command.command_id] = proposed(command, cluster.taken_at)
            actions += self._step(command.command_id, cluster)
        return (*actions, *tidy(scene, self.standings.values()))

    def _step(self, name: str, cluster: Cluster) -> tuple[Action, ...]:
        others = busy(one for other, one in self.standings.items() if other != name)

        def judged(seen: Cluster, command: Command) -> Invalid | None:
            return still_holds(seen, command, others)

        step = advance(scene_of(cluster), self.standings[name], judged)
        asks = any(isinstance(one, CreateNodeClaim) for one in step.actions)
        self.standings[name] = asked_for(step.standing, cluster.taken_at) if asks else step.standing
        return step.actions


def look(cluster: Cluster) -> Sweep:
    return sweep(cluster, options=Options())


def allowed(budgets: tuple[Budget, ...], total: int) -> float:
    if any(one.nodes == "odd" for one in budgets):
        return 0
    return min(
        (
            math.ceil(total * int(one.nodes[:-1]) / 100) if one.nodes.endswith("%") else int(one.nodes)
            for one in budgets
        ),
        default=math.inf,
    )


def count(of_cluster: Cluster, *, proposals: bool) -> tuple[int, int]:
    """Answer how many nodes there are, and how many of them go or are broken."""
    mine = [
        state
        for state in state_nodes(of_cluster)
        if state.claim is not None
        and state.is_initialized()
        and not is_true(state.claim.conditions, "InstanceTerminating")
    ]
    return len(mine), sum(goes(state) or (proposals and is_proposed(state)) for state in mine)


def goes(state: StateNode) -> bool:
    return is_going(state) or state.node is None or not state.node.is_ready()


def is_proposed(state: StateNode) -> bool:
    known = condition(state.claim.conditions, "DisruptionReason") if state.claim is not None else None
    return known is not None and known.status == "True"


@given(clusters())
def test_a_budget_is_never_exceeded(start: Cluster) -> None:
    little, planner = Little(start), Planner()
    for _ in range(4):
        before = little.cluster()
        total, going = count(before, proposals=True)
        little.perform(planner.look(before))
        after = count(little.cluster(), proposals=True)[1]
        assert after <= max(allowed(start.node_pools[0].budgets, total), going)
        little.pass_time(timedelta(seconds=6))


@given(clusters())
def test_a_budget_holds_while_the_lifecycle_goes_on(start: Cluster) -> None:
    little, planner = Little(start), Planner()
    for _ in range(6):
        before = little.cluster()
        total, going = count(before, proposals=False)
        actions = planner.look(before)
        little.perform(actions)
        assert len(of(DeleteObject, actions)) <= max(allowed(start.node_pools[0].budgets, total) - going, 0)
        little.perform(keep(little.cluster()))
        little.pass_time(timedelta(seconds=6))


@given(orders())
def test_the_order_of_lists_changes_no_decision(pair: tuple[Cluster, Cluster]) -> None:
    one, other = pair
    assert look(one) == look(one)
    assert look(one) == look(other)


@given(clusters(), st.frozensets(st.sampled_from(("node-a", "node-b"))))
def test_every_node_gets_one_verdict(start: Cluster, engaged: frozenset[str]) -> None:
    found = sweep(start, options=Options(), busy=engaged)
    names = [state.name for state in state_nodes(start)]
    assert [one.node for one in found.verdicts] == sorted(name for name in names if name not in engaged)
    assert not engaged & {node for one in found.commands for node in one.nodes()}


@given(clusters())
def test_a_node_with_a_pod_that_must_stay_is_never_disrupted(start: Cluster) -> None:
    disrupted = {node for one in look(start).commands for node in one.nodes()}
    for pod in start.pods:
        if pod.meta.annotation(labels.DO_NOT_DISRUPT) == "true" and pod.is_active():
            assert pod.node_name not in disrupted
        if any(one.selects(pod) and one.disruptions_allowed == 0 for one in start.budgets) and pod.is_evictable(NOW):
            assert pod.node_name not in disrupted


@given(clusters())
def test_nothing_is_deleted_that_was_not_proposed_five_seconds_before(start: Cluster) -> None:
    little, planner = Little(start), Planner()
    for _ in range(4):
        before = little.cluster()
        claims = {claim.name: claim for claim in before.node_claims}
        actions = planner.look(before)
        for one in of(DeleteObject, actions):
            known = condition(claims[one.name].conditions, "DisruptionReason")
            assert known is not None
            assert known.since is not None
            assert before.taken_at - known.since >= timedelta(seconds=5)
        little.perform(actions)
        little.pass_time(timedelta(seconds=3))


@given(clusters())
def test_repeated_it_comes_to_rest(start: Cluster) -> None:
    little, planner = Little(start), Planner()
    for _ in range(8):
        little.perform(planner.look(little.cluster()))
        little.pass_time(timedelta(seconds=10))
    last = planner.look(little.cluster())
    assert not [one for one in last if isinstance(one, TaintNode | PatchStatus | DeleteObject | EvictPod)], last


@given(clusters())
def test_whoever_has_lost_all_memory_takes_back_what_another_began(start: Cluster) -> None:
    little = Little(start)
    little.perform(Planner().look(little.cluster()))
    little.perform(tidy(scene_of(little.cluster()), ()))
    left = [one for one in state_nodes(little.cluster()) if one.node is not None and one.is_initialized()]
    assert not [one.name for one in left if one.claim is not None and is_touched(one)]


@given(
    st.lists(st.builds(Budget, nodes=st.text("0123456789%x", max_size=4)), max_size=3).map(tuple), st.integers(0, 200)
)
def test_more_budgets_never_allow_more(budgets: tuple[Budget, ...], total: int) -> None:
    every = allowance(changed(POOL, budgets=budgets), "Empty", total, NOW).count
    assert 0 <= every <= UNLIMITED
    for number in range(len(budgets)):
        fewer = budgets[:number] + budgets[number + 1 :]
        assert every <= allowance(changed(POOL, budgets=fewer), "Empty", total, NOW).count
