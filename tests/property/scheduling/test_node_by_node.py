"""The engine that knows nodes as bits places pods exactly as one does that asks every node, one after the other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.scheduling.constraints.topology_constraint import NodeDomains
from shared.decide.scheduling.nodes.node_index import Nodes
from shared.decide.scheduling.nodes.open_node_claim import Fit, OpenNodeClaim, find_fit
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.new_node_placement import PodRange
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.stage_compiler import CompiledStage
from shared.decide.scheduling.search import local_search
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.core.requirements import Requirement
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import AffinityTerm, Pod, PreferredTerm, SpreadConstraint
from tests.property.scheduling.test_scheduling_laws import REDUCED_EXAMPLE_COUNT, Recipe, generate_recipes
from tests.support.catalogues import make_requirements
from tests.support.snapshot_decisions import solve


class OneByOne(FirstFitPacking):
    """It asks every node for every pod, with all the groups that bind it, and remembers nothing of the answers.

    It keeps the bits of nodes and groups up to date for what is restored and rolled back in local search.
    """

    def _place_relaxing(self, pod_class: PodEquivalenceClass, placed_count: int) -> tuple[int, bool]:
        if not any(pod_class.binding_groups):
            return super()._place_relaxing(pod_class, placed_count)
        for place in range(placed_count, len(pod_class.pods)):
            for number, aim in enumerate(pod_class.compiled_stages):
                if not aim.stage.is_contradictory and self._place_at_stage(pod_class, aim, (place, place + 1)):
                    self.relaxed_preferences += number
                    pod_class.pods.insert(placed_count, pod_class.pods.pop(place))
                    return placed_count + 1, False
        return placed_count, True

    def _fill_nodes(
        self, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, pod_range: PodRange, allowed_nodes: Nodes
    ) -> int:
        queued_pods, placed, front = pod_class.pods[slice(*pod_range)], 0, len(self.existing_nodes)
        for number in range(front):
            if allowed_nodes >> number & 1:
                placed += self._fill_existing_node_one_by_one(number, pod_class, compiled_stage, queued_pods[placed:])
        for node in sorted(self.open_nodes, key=lambda one: (len(one.pods), one.number)):
            remaining_pods = (
                queued_pods[placed : placed + 1]
                if any(pod_class.binding_groups) and allowed_nodes == -1
                else queued_pods[placed:]
            )
            if remaining_pods and allowed_nodes >> (front + node.number) & 1:
                placed += self._fill_open_node_one_by_one(node, pod_class, compiled_stage, remaining_pods)
        return placed

    def _fill_existing_node_one_by_one(
        self, number: int, pods: PodEquivalenceClass, aim: CompiledStage, queued_pods: list[Pod]
    ) -> int:
        node = self.existing_nodes[number]
        placed = 0
        for pod in queued_pods:
            choices = self.topology.build_domain_choices(
                self._list_bound_groups(aim), pods.selecting_groups, node.node_domains
            )
            fits = node.can_admit(aim.stage) and any(
                node.can_satisfy(alternative) for alternative in pods.volume_alternatives
            )
            if not (fits and any(node.can_satisfy(choice) for choice in choices) and node.count_fitting_pods(pods, 1)):
                break
            self._assign_to_existing_node(number, pods, [pod])
            self.assignments.append((number, pods, aim, [pod]))
            placed += 1
        return placed

    def _fill_open_node_one_by_one(
        self, node: OpenNodeClaim, pods: PodEquivalenceClass, aim: CompiledStage, queued_pods: list[Pod]
    ) -> int:
        fit = find_fit(
            node,
            pods,
            1 if any(pods.binding_groups) else len(queued_pods),
            self._list_narrowed_templates(node, pods, aim),
        )
        if fit is not None:
            node_number = len(self.existing_nodes) + node.number
            self._accept_fit(node_number, node, pods, fit, queued_pods)
            self.assignments.append((node_number, pods, aim, queued_pods[: fit.count]))
        return 0 if fit is None else fit.count

    def _list_narrowed_templates(
        self, node: OpenNodeClaim, pods: PodEquivalenceClass, aim: CompiledStage
    ) -> tuple[NarrowedTemplate, ...]:
        template = node.template
        narrowed_templates = []
        for narrowed in template.narrow_to_constraints(node.state, aim.node_constraints):
            for choice in self.topology.build_domain_choices(
                self._list_bound_groups(aim), pods.selecting_groups, self._place(node, narrowed)
            ):
                narrowed_template = template.narrow(narrowed, choice)
                narrowed_templates += [] if narrowed_template is None else [narrowed_template]
        return tuple(narrowed_templates)

    def _compute_max_count(self, host: str, stage: CompiledStage, count: int) -> int:
        return 1 if host and self._list_bound_groups(stage) else count

    def _find_first_fit(
        self, node: OpenNodeClaim, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, count: int
    ) -> Fit | None:
        possible = self._list_narrowed_templates(node, pod_class, compiled_stage)
        return super()._find_first_fit(node, pod_class, compiled_stage, count) if possible else None

    def _accept_fit(
        self, node_number: int, node: OpenNodeClaim, pod_class: PodEquivalenceClass, fit: Fit, queued_pods: list[Pod]
    ) -> None:
        assert node_number == len(self.existing_nodes) + node.number
        if self.savepoints:
            self.savepoints[-1].save_open_node(node.number, node)
        names, node_bit = [pod.name for pod in queued_pods[: fit.count]], 1 << node_number
        self.nodes.update_pod_count(node_bit, len(node.pods), len(node.pods) + fit.count)
        if fit.state is not node.state:
            self.nodes.move_node(node_number, node.template, fit.state)
        node.used, node.mask, node.state = fit.used, fit.mask, fit.state
        node.ports.extend(pod_class.ports)
        node.pods.extend(names)
        place = self._place(node, fit.state)
        before, node.uncounted_pods = node.uncounted_pods, []
        for group_numbers, name in [
            *(((group,), name) for group, name in before),
            *((pod_class.counting_groups, name) for name in names),
        ]:
            undecided_groups = self.topology.record_pods(group_numbers, place, 1, node_bit)
            node.uncounted_pods.extend((group, name) for group in undecided_groups)

    def _list_bound_groups(self, aim: CompiledStage) -> list[int]:
        return [
            bond.group for bond in (*aim.topology_bindings.hostname_bindings, *aim.topology_bindings.domain_bindings)
        ]

    def _place(self, node: OpenNodeClaim, state: NarrowedTemplate) -> NodeDomains:
        place = node.template.get_node_domains(state)
        host = Requirement(key=HOSTNAME, values=frozenset((node.host,)))
        return replace(place, by_key={**place.by_key, HOSTNAME: host})


def solve_one_by_one(cluster: ClusterSnapshot, options: SchedulingOptions) -> Placement:
    """Solve, asking each node for each pod."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.decide.scheduling.scheduling_problem.FirstFitPacking", OneByOne)
        return solve_in_trials(cluster, options)


