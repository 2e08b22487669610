"""What optional features add to the bill: differences of measured requests, without processor time."""

from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.core.units import HOURS_PER_MONTH
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.operating_costs import __main__, feature_costs, list_prices
from sim.operating_costs.feature_costs import SETTINGS_BY_FEATURE, FeatureCost, compare_usages, format_feature_costs
from sim.operating_costs.usage import FunctionUsage, StackUsage

PLAIN = StackUsage(
    duration=timedelta(hours=1),
    functions={
        "provision": FunctionUsage(invocations=60, processor_seconds=9.0, calls=Counter({("kube", "list"): 60}))
    },
    metrics=0,
    log_bytes=0,
    stored_bytes={},
)


def test_additional_requests_and_their_price_are_those_of_the_feature() -> None:
    template = synthesize_template()
    calls = Counter({("kube", "list"): 120, ("group_table", "read"): 60, ("group_table", "write"): 6})
    usage = replace(PLAIN, functions={"provision": FunctionUsage(invocations=60, processor_seconds=1.0, calls=calls)})
    cost = compare_usages("group", (template, PLAIN), (template, usage))
    assert (cost.kubernetes_requests, cost.aws_requests) == (60 * HOURS_PER_MONTH, 66 * HOURS_PER_MONTH)
    table = 60 * list_prices.DYNAMODB_USD_PER_READ + 6 * list_prices.DYNAMODB_USD_PER_WRITE
    seconds = 60 * 0.010 + 66 * 0.006 + 126 * list_prices.CPU_TIME_PER_CALL.total_seconds()
    expected = HOURS_PER_MONTH * (table + seconds * 1769 / 1024 * list_prices.LAMBDA_USD_PER_GB_SECOND)
    assert cost.usd == pytest.approx(expected)


def test_usage_with_the_same_requests_costs_nothing_more() -> None:
    template = synthesize_template()
    assert compare_usages("gangs", (template, PLAIN), (template, PLAIN)) == FeatureCost(
        feature="gangs", kubernetes_requests=0, aws_requests=0, usd=0.0
    )


def test_command_measures_each_feature(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    selected = {name: SETTINGS_BY_FEATURE[name] for name in ("gangs", "canary")}
    monkeypatch.setattr(feature_costs, "SETTINGS_BY_FEATURE", selected)
    monkeypatch.setattr(feature_costs, "FEATURE_NODE_COUNT", 1)
    assert __main__.main(["--nodes", "1", "--reaction", "tick", "--minutes", "10"]) == 0
    *_, gangs, canary = capsys.readouterr().out.splitlines()
    assert gangs.split()[:2] == ["gangs", "0"]
    assert canary.split()[0] == "canary"
    assert float(canary.split()[-1]) >= list_prices.ALARM_USD_PER_METRIC_MONTH


def test_table_has_a_line_for_each_feature() -> None:
    cost = FeatureCost(feature="group", kubernetes_requests=43800, aws_requests=1, usd=0.104)
    _, line = format_feature_costs([cost])
    assert line.split() == ["group", "43,800", "requests", "to", "Kubernetes,", "1", "to", "AWS", "0.10"]
