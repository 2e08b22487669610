"""Tests of the monthly bill: the arithmetic on given counts, and one short measurement."""

import re
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.model.core.units import HOURS_PER_MONTH
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.operating_costs import list_prices
from sim.operating_costs.__main__ import main
from sim.operating_costs.bill import BillLine, build_bill, sum_usd
from sim.operating_costs.usage import FunctionUsage, StackUsage
from sim.operating_costs.usage_measurement import measure_usage

ONE_HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return synthesize_template()


def make_usage(
    functions: dict[str, FunctionUsage] | None = None,
    *,
    lasted: timedelta = ONE_HOUR,
    metrics: int = 0,
    log_bytes: int = 0,
    stored_bytes: dict[str, int] | None = None,
    messages: int = 0,
) -> StackUsage:
    return StackUsage(
        duration=lasted,
        functions=functions or {},
        metrics=metrics,
        log_bytes=log_bytes,
        stored_bytes=stored_bytes or {},
        messages=messages,
    )


def get_bill_line(template: dict[str, Any], item: str, usage: StackUsage) -> BillLine:
    [bill_line] = [candidate_line for candidate_line in build_bill(template, usage) if candidate_line.item == item]
    return bill_line


def test_function_cost_is_invocations_plus_duration_times_memory(template: dict[str, Any]) -> None:
    usage = make_usage(functions={"provision": FunctionUsage(invocations=60, processor_seconds=60.0)})
    month = 60 * HOURS_PER_MONTH
    expected = month * (1769 / 1024 * list_prices.LAMBDA_USD_PER_GB_SECOND + list_prices.LAMBDA_USD_PER_REQUEST)
    assert get_bill_line(template, "Lambda: provision", usage).usd == pytest.approx(expected)


def test_function_with_less_memory_has_longer_cpu_time_but_equal_wait_time() -> None:
    computes = FunctionUsage(invocations=1, processor_seconds=1.0)
    waits = FunctionUsage(invocations=1, calls=Counter({("table", "read"): 100}))
    assert computes.estimate_billed_seconds(1769) == computes.estimate_billed_seconds(3008) == 1.0
    assert computes.estimate_billed_seconds(1024) == pytest.approx(1769 / 1024)
    call_duration = list_prices.LATENCY_BY_PORT["table"] + list_prices.CPU_TIME_PER_CALL
    assert waits.estimate_billed_seconds(1769) == pytest.approx(100 * call_duration.total_seconds())


def test_create_fleet_call_has_a_longer_latency_than_describe_calls() -> None:
    creates, describes = (
        FunctionUsage(calls=Counter({("ec2", name): 1})) for name in ("create_fleet", "describe_instances")
    )
    assert creates.estimate_billed_seconds(1769) - describes.estimate_billed_seconds(1769) == pytest.approx(
        (list_prices.CREATE_FLEET_LATENCY - list_prices.LATENCY_BY_PORT["ec2"]).total_seconds()
    )


def test_sqs_cost_includes_polling_of_idle_queues(template: dict[str, Any]) -> None:
    silent = get_bill_line(template, "SQS", make_usage())
    queues = sum(resource["Type"] == "AWS::Lambda::EventSourceMapping" for resource in template["Resources"].values())
    polls = queues * list_prices.SECONDS_PER_MONTH * list_prices.POLLS_PER_SECOND
    assert silent.usd == pytest.approx(polls * list_prices.SQS_USD_PER_REQUEST)
    talking = make_usage({"provision": FunctionUsage(calls=Counter({("mailbox", "add"): 10}))}, messages=10)
    extra_usd = get_bill_line(template, "SQS", talking).usd - silent.usd
    assert extra_usd == pytest.approx(10 * HOURS_PER_MONTH * 2 * list_prices.SQS_USD_PER_REQUEST)


def test_a_request_for_several_messages_is_billed_once_for_every_ten(template: dict[str, Any]) -> None:
    silent = get_bill_line(template, "SQS", make_usage())
    usage = make_usage({"watch": FunctionUsage(calls=Counter({("mailbox", "add_batch"): 2}))}, messages=58)
    extra_usd = get_bill_line(template, "SQS", usage).usd - silent.usd
    assert extra_usd == pytest.approx((2 * 3 + 58) * HOURS_PER_MONTH * list_prices.SQS_USD_PER_REQUEST)


