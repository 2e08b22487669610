"""Laws of every placement, on small worlds of all kinds, judged by rules written down a second time."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias, TypeVar

import msgspec
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, NODEPOOL, WELL_KNOWN, ZONE
from shared.model.core.resources import Resources, build_resources, sum_resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint, Toleration, find_untolerated_taint
from shared.model.decisions.placement import CheapestOffering, NewNodeClaim, Placement
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import AffinityTerm, Pod, PodSpec, SpreadConstraint, build_strict_requirements
from shared.model.kubernetes.workloads import DaemonSet
from tests.support.catalogues import (
    launch_claim,
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

Law = TypeVar("Law", bound=Callable[..., None])
Offer: TypeAlias = tuple[InstanceType, Offering]
SIZE = "karpenter.k8s.aws/instance-size"
NOTHING = CheapestOffering(instance_type="", zone="", capacity_type="", price_usd_per_hour=0.0)
TAINTS = tuple(Taint(key=key, effect="NoSchedule") for key in ("x", "y"))
TYPES = tuple(
    make_instance_type(
        f"{arch[:3]}-{shape}.{cpu:02d}",
        cpu,
        cpu * memory,
        arch=arch,
        zones=("a", "b", "c") if cpu < 16 else ("a", "b"),
        capacity_types=("spot", "on-demand"),
        overhead={"cpu": "100m", "memory": "200Mi"},
        labels={SIZE: ("small",) if cpu < 8 else ()},
    )
    for arch in ("amd64", "arm64")
    for shape, memory in (("c", 2), ("r", 8))
    for cpu in (2, 4, 8, 16)
)

TERMS = (
    (),
    (),
    (make_requirements((ZONE, "In", ("a", "b"))),),
    (make_requirements((ZONE, "NotIn", ("a",))),),
    (make_requirements((ARCH, "In", ("arm64",))),),
    (make_requirements((ZONE, "In", ("z",))), make_requirements((CAPACITY_TYPE, "In", ("on-demand",)))),
    (make_requirements((SIZE, "In", ("small",))),),
    (make_requirements((SIZE, "DoesNotExist", ())),),
    (make_requirements(("team", "In", ("t1",))),),
    (make_requirements(("team", "NotIn", ("t1",))),),
)
DAEMONS = (
    (),
    (make_daemon_set("all"),),
    (make_daemon_set("all"), make_daemon_set("arm", "500m", node_selector=((ARCH, "arm64"),))),
    (make_daemon_set("small", "300m", required_terms=(make_requirements((SIZE, "In", ("small",))),)),),
)
LIMITS = (None, None, None, build_resources({"cpu": 20_000}), build_resources({"nodes": 2}))
RULE_COUNT = 5


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Equal pods, in few words."""

    tolerates: int
    term: int
    rule: int
    cpu: int
    memory: int
    count: int

    def build_pods(self, app: str) -> list[Pod]:
        """The pods."""
        template_pod = make_pod(
            "p",
            f"{self.cpu * 100}m",
            f"{self.memory * 32}Mi",
            labels={"app": app},
            tolerations=tuple(Toleration(key=taint.key, operator="Exists") for taint in TAINTS[: self.tolerates]),
            required_terms=TERMS[self.term],
            **_build_constraints(app)[self.rule],
        )
        names = (f"{app}-{number}" for number in range(self.count))
        return [replace(template_pod, meta=replace(template_pod.meta, name=name, uid=name)) for name in names]


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, in few words: what hypothesis prints."""

    kinds: list[Kind]
    pools: list[tuple[int, int, int, str, int]]
    daemons: int
    nodes: list[int]

    def build_cluster(self) -> ClusterSnapshot:
        """The cluster."""
        owners = (
            make_node_pool(
                f"pool-{number}",
                weight=weight,
                taints=TAINTS[:taints],
                labels=(("team", "t1"),) * team,
                requirements=make_requirements((ZONE, "In", tuple(zones))) if zones else make_requirements(),
                limits=LIMITS[limit],
            )
            for number, (weight, taints, team, zones, limit) in enumerate(self.pools)
        )
        return make_cluster_snapshot(
            *(kind_pod for number, kind in enumerate(self.kinds) for kind_pod in kind.build_pods(f"app-{number}")),
            types=TYPES,
            node_pools=tuple(owners),
            daemon_sets=DAEMONS[self.daemons],
            nodes=tuple(make_node(f"node-{number}", str(cpu)) for number, cpu in enumerate(self.nodes)),
        )


def _build_constraints(app: str) -> tuple[dict[str, Any], ...]:
    selector = build_label_selector({"app": app})
    return (
        {},
        {"pod_anti_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=selector),)},
        {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=selector),)},
        {"spread": (SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=selector),)},
        {"spread": (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector),)},
    )


def generate_recipes(rules: int = RULE_COUNT) -> st.SearchStrategy[Recipe]:
    """Up to three dozen pods of up to six kinds, up to three pools and two nodes."""
    kinds = st.builds(
        Kind,
        tolerates=st.integers(0, 2),
        term=st.integers(0, len(TERMS) - 1),
        rule=st.integers(0, rules - 1),
        cpu=st.integers(0, 60),
        memory=st.integers(1, 400),
        count=st.integers(1, 6),
    )
    owners = st.tuples(
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 1),
        st.sampled_from(("", "", "a", "ab")),
        st.integers(0, len(LIMITS) - 1),
    )
    return st.builds(
        Recipe,
        kinds=st.lists(kinds, min_size=1, max_size=6),
        pools=st.lists(owners, min_size=1, max_size=3),
        daemons=st.integers(0, len(DAEMONS) - 1),
        nodes=st.lists(st.integers(1, 8), max_size=2),
    )


def list_offers(new: NewNodeClaim) -> list[Offer]:
    """What EC2 may make of the node."""
    types = {listed_type.name: listed_type for listed_type in TYPES}
    return [
        (types[name], offering)
        for name in new.instance_types
        for offering in types[name].offerings
        if new.requirements[ZONE].has(offering.zone) and new.requirements[CAPACITY_TYPE].has(offering.capacity_type)
    ]


def build_node_labels(new: NewNodeClaim, offer: Offer, owner: NodePool) -> dict[str, str]:
    """The labels that the node would have, as a kubelet and a claim write them."""
    type_labels = {item.key: min(item.values) for item in offer[0].requirements if item.values}
    custom = {item.key: item.choose_value() for item in new.requirements if item.key not in WELL_KNOWN}
    offering_labels = {ZONE: offer[1].zone, CAPACITY_TYPE: offer[1].capacity_type, NODEPOOL: owner.name}
    return (
        type_labels
        | {key: value for key, value in custom.items() if value and key not in type_labels}
        | dict(owner.labels)
        | offering_labels
    )


def is_selected(workload: Pod | DaemonSet, labels: dict[str, str]) -> bool:
    """Whether kube-scheduler would let the pod on a node with *labels*."""
    count = max(1, len(workload.spec.required_terms))
    return any(
        all(item.has(labels[item.key]) if item.key in labels else item.is_tolerant() for item in term)
        for term in (build_strict_requirements(workload.spec, number) for number in range(count))
    )


def sum_daemon_requests(cluster: ClusterSnapshot, labels: dict[str, str], taints: tuple[Taint, ...]) -> Resources:
    """What daemons take on a node."""
    return sum_resources(
        daemon_set.spec.requests
        for daemon_set in cluster.daemon_sets
        if is_selected(daemon_set, labels) and find_untolerated_taint(taints, daemon_set.spec.tolerations) is None
    )


@lru_cache(maxsize=256)
def _solve_encoded(encoded_recipe: bytes) -> Placement:
    return solve(msgspec.json.decode(encoded_recipe, type=Recipe).build_cluster())


def solve_recipe(recipe: Recipe) -> Placement:
    """Return the placement; equal recipes are solved once for all laws."""
    return _solve_encoded(msgspec.json.encode(recipe))


def use_same_worlds(law: Law) -> Law:
    """Run the law on the same worlds as the other laws of its kind, unless draws are random."""
    return seed(1)(law) if settings().derandomize else law


REDUCED_EXAMPLE_COUNT = max(1, settings().max_examples * 2 // 5)
"""Worlds for laws that solve each of them anew."""


@use_same_worlds
@given(generate_recipes())
def test_every_pod_appears_exactly_once_in_a_placement(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    placement = solve_recipe(recipe)
    place_counts = Counter(name for new in placement.new_nodes for name in new.pods)
    place_counts.update(name for fit in placement.existing for name in fit.pods)
    place_counts.update(verdict.pod for verdict in placement.unschedulable)
    assert place_counts == Counter(pending_pod.name for pending_pod in cluster.pods)


@use_same_worlds
@given(generate_recipes())
def test_every_offered_instance_type_fits_its_pods_and_daemons(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    by_name, owners = (
        {pending_pod.name: pending_pod for pending_pod in cluster.pods},
        {node_pool.name: node_pool for node_pool in cluster.node_pools},
    )
    for new in solve_recipe(recipe).new_nodes:
        placed_pods, owner = [by_name[name] for name in new.pods], owners[new.node_pool]
        assert list_offers(new)
        for offer in list_offers(new):
            labels = build_node_labels(new, offer, owner)
            needed = sum_resources(placed_pod.spec.requests for placed_pod in placed_pods) + sum_daemon_requests(
                cluster, labels, owner.taints
            )
            assert needed.can_fit(offer[0].allocatable)
            assert all(is_selected(placed_pod, labels) for placed_pod in placed_pods)
        assert all(
            find_untolerated_taint(owner.taints, placed_pod.spec.tolerations) is None for placed_pod in placed_pods
        )


@use_same_worlds
@given(generate_recipes())
def test_cheapest_offering_is_reported_and_its_instance_type_listed_first(recipe: Recipe) -> None:
    for new in solve_recipe(recipe).new_nodes:
        price = min(offering.price_usd_per_hour for _, offering in list_offers(new))
        assert new.cheapest.price_usd_per_hour == price
        assert new.instance_types[0] == new.cheapest.instance_type


@use_same_worlds
@given(generate_recipes())
def test_existing_nodes_are_not_overcommitted(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    by_name, nodes = (
        {pending_pod.name: pending_pod for pending_pod in cluster.pods},
        {listed_node.name: listed_node for listed_node in cluster.nodes},
    )
    for fit in solve_recipe(recipe).existing:
        existing_node = nodes[fit.node]
        labels = dict(existing_node.meta.labels)
        placed_pods = [by_name[name] for name in fit.pods]
        needed = sum_resources(placed_pod.spec.requests for placed_pod in placed_pods) + sum_daemon_requests(
            cluster, labels, ()
        )
        assert needed.can_fit(existing_node.allocatable)
        assert all(is_selected(placed_pod, labels) for placed_pod in placed_pods)


@use_same_worlds
@given(generate_recipes())
def test_nodepool_limits_hold_for_every_possible_launch(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    placement = solve_recipe(recipe)
    for owner in cluster.node_pools:
        pool_claims = [new for new in placement.new_nodes if new.node_pool == owner.name]
        for name, limit in owner.limits.amounts if owner.limits is not None else ():
            max_amounts = [
                max(listed_type.capacity[name] for listed_type, _ in list_offers(new)) if name != "nodes" else 1
                for new in pool_claims
            ]
            assert sum(max_amounts) <= limit


@use_same_worlds
@settings(max_examples=REDUCED_EXAMPLE_COUNT)
@given(generate_recipes())
def test_input_list_order_does_not_change_placements(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    turned = replace(
        cluster,
        pods=cluster.pods[::-1],
        nodes=cluster.nodes[::-1],
        node_pools=cluster.node_pools[::-1],
        daemon_sets=cluster.daemon_sets[::-1],
        catalog=Catalog(region="nowhere", instance_types=TYPES[::-1]),
    )
    assert solve(turned) == solve(cluster) == solve_recipe(recipe)


@use_same_worlds
@settings(max_examples=REDUCED_EXAMPLE_COUNT)
@given(generate_recipes())
def test_nodeclaim_without_an_instance_prevents_a_second_nodeclaim(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    placement = solve_recipe(recipe)
    second = solve(replace(cluster, node_claims=build_node_claims(placement, cluster)))
    assert not second.new_nodes
    assert {verdict.pod for verdict in second.unschedulable} <= {verdict.pod for verdict in placement.unschedulable}


@use_same_worlds
@settings(max_examples=REDUCED_EXAMPLE_COUNT)
@given(generate_recipes(), st.data())
def test_nodeclaim_with_an_instance_prevents_a_second_nodeclaim(recipe: Recipe, data: st.DataObject) -> None:
    cluster = recipe.build_cluster()
    placement = solve_recipe(recipe)
    started = []
    for claim, new in zip(build_node_claims(placement, cluster), placement.new_nodes, strict=True):
        chosen_type, offering = data.draw(st.sampled_from(list_offers(new)))
        started.append(launch_claim(claim, chosen_type, offering.zone, offering.capacity_type))
    second = solve(replace(cluster, node_claims=tuple(started)))
    assert not {name for new in second.new_nodes for name in new.pods} - {
        verdict.pod for verdict in placement.unschedulable
    }


@given(generate_recipes(rules=1))
def test_unschedulable_pod_is_also_unschedulable_alone(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    free = replace(
        cluster, nodes=(), node_pools=tuple(replace(node_pool, limits=None) for node_pool in cluster.node_pools)
    )
    for verdict in solve(free).unschedulable:
        alone = solve(free, pods=tuple(pending_pod for pending_pod in cluster.pods if pending_pod.name == verdict.pod))
        assert alone.unschedulable


@given(generate_recipes(rules=1))
def test_no_offering_fits_a_pod_reported_as_unschedulable(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    free = replace(
        cluster, nodes=(), node_pools=tuple(replace(node_pool, limits=None) for node_pool in cluster.node_pools)
    )
    by_name = {pending_pod.name: pending_pod for pending_pod in cluster.pods}
    for verdict, owner in product(solve(free).unschedulable, free.node_pools):
        unschedulable_pod = by_name[verdict.pod]
        if find_untolerated_taint(owner.taints, unschedulable_pod.spec.tolerations) is not None:
            continue
        for type_ in TYPES:
            for offering in type_.offerings:
                if not owner.requirements[ZONE].has(offering.zone):
                    continue
                blank = NewNodeClaim(name="", node_pool=owner.name, cheapest=NOTHING)
                labels = build_node_labels(blank, (type_, offering), owner)
                needed = unschedulable_pod.spec.requests + sum_daemon_requests(cluster, labels, owner.taints)
                assert not (is_selected(unschedulable_pod, labels) and needed.can_fit(type_.allocatable))


@use_same_worlds
@given(generate_recipes())
def test_affinity_and_topology_spread_constraints_hold_on_every_host_and_in_every_zone(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    by_name = {pending_pod.name: pending_pod for pending_pod in cluster.pods}
    placement = solve_recipe(recipe)
    zones_by_node = {new.name: new.requirements[ZONE].values for new in placement.new_nodes}
    zones_by_node |= {fit.node: frozenset("a") for fit in placement.existing}
    on = {new.name: new.pods for new in placement.new_nodes} | {fit.node: fit.pods for fit in placement.existing}
    hosts = Counter((host, by_name[name].spec, _get_app(by_name[name])) for host, names in on.items() for name in names)
    zones: dict[tuple[PodSpec, str], Counter[str]] = {}
    for (host, spec, app), count in hosts.items():
        keys = [term.topology_key for term in spec.pod_anti_affinity] + [
            constraint.topology_key for constraint in spec.spread
        ]
        assert count <= (1 if spec.pod_anti_affinity else 2) or HOSTNAME not in keys
        if ZONE in (*keys, *(affinity_term.topology_key for affinity_term in spec.pod_affinity)):
            assert len(zones_by_node[host]) == 1
            zones.setdefault((spec, app), Counter())[min(zones_by_node[host])] += count
    for (spec, _), counts in zones.items():
        assert len(counts) == 1 or not spec.pod_affinity
        assert (
            max(counts.values()) - min(counts[zone] for zone in _list_reachable_zones(spec, cluster)) <= 1
            or not spec.spread
        )


def _get_app(labelled_pod: Pod) -> str:
    return labelled_pod.meta.get_label("app")


def _list_reachable_zones(spec: PodSpec, cluster: ClusterSnapshot) -> list[str]:
    """Zones that some pool makes and that the pod may be in."""
    count = max(1, len(spec.required_terms))
    zone_requirements = [build_strict_requirements(spec, number)[ZONE] for number in range(count)]
    makes = {zone for owner in cluster.node_pools for zone in "abc" if owner.requirements[ZONE].has(zone)}
    return [zone for zone in sorted(makes) if any(item.has(zone) for item in zone_requirements)]
