"""Laws of disruption, for any cluster: of what a sweep decides, and of what becomes of it."""

import math
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.disruption.budgets.budget import UNLIMITED_DISRUPTIONS, compute_allowed_disruptions
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.decide.disruption.orchestration.cleanup import clean_up_commands
from shared.decide.disruption.orchestration.command_state import build_command_state, with_launched_phase
from shared.decide.disruption.orchestration.command_targets import list_command_nodes, list_marked_nodes
from shared.decide.disruption.orchestration.command_transitions import advance_command
from shared.decide.disruption.orchestration.disruption_taint import is_marked_for_disruption
from shared.decide.disruption.orchestration.validation import validate_command
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.decisions.action import Action, CreateNodeClaim, DeleteObject, EvictPod, PatchStatus, TaintNode
from shared.model.decisions.command import CommandInvalidation, CommandState, DisruptionCommand
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod_classes import is_evictable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked
from tests.property.lifecycle.lifecycle_world import Little, generate_cluster, generate_reordered_clusters
from tests.support.lifecycle_cases import NOW, POOL, filter_actions, replace_fields
from tests.support.snapshot_decisions import decide_lifecycle as keep


class Planner:
    """What disrupt does in a cycle, with a memory in place of the table."""

    def __init__(self) -> None:
        """Begin without commands."""
        self.standings: dict[str, CommandState] = {}

    def look(self, cluster: ClusterSnapshot) -> tuple[Action, ...]:
        """Go on with what was begun, begin what a sweep finds; answer the actions."""
        scene = ClusterState(cluster)
        engaged = list_command_nodes(self.standings.values()) | list_marked_nodes(scene)
        actions: list[Action] = []
        for name in sorted(self.standings):
            actions += self._step(name, cluster)
        decision = decide_node_disruption(
            ClusterState(cluster),
            options=SchedulingOptions(),
            command_nodes=engaged | list_command_nodes(self.standings.values()),
        )
        for command in decision.commands:
            self.standings[command.command_id] = build_command_state(command, cluster.taken_at)
            actions += self._step(command.command_id, cluster)
        return (*actions, *clean_up_commands(scene, self.standings.values()))

    def _step(self, name: str, cluster: ClusterSnapshot) -> tuple[Action, ...]:
        other_command_nodes = list_command_nodes(
            command_state for other_name, command_state in self.standings.items() if other_name != name
        )

        def validate(snapshot: ClusterState, command: DisruptionCommand) -> CommandInvalidation | None:
            return validate_command(snapshot, command, other_command_nodes)

        step = advance_command(ClusterState(cluster), self.standings[name], validate)
        asks = any(isinstance(action, CreateNodeClaim) for action in step.actions)
        self.standings[name] = with_launched_phase(step.command_state, cluster.taken_at) if asks else step.command_state
        return step.actions


def decide(cluster: ClusterSnapshot, settings: DisruptionSettings = DEFAULT_SETTINGS) -> DisruptionDecision:
    return decide_node_disruption(ClusterState(cluster), options=SchedulingOptions(), settings=settings)


def compute_allowed_count(budgets: tuple[DisruptionBudget, ...], total: int) -> float:
    if any(budget.nodes == "odd" for budget in budgets):
        return 0
    return min(
        (
            math.ceil(total * int(budget.nodes[:-1]) / 100) if budget.nodes.endswith("%") else int(budget.nodes)
            for budget in budgets
        ),
        default=math.inf,
    )


def count_nodes(of_cluster: ClusterSnapshot, *, proposals: bool) -> tuple[int, int]:
    """Return how many nodes there are, and how many of them are being disrupted or are broken."""
    initialized_nodes = [
        state
        for state in ClusterState(of_cluster).nodes
        if state.claim is not None
        and state.is_initialized()
        and not is_condition_true(state.claim.conditions, "InstanceTerminating")
    ]
    return len(initialized_nodes), sum(
        is_going_or_broken(state) or (proposals and is_proposed(state)) for state in initialized_nodes
    )


def is_going_or_broken(state: StateNode) -> bool:
    return is_deleting_or_marked(state) or state.node is None or not state.node.is_ready()


def is_proposed(state: StateNode) -> bool:
    condition = find_condition(state.claim.conditions, "DisruptionReason") if state.claim is not None else None
    return condition is not None and condition.status == "True"


@given(generate_cluster())
def test_budget_is_never_exceeded(start: ClusterSnapshot) -> None:
    little, planner = Little(start), Planner()
    for _ in range(4):
        before = little.build_snapshot()
        total, going = count_nodes(before, proposals=True)
        little.perform(planner.look(before))
        after = count_nodes(little.build_snapshot(), proposals=True)[1]
        assert after <= max(compute_allowed_count(start.node_pools[0].budgets, total), going)
        little.advance_time(timedelta(seconds=6))


