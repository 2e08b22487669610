"""A plan, played through without hints, and what is chosen where nobody gives any."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.labels import HOSTNAME, ZONE
from shared.model.pods import AffinityTerm, HostPort, Pod, PreferredTerm, SpreadConstraint
from shared.model.resources import parse_resources
from shared.model.selectors import selector
from shared.model.taints import Taint
from shared.scheduling.placement import Options
from shared.scheduling.rehearsal import left_by_scheduler, price_again
from shared.scheduling.replay import Room, realise
from shared.scheduling.solve import solve
from shared.scheduling.turns import queue_of
from tests.unit.catalogues import asks, needs, pod, world

WEB = selector({"app": "web"})


def room(name: str, cpu: str = "4", memory: str = "16Gi", zone: str = "a", **more: object) -> Room:
    allocatable = parse_resources({"cpu": cpu, "memory": memory, "pods": "20"})
    return replace(Room(name=name, labels={ZONE: zone}, allocatable=allocatable), **more)


def left(pods: list[Pod], *waves: list[Room], steps: int = 1000) -> list[str]:
    return [name.removeprefix("shop/") for name in realise(waves, queue_of(pods), steps=steps)]


def some(count: int, name: str = "p", cpu: str = "1", memory: str = "1Gi", **more: Any) -> list[Pod]:
    return [pod(f"{name}{number}", cpu, memory, labels={"app": "web"}, **more) for number in range(count)]


def test_small_pods_take_the_places_of_large_ones() -> None:
    pods = [*some(1, "large", "4"), *some(2, "small", "2")]
    assert left(pods, [room("n1"), room("n2")]) == ["large0"]


def test_nodes_that_open_one_by_one_are_filled_one_by_one() -> None:
    pods = [*some(1, "large", "3"), *some(4, "small")]
    assert left(pods, [room("n1"), room("n2")]) == ["large0"]
    assert left(pods, [room("n1")], [room("n2")]) == []


def test_the_more_important_comes_first_then_the_older() -> None:
    first, second = pod("first", "3", age=9), pod("second", "3", age=1)
    assert left([second, first], [room("n1")]) == ["second"]
    assert left([replace(second, priority=1), first], [room("n1")]) == ["first"]


@pytest.mark.parametrize(
    ("what", "one", "rooms", "count"),
    [
        ("room", some(1, cpu="5"), [room("n1")], 1),
        ("a taint", some(1), [room("n1", taints=(Taint(key="k", effect="NoSchedule"),))], 1),
        ("a label", some(1, node_selector=((ZONE, "b"),)), [room("n1")], 1),
        (
            "one of several terms",
            some(1, required_terms=(needs((ZONE, "In", "b")), needs((ZONE, "In", "a")))),
            [room("n1")],
            0,
        ),
        ("a port", some(2, host_ports=(HostPort(port=80),)), [room("n1")], 1),
        ("a key that is not there", some(1, node_selector=(("rack", "1"),)), [room("n1")], 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pod_is_kept_out_by(what: str, one: list[Pod], rooms: list[Room], count: int) -> None:
    assert what
    assert len(left(one, rooms)) == count


def test_what_runs_on_a_node_takes_room_and_makes_it_less_liked() -> None:
    busy = room("a", used=asks("3", "1Gi"))
    assert left(some(2, cpu="2"), [busy]) == ["p0", "p1"]
    assert left([*some(1), pod("z", "4", age=-1)], [busy, room("b")]) == ["z"]


def test_preferred_labels_and_taints_to_avoid_weigh_more_than_room() -> None:
    wish = PreferredTerm(weight=10, requirements=needs((ZONE, "In", "b")))
    last = pod("z", "4", age=-1)
    rooms = [room("a"), room("b", zone="b")]
    assert left(
        [*some(1, preferred_terms=(wish,)), replace(last, spec=replace(last.spec, node_selector=((ZONE, "b"),)))], rooms
    )
    avoided = room("a", cpu="8", taints=(Taint(key="k", effect="PreferNoSchedule"),))
    assert left([*some(1), pod("z", "4", age=-1, node_selector=((ZONE, "b"),))], [avoided, room("b", zone="b")]) == [
        "z"
    ]


# Pods that mind others

SPREAD = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB)
APART = AffinityTerm(topology_key=HOSTNAME, selector=WEB)
NEAR = AffinityTerm(topology_key=ZONE, selector=selector({"app": "db"}))


def test_spread_is_held_among_the_zones_that_nodes_are_in() -> None:
    rooms = [room("a", cpu="8"), room("b", cpu="1", zone="b")]
    assert left(some(4, spread=(SPREAD,)), rooms) == ["p3"]
    assert left(some(4, spread=(SPREAD,)), [rooms[0]]) == []
    assert left(some(3, spread=(replace(SPREAD, min_domains=2),)), [rooms[0]]) == ["p1", "p2"]
    assert left(some(1, spread=(replace(SPREAD, topology_key="rack"),)), rooms) == ["p0"]


def test_who_keeps_apart_needs_a_node_each_and_keeps_others_out() -> None:
    assert left(some(3, pod_anti_affinity=(APART,)), [room("a"), room("b")]) == ["p2"]
    assert left([*some(1, pod_anti_affinity=(APART,), age=9), *some(1, "other")], [room("a")]) == ["other0"]


def test_who_wants_to_be_near_waits_for_those_behind_it() -> None:
    near = pod("near", age=9, pod_affinity=(NEAR,))
    assert left([near, pod("db", labels={"app": "db"})], [room("a")]) == []
    assert left([near], [room("a")]) == ["near"]
    itself = replace(near, meta=replace(near.meta, labels=(("app", "db"),)))
    assert left([itself], [room("a")]) == []


def test_soft_rules_are_wishes() -> None:
    soft = replace(SPREAD, when_unsatisfiable="ScheduleAnyway")
    rooms = [room("a", cpu="64", memory="640Gi"), room("b", cpu="4", zone="b")]
    assert left([*some(2, spread=(soft,)), pod("z", "4", age=-1, node_selector=((ZONE, "b"),))], rooms) == ["z"]
    assert left([*some(2), pod("z", "4", age=-1, node_selector=((ZONE, "b"),))], rooms) == []
    wish = replace(APART, weight=1)
    assert left(some(3, preferred_pod_anti_affinity=(wish,)), rooms) == []


def test_rules_are_minded_as_long_as_there_are_steps() -> None:
    assert left(some(3, pod_anti_affinity=(APART,)), [room("a"), room("b")], steps=0) == []


def test_who_asks_for_nothing_counts_for_a_little() -> None:
    nobody = [replace(one, spec=replace(one.spec, requests=parse_resources({"pods": "1"}))) for one in some(30)]
    assert len(left(nobody, [room("a"), room("b", cpu="0", memory="0")])) == 0
    assert len(left([*nobody, *(pod(f"z{number}") for number in range(11))], [room("a"), room("b")])) == 3


# A plan


def test_it_takes_two_nodes_and_two_kinds_to_go_wrong() -> None:
    pods = some(9, cpu="2")
    cluster = world(*pods)
    assert left_by_scheduler(solve(cluster), cluster, {one.name: one for one in pods}) == ()


def mixed(large: tuple[int, str, str], small: tuple[int, str, str]) -> tuple[Cluster, dict[str, Pod]]:
    """Answer a cluster with pods of two sizes: how many, cpu, memory."""
    pods = [pod(f"{name}{n}", *size) for name, (count, *size) in (("l", large), ("s", small)) for n in range(count)]
    return world(*pods), {one.name: one for one in pods}


HALF = ((6, "3", "4Gi"), (12, "1", "6Gi"))
FULL = ((8, "3", "20Gi"), (24, "900m", "1Gi"))


def test_where_nobody_tells_kube_scheduler_the_plan_is_kept_that_comes_cheapest_in_the_end() -> None:
    cluster, pods = mixed(*HALF)
    told, untold = solve(cluster), solve(cluster, options=Options(hints="Withheld"))
    assert (round(told.price_usd_per_hour, 3), len(left_by_scheduler(told, cluster, pods))) == (1.6, 1)
    assert (round(untold.price_usd_per_hour, 3), len(left_by_scheduler(untold, cluster, pods))) == (1.7, 0)
    assert (told.second_launches, untold.second_launches) == (0, 0)


def test_what_would_have_to_be_launched_again_is_counted_and_priced() -> None:
    cluster, pods = mixed(*FULL)
    found = solve(cluster, options=Options(hints="Withheld"))
    left = left_by_scheduler(found, cluster, pods)
    assert (found.second_launches, left) == (2, tuple(sorted(left)))
    again = price_again(left, found, pods)
    assert 0 < again < found.price_usd_per_hour
    assert price_again((), found, pods) == 0
    assert price_again(pods, found, pods) >= found.price_usd_per_hour * 0.5


@pytest.mark.parametrize("sizes", [HALF, FULL, ((20, "3", "11Gi"), (20, "900m", "4Gi"))])
def test_it_never_comes_dearer_than_the_greedy_plan(sizes: tuple[tuple[int, str, str], ...]) -> None:
    cluster, pods = mixed(*sizes)

    def in_the_end(options: Options) -> float:
        found = solve(cluster, options=options)
        return found.price_usd_per_hour + price_again(left_by_scheduler(found, cluster, pods), found, pods)

    greedy = Options(hints="Withheld", packing="Greedy")
    assert in_the_end(Options(hints="Withheld")) <= in_the_end(greedy) + 1e-9


def test_a_plan_that_cannot_be_played_through_is_not_judged() -> None:
    cluster, pods = mixed(*FULL)
    found = solve(cluster)
    for blind in (replace(cluster, catalogue=None), replace(cluster, node_pools=())):
        assert left_by_scheduler(found, blind, pods) == ()
    empty = replace(cluster, catalogue=Catalogue(region="nowhere", instance_types=()))
    assert left_by_scheduler(found, empty, pods) == ()
    assert left_by_scheduler(found, cluster, {}) == ()
