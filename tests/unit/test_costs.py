"""The bill of a month: the arithmetic, on counts that are given, and one short measurement."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from sim.costs import prices
from sim.costs.__main__ import main
from sim.costs.bill import Line, bill, total
from sim.costs.measured import metered
from sim.costs.usage import Usage, Used
from sim.lambdas.template import synthesised

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return synthesised()


def used(
    functions: dict[str, Used] | None = None,
    *,
    lasted: timedelta = HOUR,
    metrics: int = 0,
    log_bytes: int = 0,
    stored_bytes: dict[str, int] | None = None,
) -> Usage:
    return Usage(
        lasted=lasted,
        functions=functions or {},
        metrics=metrics,
        log_bytes=log_bytes,
        stored_bytes=stored_bytes or {},
    )


def line(template: dict[str, Any], what: str, usage: Usage) -> Line:
    [found] = [one for one in bill(template, usage) if one.what == what]
    return found


def test_a_function_costs_its_calls_and_its_seconds_by_its_memory(template: dict[str, Any]) -> None:
    some = used(functions={"provision": Used(invocations=60, processor_seconds=60.0)})
    month = 60 * prices.HOURS
    expected = month * (1769 / 1024 * prices.LAMBDA_GB_SECOND + prices.LAMBDA_REQUEST)
    assert line(template, "Lambda: provision", some).usd == pytest.approx(expected)


def test_with_less_memory_a_function_computes_longer_but_waits_no_longer() -> None:
    computes = Used(invocations=1, processor_seconds=1.0)
    waits = Used(invocations=1, calls=Counter({("table", "read"): 100}))
    assert computes.billed(1769) == computes.billed(3008) == 1.0
    assert computes.billed(1024) == pytest.approx(1769 / 1024)
    each = prices.LATENCY["table"] + prices.CALL_PROCESSOR
    assert waits.billed(1769) == pytest.approx(100 * each.total_seconds())


def test_a_call_to_create_a_fleet_waits_longer_than_one_that_describes() -> None:
    creates, describes = (Used(calls=Counter({("ec2", name): 1})) for name in ("create_fleet", "describe_instances"))
    assert creates.billed(1769) - describes.billed(1769) == pytest.approx(
        (prices.LAUNCHING - prices.LATENCY["ec2"]).total_seconds()
    )


def test_queues_are_asked_whether_anything_is_sent_or_not(template: dict[str, Any]) -> None:
    silent = line(template, "SQS", used())
    queues = sum(one["Type"] == "AWS::Lambda::EventSourceMapping" for one in template["Resources"].values())
    polls = queues * prices.SECONDS * prices.POLLS_PER_SECOND
    assert silent.usd == pytest.approx(polls * prices.SQS_REQUEST)
    talking = used(functions={"provision": Used(calls=Counter({("mailbox", "send"): 10}))})
    more = line(template, "SQS", talking).usd - silent.usd
    assert more == pytest.approx(10 * prices.HOURS * 2 * prices.SQS_REQUEST)


def test_state_costs_by_reads_and_writes_and_by_what_is_kept(template: dict[str, Any]) -> None:
    calls = Counter({("table", "read"): 2, ("table", "write"): 3, ("bucket", "put"): 5, ("bucket", "get"): 7})
    some = used(functions={"lifecycle": Used(calls=calls)}, stored_bytes={"snapshot/": 2**30, "catalogue/": 2**20})
    table = prices.HOURS * (2 * prices.TABLE_READ + 3 * prices.TABLE_WRITE)
    assert line(template, "DynamoDB", some).usd == pytest.approx(table)
    bucket = 5 * prices.BUCKET_PUT + 7 * prices.BUCKET_GET
    assert line(template, "S3", some).usd == pytest.approx(prices.HOURS * bucket)
    for name, hours, gigabytes in (("snapshot", 8 * 24, 1), ("catalogue", 210 * 24, 1 / 1024)):
        kept = line(template, f"S3: {name}", some)
        assert kept.usd == pytest.approx(hours * gigabytes * prices.BUCKET_GB_MONTH)
        assert kept.how_much == f"{hours * gigabytes:.2f} GB kept, of {hours // 24} days"
    assert "S3: journal" not in {one.what for one in bill(template, some)}


def test_what_is_logged_and_published_and_watched_is_counted(template: dict[str, Any]) -> None:
    some = used(metrics=4, log_bytes=2**30, lasted=timedelta(seconds=prices.SECONDS))
    assert line(template, "CloudWatch metrics", some).usd == pytest.approx(4 * prices.METRIC)
    assert line(template, "CloudWatch logs", some).usd == pytest.approx(prices.LOGS_GB + prices.LOGS_GB_MONTH)
    alarms = [one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::CloudWatch::Alarm"]
    plain = sum("MetricName" in one for one in alarms)
    summed = str([one["Metrics"] for one in alarms if "Metrics" in one]).count("'MetricStat'")
    assert plain > 0
    assert summed > len(alarms) - plain
    assert line(template, "CloudWatch alarms", some).usd == pytest.approx((plain + summed) * prices.ALARM)
    lines = bill(template, some)
    assert total(lines) == pytest.approx(sum(one.usd for one in lines))


def test_a_daily_report_is_on_the_bill_where_somebody_hears_it(template: dict[str, Any]) -> None:
    told = synthesised(context={"joiner:report-topic": "arn:aws:sns:us-east-1:111122223333:costs"})
    assert line(told, "SNS", used()).usd == pytest.approx(31 * (0.5e-6 + 2e-5))
    assert "SNS" not in {one.what for one in bill(template, used())}


def test_a_small_cluster_is_measured(template: dict[str, Any]) -> None:
    told: list[str] = []
    usage = metered(template, 2, timedelta(minutes=20), told.append)
    assert set(usage.functions) >= {"provision", "lifecycle", "disrupt", "catalog"}
    assert usage.functions["catalog"].invocations == 4
    assert all(one.processor_seconds > 0 for one in usage.functions.values())
    assert usage.calls("table")["read"] > 0
    assert usage.stored_bytes["journal/"] > 0
    assert usage.metrics == 0  # nothing needs an alarm
    assert told


def test_the_command_prints_a_bill_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "1", "--reaction", "tick", "--minutes", "10"]) == 0
    shown = capsys.readouterr()
    assert "1 nodes, 10 pods, reaction tick: $" in shown.out
    assert "Lambda: disrupt" in shown.out
    assert main(["--nodes", "1", "--reaction", "tick", "--minutes", "10", "-o", "json"]) == 0
    assert capsys.readouterr().out.startswith('[{"nodes":1,"reaction":"tick","usd":')
