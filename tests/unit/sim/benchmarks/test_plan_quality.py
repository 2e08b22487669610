"""Tests of the output of `make bench`."""

from contextlib import nullcontext

import msgspec
import pytest

from sim.benchmarks import plan_quality
from sim.benchmarks.benchmark_workloads import WORKLOADS, build_workload_documents
from sim.benchmarks.plan_quality import (
    KARPENTER_BENCHMARK_CATALOG,
    TABLE_HEADER,
    PlanMeasurement,
    encode_workload,
    estimate_growth_exponents,
    list_default_workloads,
    measure_workload,
)


def test_each_benchmark_catalog_has_its_workloads() -> None:
    benchmark_workloads, everyday = (
        list_default_workloads(KARPENTER_BENCHMARK_CATALOG),
        list_default_workloads("prod.json"),
    )
    assert "diverse-20000" in benchmark_workloads
    assert "deployments-40000" in everyday
    assert sorted((*benchmark_workloads, *everyday)) == sorted(WORKLOADS)


def test_growth_exponent_is_estimated_only_for_workloads_of_several_sizes() -> None:
    seconds = {"web-10": 1.0, "web-100": 10.0, "web-1000": 100.0, "odd-5": 7.0}
    [(kind, exponent)] = estimate_growth_exponents(seconds)
    assert (kind, round(exponent, 6)) == ("web", 1.0)


def test_workload_price_is_measured_against_its_lower_bound() -> None:
    measurement = measure_workload("plain-1000", KARPENTER_BENCHMARK_CATALOG, "Greedy")
    assert (measurement.pods, measurement.price_usd_per_hour) == (1000, measurement.greedy_usd_per_hour)
    assert 0 < measurement.lower_bound_usd_per_hour <= measurement.price_usd_per_hour
    line = measurement.format_row("plain-1000")
    assert len(line) == len(TABLE_HEADER)
    assert (
        msgspec.structs.replace(measurement, lower_bound_usd_per_hour=0.0).format_row("plain-1000").split()[-1] == "-"
    )
    assert len(measurement.format_row("deployments-10000")) == len(TABLE_HEADER)


def test_row_has_the_goals_next_to_the_figures() -> None:
    measurement = PlanMeasurement(
        decode_seconds=0.1,
        plan_seconds=0.5,
        pods=10_000,
        peak_memory_mib=70,
        nodes=7,
        price_usd_per_hour=104.0,
        greedy_usd_per_hour=200.0,
        lower_bound_usd_per_hour=100.0,
    )
    assert measurement.format_row("deployments-10000").split()[4:6] == ["24", "25"]
    assert measurement.format_row("deployments-10000").split()[-2:] == ["1.040", "1.05"]
    assert measurement.format_row("deployments-1000").split()[4:6] == ["-", "-"]


@pytest.mark.parametrize(("price_usd_per_hour", "is_error"), [(105.9, False), (106.2, True)])
def test_plan_that_misses_its_price_goal_by_more_than_noise_is_an_error(
    price_usd_per_hour: float, *, is_error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurement = PlanMeasurement(
        decode_seconds=0.1,
        plan_seconds=0.5,
        pods=1000,
        peak_memory_mib=70,
        nodes=7,
        price_usd_per_hour=price_usd_per_hour,
        greedy_usd_per_hour=200.0,
        lower_bound_usd_per_hour=100.0,
    )
    monkeypatch.setattr(plan_quality, "measure_in_process", lambda *_: measurement)
    monkeypatch.setattr("sys.argv", ["plan_quality", "made-up", "plain-1000"])
    with pytest.raises(SystemExit) if is_error else nullcontext():
        plan_quality.main()
    monkeypatch.setattr("sys.argv", ["plan_quality", "made-up", "plain-1000", "--greedy"])
    plan_quality.main()


def test_encoded_workload_equals_its_documents() -> None:
    assert msgspec.json.decode(encode_workload("plain-1000"))["items"] == build_workload_documents("plain-1000")
