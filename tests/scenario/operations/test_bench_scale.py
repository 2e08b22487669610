"""The benchmark of large clusters, with a small cluster: it runs, and its counts meet their goals."""

import msgspec
import pytest

from tests.benchmarks import bench_scale
from tests.benchmarks.scale.call_chain import CallChain
from tests.benchmarks.scale.results import FunctionUsage, Measure, ScenarioResult, compute_growth
from tests.benchmarks.scale.scenarios import SCENARIOS


def build_result(nodes: int, cpu_seconds: float, *measures: Measure) -> ScenarioResult:
    usage = msgspec.convert(
        dict.fromkeys(FunctionUsage.__struct_encode_fields__, 0)
        | {"function": "disrupt", "cpuSeconds": cpu_seconds, "calls": {}},
        FunctionUsage,
    )
    return ScenarioResult(scenario="burst", nodes=nodes, pods=0, functions=(usage,), measures=measures)


def test_all_scenarios_run_in_a_small_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_scale.main(["--nodes", "24", "-o", "json"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    assert [result["scenario"] for result in report["scenarios"]] == list(SCENARIOS)
    for result in report["scenarios"]:
        assert result["pods"] >= 600
        assert all(usage["cpuSeconds"] > 0 and usage["peakMib"] > 0 for usage in result["functions"])
    measures = {measure["name"]: measure["value"] for result in report["scenarios"] for measure in result["measures"]}
    assert measures["CreateFleet calls"] >= 1
    assert measures["drifted NodeClaims"] >= 20
    assert measures["disruption commands"] >= 1
    assert (measures["interrupted nodes"], measures["interrupted nodes without taint"]) == (6, 0)


@pytest.mark.parametrize(
    ("value", "kind", "fails"), [(105.0, "count", False), (120.0, "count", True), (120.0, "seconds", False)]
)
def test_only_a_count_above_its_goal_by_more_than_noise_fails(value: float, kind: str, *, fails: bool) -> None:
    measure = msgspec.convert({"name": "x", "value": value, "goal": 100.0, "kind": kind}, Measure)
    assert bench_scale.has_failure([build_result(1000, 1.0, measure)], ()) is fails
    assert not measure.is_met


@pytest.mark.parametrize(("cpu_seconds", "fails"), [(5.0, False), (25.0, True)])
def test_superlinear_growth_fails(cpu_seconds: float, *, fails: bool) -> None:
    (growth,) = compute_growth([build_result(1000, 1.0), build_result(5000, cpu_seconds)])
    assert growth.fails is fails


def test_chain_of_calls_counts_the_calls_of_the_main_thread() -> None:
    chain = CallChain()
    for _ in range(3):
        chain.add_call()
    assert chain.get_length() == 3
