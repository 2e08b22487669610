"""The engine that knows nodes as bits places pods exactly as one does that asks every node, one after the other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.pods import AffinityTerm, HostPort, Pod, PreferredTerm, SpreadConstraint
from shared.model.requirements import Requirement
from shared.model.selectors import selector
from shared.scheduling.aims import Aim
from shared.scheduling.demand import PodClass
from shared.scheduling.nodeset import Nodes
from shared.scheduling.opened import Offer, Opened, offer
from shared.scheduling.pack import Packing, Part
from shared.scheduling.placement import Options, Placement
from shared.scheduling.rules import Place
from shared.scheduling.solve import solve
from shared.scheduling.templates import Narrowed
from tests.property.test_scheduling_laws import FEW, Recipe, recipes
from tests.unit.catalogues import needs


class OneByOne(Packing):
    """It asks every node for every pod, with all the groups that bind it, and remembers nothing of the answers."""

    def _relaxing(self, pods: PodClass, done: int) -> tuple[int, bool]:
        if not any(pods.bound):
            return super()._relaxing(pods, done)
        for place in range(done, len(pods.pods)):
            for number, aim in enumerate(pods.aims):
                if not aim.stage.is_contradictory and self._sweep(pods, aim, (place, place + 1)):
                    self.given_up += number
                    pods.pods.insert(done, pods.pods.pop(place))
                    return done + 1, False
        return done, True

    def _fill(self, pods: PodClass, aim: Aim, part: Part, within: Nodes) -> int:
        some, done, front = pods.pods[slice(*part)], 0, len(self.standing)
        for number in range(front):
            if within >> number & 1:
                done += self._stand(number, pods, aim, some[done:])
        for node in sorted(self.opened, key=lambda one: (len(one.pods), one.number)):
            left = some[done : done + 1] if any(pods.bound) and within == -1 else some[done:]
            if left and within >> (front + node.number) & 1:
                done += self._put(node, pods, aim, left)
        return done

    def _stand(self, number: int, pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        node = self.standing[number]
        done = 0
        for pod in some:
            choices = self.topology.choices(self._groups(aim), pods.selecting, node.place)
            fits = node.admits(aim.stage) and any(node.satisfies(one) for one in pods.alternatives)
            if not (fits and any(node.satisfies(one) for one in choices) and node.room(pods, 1)):
                break
            self._settle(number, pods, [pod])
            done += 1
        return done

    def _put(self, node: Opened, pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        found = offer(node, pods, 1 if any(pods.bound) else len(some), self._everywhere(node, pods, aim))
        if found is not None:
            self._take(len(self.standing) + node.number, node, pods, found, some)
        return 0 if found is None else found.count

    def _everywhere(self, node: Opened, pods: PodClass, aim: Aim) -> tuple[Narrowed, ...]:
        template = node.template
        found = []
        for one in template.narrow_to(node.state, aim.wish):
            for choice in self.topology.choices(self._groups(aim), pods.selecting, self._place(node, one)):
                chosen = template.narrow(one, choice)
                found += [] if chosen is None else [chosen]
        return tuple(found)

    def _most(self, host: str, aim: Aim, count: int) -> int:
        return 1 if host and self._groups(aim) else count

    def _first_offer(self, node: Opened, pods: PodClass, aim: Aim, count: int) -> Offer | None:
        possible = self._everywhere(node, pods, aim)
        return super()._first_offer(node, pods, aim, count) if possible else None

    def _take(self, number: int, node: Opened, pods: PodClass, found: Offer, some: list[Pod]) -> None:
        assert number == len(self.standing) + node.number
        names = [pod.name for pod in some[: found.count]]
        node.used, node.mask, node.state = found.used, found.mask, found.state
        node.ports.extend(pods.ports)
        node.pods.extend(names)
        place = self._place(node, found.state)
        before, node.waiting = node.waiting, []
        for counted, name in [*(((group,), name) for group, name in before), *((pods.counted, name) for name in names)]:
            node.waiting.extend((still, name) for still in self.topology.record(counted, place))

    def _groups(self, aim: Aim) -> list[int]:
        return [bond.group for bond in (*aim.bonds.hosts, *aim.bonds.domains)]

    def _place(self, node: Opened, state: Narrowed) -> Place:
        place = node.template.place(state)
        host = Requirement(key=HOSTNAME, values=frozenset((node.host,)))
        return replace(place, by_key={**place.by_key, HOSTNAME: host})


def slowly(cluster: Cluster, options: Options) -> Placement:
    """Solve, one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.scheduling.solve.Packing", OneByOne)
        return solve(cluster, options=options)


KEYS = st.sampled_from((HOSTNAME, ZONE, CAPACITY_TYPE, "team"))
SKEWS = st.integers(1, 3)
WHETHER = st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))
SELECTORS = st.sampled_from([selector({"app": f"app-{number}"}) for number in range(3)] + [selector({"tier": "x"})])
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
    PreferredTerm(weight=5, requirements=needs((ZONE, "In", ("b",)))),
    PreferredTerm(weight=2, requirements=needs((ARCH, "In", ("arm64",)))),
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
    Options,
    packing=st.sampled_from(("Greedy", "Priced")),
    preference_policy=st.sampled_from(("Respect", "Respect", "Ignore")),
    min_values_policy=st.sampled_from(("Strict", "BestEffort")),
)


@st.composite
def crowds(draw: st.DrawFn) -> Cluster:
    """A small world, in which pods look at each other in all the ways there are, and some run already."""
    recipe: Recipe = draw(recipes())
    cluster = recipe.cluster()
    kinds = {f"app-{number}": draw(st.tuples(EXTRAS, st.sampled_from("xy"))) for number in range(len(recipe.kinds))}
    pods = []
    for one in cluster.pods:
        extra, tier = kinds[one.meta.label("app")]
        meta = replace(one.meta, labels=(*one.meta.labels, ("tier", tier)))
        some = replace(one, meta=meta, spec=replace(one.spec, **extra))
        if cluster.nodes and draw(st.integers(0, 7)) == 0:
            some = replace(some, node_name=cluster.nodes[0].name, conditions=(), phase="Running")
        pods.append(some)
    least = draw(st.sampled_from((0, 0, 2, 3)))
    various = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: least} if least else None)
    pools = (replace(owner, requirements=owner.requirements & various) for owner in cluster.node_pools)
    return replace(cluster, pods=tuple(draw(st.permutations(pods))), node_pools=tuple(pools))


@given(crowds(), OPTIONS)
def test_bits_place_every_pod_where_asking_every_node_does(cluster: Cluster, options: Options) -> None:
    assert solve(cluster, options=options) == slowly(cluster, options)


@settings(max_examples=FEW)
@given(crowds(), OPTIONS)
def test_a_crowd_is_placed_the_same_in_whatever_order_it_is_listed(cluster: Cluster, options: Options) -> None:
    turned = replace(cluster, pods=cluster.pods[::-1], node_pools=cluster.node_pools[::-1], nodes=cluster.nodes[::-1])
    assert solve(turned, options=options) == solve(cluster, options=options)