def solve_in_trials(cluster: ClusterSnapshot, options: SchedulingOptions) -> Placement:
    """Solve with a number of trials of local search that does not depend on their steps, which schedulers differ in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_search, "MAX_EFFORT_STEPS", 10**9)
        patch.setattr(local_search, "STEPS_PER_TURN", 10**9)
        patch.setattr(local_search, "MAX_FAILED_TRIALS_PER_NODE", 3)
        return solve(cluster, options=options)


KEYS = st.sampled_from((HOSTNAME, ZONE, CAPACITY_TYPE, "team"))
SKEWS = st.integers(1, 3)
WHETHER = st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))
SELECTORS = st.sampled_from(
    [build_label_selector({"app": f"app-{number}"}) for number in range(3)] + [build_label_selector({"tier": "x"})]
)
FIRM = st.builds(AffinityTerm, topology_key=KEYS, selector=SELECTORS)
SOFT = st.builds(AffinityTerm, topology_key=KEYS, selector=SELECTORS, weight=st.integers(1, 9))
SPREAD = st.builds(
    SpreadConstraint,
    topology_key=KEYS,
    max_skew=SKEWS,
    selector=SELECTORS,
    when_unsatisfiable=WHETHER,
    min_domains=st.sampled_from((None, None, 2, 4)),
    match_label_keys=st.sampled_from(((), ("tier",))),
    node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
)
PREFERRED = (
    PreferredTerm(weight=5, requirements=make_requirements((ZONE, "In", ("b",)))),
    PreferredTerm(weight=2, requirements=make_requirements((ARCH, "In", ("arm64",)))),
)
EXTRAS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.builds(lambda term: {"pod_anti_affinity": (term,)}, FIRM),
    st.builds(lambda term: {"pod_affinity": (term,)}, FIRM),
    st.builds(lambda one, other: {"preferred_pod_anti_affinity": (one, other)}, SOFT, SOFT),
    st.builds(lambda term: {"preferred_pod_affinity": (term,)}, SOFT),
    st.builds(lambda some: {"spread": tuple(some)}, st.lists(SPREAD, min_size=1, max_size=2)),
    st.just({"preferred_terms": PREFERRED}),
    st.builds(lambda port: {"host_ports": (HostPort(port=port),)}, st.sampled_from((80, 81))),
)
OPTIONS = st.builds(
    SchedulingOptions,
    packing=st.sampled_from(("Greedy", "Priced")),
    preference_policy=st.sampled_from(("Respect", "Respect", "Ignore")),
    min_values_policy=st.sampled_from(("Strict", "BestEffort")),
)


@st.composite
def generate_crowd(draw: st.DrawFn) -> ClusterSnapshot:
    """Draw a small cluster whose pods have topology constraints of every kind and of which some pods are running."""
    recipe: Recipe = draw(generate_recipes())
    cluster = recipe.build_cluster()
    kinds = {f"app-{number}": draw(st.tuples(EXTRAS, st.sampled_from("xy"))) for number in range(len(recipe.kinds))}
    pods = []
    for pod in cluster.pods:
        extra, tier = kinds[pod.meta.get_label("app")]
        meta = replace(pod.meta, labels=(*pod.meta.labels, ("tier", tier)))
        changed_pod = replace(pod, meta=meta, spec=replace(pod.spec, **extra))
        if cluster.nodes and draw(st.integers(0, 7)) == 0:
            changed_pod = replace(changed_pod, node_name=cluster.nodes[0].name, conditions=(), phase="Running")
        pods.append(changed_pod)
    min_types = draw(st.sampled_from((0, 0, 2, 3)))
    various = make_requirements(
        (INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: min_types} if min_types else None
    )
    pools = (replace(owner, requirements=owner.requirements & various) for owner in cluster.node_pools)
    return replace(cluster, pods=tuple(draw(st.permutations(pods))), node_pools=tuple(pools))


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # the snapshot is an argument: 52 kB
@given(generate_crowd(), OPTIONS)
def test_bitset_scheduler_places_pods_exactly_like_the_node_by_node_scheduler(
    cluster: ClusterSnapshot, options: SchedulingOptions
) -> None:
    assert solve_in_trials(cluster, options) == solve_one_by_one(cluster, options)


@settings(max_examples=REDUCED_EXAMPLE_COUNT)
@given(generate_crowd(), OPTIONS)
def test_input_list_order_does_not_change_placements(cluster: ClusterSnapshot, options: SchedulingOptions) -> None:
    turned = replace(cluster, pods=cluster.pods[::-1], node_pools=cluster.node_pools[::-1], nodes=cluster.nodes[::-1])
    assert solve(turned, options=options) == solve(cluster, options=options)
