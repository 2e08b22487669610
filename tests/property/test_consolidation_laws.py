"""What holds after every step of disruption, whatever the fleet: pods fit, savings are real, budgets hold."""

from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.disruption.aftermath import after
from shared.disruption.prices import PriceList
from shared.disruption.sweep import Sweep
from shared.disruption.validation import still_holds
from shared.model.cluster import Cluster
from shared.model.labels import DO_NOT_DISRUPT, HOSTNAME
from shared.model.pods import AffinityTerm, Pod
from shared.model.selectors import selector
from shared.model.state import state_nodes
from tests.unit.disruption_fleet import BOTH, Machine, fleet, machine, percent, swept, web

CPUS = (2, 4, 8, 16)
SIZES = ("100m", "500m", "900m", "1500m", "3")
APART = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "apart"})),)


@st.composite
def machines(draw: st.DrawFn, number: int) -> Machine:
    """A node with some pods that it has room for."""
    cpu = draw(st.sampled_from(CPUS))
    sizes = draw(st.lists(st.sampled_from(SIZES), max_size=5))
    left, pods = cpu * 1000, list[Pod]()
    for place, size in enumerate(sizes):
        milli = int(size[:-1]) if size.endswith("m") else int(size) * 1000
        if milli <= left:
            left -= milli
            rules = {"pod_anti_affinity": APART, "labels": {"app": "apart"}} if draw(st.integers(0, 5)) == 0 else {}
            if not rules or not any(one.spec.pod_anti_affinity for one in pods):
                pods.append(web(f"{number}-{place}", size, **rules))
    held = {DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 7)) == 0 else {}
    kind = draw(st.sampled_from(("spot", "on-demand")))
    zone = draw(st.sampled_from("abc"))
    return machine(f"n{number}", *pods, cpu=cpu, capacity_type=kind, zone=zone, annotations=held)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Cluster, int]:
    """A cluster, and what its budget allows in per cent."""
    some = [draw(machines(number)) for number in range(draw(st.integers(1, 7)))]
    share = draw(st.sampled_from((20, 50, 100)))
    return fleet(*some, pools=(percent(f"{share}%"),), types=BOTH), share


def price(cluster: Cluster) -> float:
    prices = PriceList(cluster.catalogue)
    return sum(prices.price(one.meta, "default") for one in state_nodes(cluster))


def fits(cluster: Cluster) -> bool:
    """Whether no node has more than it can hold, and no two pods that are to be apart are together."""
    states = state_nodes(cluster)
    apart = [sum(bool(pod.spec.pod_anti_affinity) for pod in one.pods) for one in states]
    return all(amount >= 0 for one in states for _, amount in one.available().amounts) and max(apart, default=0) < 2


def steps(found: Sweep, cluster: Cluster) -> list[Cluster]:
    seen = [cluster]
    for draft in found.drafts:
        seen.append(after(seen[-1], (draft,)))
    return seen


@settings(max_examples=60)
@given(fleets())
def test_after_every_step_every_pod_runs_and_fits(some: tuple[Cluster, int]) -> None:
    cluster, _ = some
    for one in steps(swept(cluster), cluster):
        assert fits(one)
        assert all(pod.node_name in {node.name for node in one.nodes} for pod in one.pods)


@settings(max_examples=60)
@given(fleets())
def test_savings_are_real_at_the_offerings_prices(some: tuple[Cluster, int]) -> None:
    cluster, _ = some
    found = swept(cluster)
    seen = steps(found, cluster)
    for draft, old, new in zip(found.drafts, seen, seen[1:], strict=False):
        assert abs(price(old) - price(new) - draft.savings_usd_per_hour) < 1e-9
        assert draft.savings_usd_per_hour > 0


@settings(max_examples=60)
@given(fleets())
def test_budgets_hold_and_held_nodes_stay(some: tuple[Cluster, int]) -> None:
    cluster, share = some
    gone = {node for one in swept(cluster).commands for node in one.nodes()}
    assert len(gone) <= ceil(len(cluster.nodes) * share / 100)
    assert not gone & {one.name for one in cluster.nodes if one.meta.annotation(DO_NOT_DISRUPT)}


@settings(max_examples=60)
@given(fleets())
def test_every_command_holds_beside_the_others(some: tuple[Cluster, int]) -> None:
    cluster, _ = some
    commands = swept(cluster).commands
    for one in commands:
        rest = [other for other in commands if other is not one]
        others = frozenset(node for other in rest for node in other.nodes())
        homes = {pod: home for other in rest for pod, home in other.homes}
        assert still_holds(cluster, one, others, homes=homes) is None


@settings(max_examples=40)
@given(fleets())
def test_it_comes_to_an_end(some: tuple[Cluster, int]) -> None:
    cluster, _ = some
    last = price(cluster)
    for _ in range(40):
        found = swept(cluster)
        if not found.drafts:
            return
        cluster = after(cluster, found.drafts)
        assert price(cluster) < last
        last = price(cluster)
    raise AssertionError("it goes on and on")