@given(generate_cluster())
def test_budget_holds_while_lifecycle_runs_in_between(start: ClusterSnapshot) -> None:
    little, planner = Little(start), Planner()
    for _ in range(6):
        before = little.build_snapshot()
        total, going = count_nodes(before, proposals=False)
        actions = planner.look(before)
        little.perform(actions)
        assert len(filter_actions(DeleteObject, actions)) <= max(
            compute_allowed_count(start.node_pools[0].budgets, total) - going, 0
        )
        little.perform(keep(little.build_snapshot()))
        little.advance_time(timedelta(seconds=6))


@given(generate_reordered_clusters())
def test_input_list_order_does_not_change_decisions(pair: tuple[ClusterSnapshot, ClusterSnapshot]) -> None:
    snapshot, reordered = pair
    assert decide(snapshot) == decide(snapshot)
    assert decide(snapshot) == decide(reordered)


@given(generate_reordered_clusters(), st.sampled_from((0.0, 0.001, 0.1)), st.sampled_from((0, 60)))
def test_decisions_with_an_eviction_price_and_a_cooldown_are_deterministic(
    pair: tuple[ClusterSnapshot, ClusterSnapshot], price: float, cooldown_minutes: int
) -> None:
    settings = DisruptionSettings(
        eviction_price_usd=price, overlap=NODE_OVERLAP_PERIOD, workload_cooldown=timedelta(minutes=cooldown_minutes)
    )
    snapshot, reordered = pair
    assert decide(snapshot, settings) == decide(snapshot, settings) == decide(reordered, settings)


@given(generate_cluster(), st.frozensets(st.sampled_from(("node-a", "node-b"))))
def test_every_node_gets_exactly_one_verdict(start: ClusterSnapshot, engaged: frozenset[str]) -> None:
    decision = decide_node_disruption(ClusterState(start), options=SchedulingOptions(), command_nodes=engaged)
    names = [state.name for state in ClusterState(start).nodes]
    assert [verdict.node for verdict in decision.verdicts] == sorted(name for name in names if name not in engaged)
    assert not engaged & {node for command in decision.commands for node in command.list_node_names()}


@given(generate_cluster())
def test_node_with_a_do_not_disrupt_or_pdb_blocked_pod_is_never_disrupted(start: ClusterSnapshot) -> None:
    disrupted = {node for command in decide(start).commands for node in command.list_node_names()}
    for pod in start.pods:
        if pod.meta.get_annotation(labels.DO_NOT_DISRUPT) == "true" and pod.is_active():
            assert pod.node_name not in disrupted
        if any(budget.is_match(pod) and budget.disruptions_allowed == 0 for budget in start.budgets) and is_evictable(
            pod, NOW
        ):
            assert pod.node_name not in disrupted


@given(generate_cluster())
def test_nodeclaim_is_deleted_only_five_seconds_after_its_proposal(start: ClusterSnapshot) -> None:
    little, planner = Little(start), Planner()
    for _ in range(4):
        before = little.build_snapshot()
        claims = {claim.name: claim for claim in before.node_claims}
        actions = planner.look(before)
        for deletion in filter_actions(DeleteObject, actions):
            condition = find_condition(claims[deletion.name].conditions, "DisruptionReason")
            assert condition is not None
            assert condition.since is not None
            assert before.taken_at - condition.since >= timedelta(seconds=5)
        little.perform(actions)
        little.advance_time(timedelta(seconds=3))


@given(generate_cluster())
def test_repeated_disruption_reaches_a_fixed_point(start: ClusterSnapshot) -> None:
    little, planner = Little(start), Planner()
    for _ in range(8):
        little.perform(planner.look(little.build_snapshot()))
        little.advance_time(timedelta(seconds=10))
    last = planner.look(little.build_snapshot())
    assert not [action for action in last if isinstance(action, TaintNode | PatchStatus | DeleteObject | EvictPod)], (
        last
    )


@given(generate_cluster())
def test_cleanup_without_stored_commands_removes_all_disruption_marks(start: ClusterSnapshot) -> None:
    little = Little(start)
    little.perform(Planner().look(little.build_snapshot()))
    little.perform(clean_up_commands(ClusterState(little.build_snapshot()), ()))
    states = [
        one for one in ClusterState(little.build_snapshot()).nodes if one.node is not None and one.is_initialized()
    ]
    assert not [state.name for state in states if state.claim is not None and is_marked_for_disruption(state)]


@given(
    st.lists(st.builds(DisruptionBudget, nodes=st.text("0123456789%x", max_size=4)), max_size=3).map(tuple),
    st.integers(0, 200),
)
def test_additional_budgets_never_allow_more_disruptions(budgets: tuple[DisruptionBudget, ...], total: int) -> None:
    allowed_count = compute_allowed_disruptions(replace_fields(POOL, budgets=budgets), "Empty", total, NOW).count
    assert 0 <= allowed_count <= UNLIMITED_DISRUPTIONS
    for number in range(len(budgets)):
        fewer_budgets = budgets[:number] + budgets[number + 1 :]
        assert (
            allowed_count
            <= compute_allowed_disruptions(replace_fields(POOL, budgets=fewer_budgets), "Empty", total, NOW).count
        )
