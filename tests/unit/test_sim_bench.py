"""What `make bench` prints."""

import msgspec

from sim import bench_plan
from sim.bench_plan import HEAD, MADE_UP, documents, encoded, figures, growth, usual


def test_each_catalogue_has_its_workloads() -> None:
    own, everyday = usual(MADE_UP), usual("prod.json")
    assert "diverse-20000" in own
    assert "deployments-40000" in everyday
    assert sorted((*own, *everyday)) == sorted(bench_plan.WORKLOADS)


def test_growth_is_told_of_workloads_of_several_sizes() -> None:
    seconds = {"web-10": 1.0, "web-100": 10.0, "web-1000": 100.0, "odd-5": 7.0}
    [(kind, exponent)] = growth(seconds)
    assert (kind, round(exponent, 6)) == ("web", 1.0)


def test_a_workload_is_planned_and_held_against_its_bound() -> None:
    found = figures("plain-1000", MADE_UP, "Greedy")
    assert (found.pods, found.price) == (1000, found.greedy)
    assert 0 < found.bound <= found.price
    line = found.line("plain-1000")
    assert len(line) == len(HEAD)
    assert msgspec.structs.replace(found, bound=0.0).line("plain-1000").split()[-1] == "-"


def test_a_workload_is_sent_as_it_is_documented() -> None:
    assert msgspec.json.decode(encoded("plain-1000"))["items"] == documents("plain-1000")