def test_dynamodb_and_s3_costs_include_requests_and_storage(template: dict[str, Any]) -> None:
    calls = Counter({("table", "read"): 2, ("table", "write"): 3, ("bucket", "put"): 5, ("bucket", "get"): 7})
    usage = make_usage(
        functions={"lifecycle": FunctionUsage(calls=calls)}, stored_bytes={"snapshot/": 2**30, "catalogue/": 2**20}
    )
    table = HOURS_PER_MONTH * (2 * list_prices.DYNAMODB_USD_PER_READ + 3 * list_prices.DYNAMODB_USD_PER_WRITE)
    assert get_bill_line(template, "DynamoDB", usage).usd == pytest.approx(table)
    bucket = 5 * list_prices.S3_USD_PER_PUT + 7 * list_prices.S3_USD_PER_GET
    assert get_bill_line(template, "S3", usage).usd == pytest.approx(HOURS_PER_MONTH * bucket)
    for name, hours, gigabytes in (("snapshot", 8 * 24, 1), ("catalogue", 210 * 24, 1 / 1024)):
        storage_line = get_bill_line(template, f"S3: {name}", usage)
        assert storage_line.usd == pytest.approx(hours * gigabytes * list_prices.S3_USD_PER_GB_MONTH)
        assert storage_line.quantity == f"{hours * gigabytes:.2f} GB kept, of {hours // 24} days"
    assert "S3: journal" not in {bill_line.item for bill_line in build_bill(template, usage)}


def test_cloudwatch_cost_includes_logs_metrics_and_alarms(template: dict[str, Any]) -> None:
    usage = make_usage(metrics=4, log_bytes=2**30, lasted=timedelta(seconds=list_prices.SECONDS_PER_MONTH))
    assert get_bill_line(template, "CloudWatch metrics", usage).usd == pytest.approx(
        4 * list_prices.METRIC_USD_PER_MONTH
    )
    assert get_bill_line(template, "CloudWatch logs", usage).usd == pytest.approx(
        list_prices.LOGS_USD_PER_GB + list_prices.LOGS_USD_PER_GB_MONTH
    )
    alarms = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ]
    plain = sum("MetricName" in alarm for alarm in alarms)
    summed = str([alarm["Metrics"] for alarm in alarms if "Metrics" in alarm]).count("'MetricStat'")
    assert plain > 0
    assert summed > len(alarms) - plain
    assert get_bill_line(template, "CloudWatch alarms", usage).usd == pytest.approx(
        (plain + summed) * list_prices.ALARM_USD_PER_METRIC_MONTH
    )
    lines = build_bill(template, usage)
    assert sum_usd(lines) == pytest.approx(sum(bill_line.usd for bill_line in lines))


def test_sns_cost_is_included_only_with_a_report_topic(template: dict[str, Any]) -> None:
    report_template = synthesize_template(settings={"report-topic": "arn:aws:sns:us-east-1:111122223333:costs"})
    assert get_bill_line(report_template, "SNS", make_usage()).usd == pytest.approx(31 * (0.5e-6 + 2e-5))
    assert "SNS" not in {bill_line.item for bill_line in build_bill(template, make_usage())}


def test_events_cost_as_many_as_their_requests_can_have(template: dict[str, Any]) -> None:
    usage = make_usage({"provision": FunctionUsage(calls=Counter({("event_bus", "put"): 7}))})
    requests = 7 * list_prices.SECONDS_PER_MONTH / 3600
    assert get_bill_line(template, "EventBridge events", usage).usd == pytest.approx(requests * 10 * 1e-6)
    assert "EventBridge events" not in {bill_line.item for bill_line in build_bill(template, make_usage())}


def test_samples_for_prometheus_have_a_price(template: dict[str, Any]) -> None:
    usage = msgspec.structs.replace(make_usage(), written_samples=600)
    samples = 600 * list_prices.SECONDS_PER_MONTH / 3600
    line = get_bill_line(template, "Managed Prometheus", usage)
    assert line.usd == pytest.approx(samples * 0.09e-6)
    assert line.quantity == "438,000 samples"
    assert "Managed Prometheus" not in {bill_line.item for bill_line in build_bill(template, make_usage())}


def test_usage_of_a_small_cluster_is_measured(template: dict[str, Any]) -> None:
    messages: list[str] = []
    usage = measure_usage(template, 2, timedelta(minutes=20), messages.append)
    assert set(usage.functions) >= {"provision", "lifecycle", "disrupt", "catalog"}
    assert usage.functions["catalog"].invocations == 4
    assert all(function_usage.processor_seconds > 0 for function_usage in usage.functions.values())
    assert usage.count_calls("table")["read"] > 0
    assert usage.stored_bytes["journal/"] > 0
    assert usage.metrics == 0  # nothing needs an alarm
    assert messages


def test_command_bills_samples_only_with_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
    arguments = ["--nodes", "1", "--reaction", "tick", "--minutes", "10"]
    assert main([*arguments, "--set", f"remote-write-url={url}"]) == 0
    assert re.search(r"Managed Prometheus +[0-9,]+ samples", capsys.readouterr().out)


def test_setting_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--set", "event-bus"])
    assert "'event-bus': must be NAME=VALUE" in capsys.readouterr().err


def test_command_prints_a_bill_for_each_cluster_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "1", "--reaction", "tick", "--minutes", "10", "--no-features"]) == 0
    output = capsys.readouterr()
    assert "1 nodes, 10 pods, reaction tick: $" in output.out
    assert "Lambda: disrupt" in output.out
    assert "optional features" not in output.out
    arguments = ["--nodes", "1", "--reaction", "tick", "--minutes", "10", "--no-features", "-o", "json"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith('[{"nodes":1,"reaction":"tick","usd":')
