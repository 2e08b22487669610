"""The dashboard's log queries, run against an embedded run: every field that they name exists."""

import json
import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from infra.monitoring.queries import FIRST_QUERIES, LAST_QUERIES
from shared.errors import Invalid, Throttled
from sim.authorization.template_policies import get_resources
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool

QUERY_KEYWORDS: Final = frozenset(
    ("as", "by", "desc", "fields", "filter", "ispresent", "latest", "limit", "max", "or", "sort", "stats", "sum")
)
UNDERUTILIZED: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}


@pytest.fixture(scope="module")
def logged() -> list[dict[str, Any]]:
    """Return the log lines of fifteen minutes in which every kind of event happened once."""
    world = EmbeddedWorld(template=synthesize_template(settings={**ACTIVE_SETTINGS, "cost-label": "team"}))
    world.apply(
        [make_node_class(), make_node_pool(labels={"team": "search"}, capacity=("spot",), disruption=UNDERUTILIZED)]
    )
    world.run(timedelta(minutes=2))
    world.apply([make_deployment(9)])
    world.run(timedelta(minutes=5))
    [first, *_] = world.list_active_instances()
    warning = "EC2 Spot Instance Interruption Warning"
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": {"instance-id": first.instance_id}})
    world.run(timedelta(minutes=5))
    world.apply([make_deployment(2), make_node_pool("odd", class_name="nobody")])
    world.run(timedelta(minutes=8))
    world.tap = _fail_some_ec2_calls
    world.apply([make_deployment(9)])
    world.run(timedelta(minutes=3))
    return [json.loads(line) for line in world.log_lines]


def _fail_some_ec2_calls(call: PortCall) -> None:
    if call.method == "create_tags":
        raise Invalid("no tags today", code="InvalidParameterValue")
    if call.method == "describe_instance_statuses":
        raise Throttled("RequestLimitExceeded")


def test_every_field_in_a_dashboard_query_exists_in_the_logs(logged: list[dict[str, Any]]) -> None:
    logged_fields = {name for line in logged for name in list_field_names(line)}
    queried_fields = {
        name for query in (*FIRST_QUERIES, *LAST_QUERIES) for line in query.lines for name in list_query_fields(line)
    }
    assert {"counts.PendingPods", "actions.EvictPod", "usdPerHour", "seconds"} <= queried_fields
    assert queried_fields - logged_fields == {"error", "problems.1"}  # these did not occur


def test_every_field_of_a_log_line_is_documented_and_the_reverse(logged: list[dict[str, Any]]) -> None:
    section = Path("docs/guide/metrics.md").read_text().partition("## Fields of log lines")[2].partition("\n## ")[0]
    documented_fields = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    lines = [line for line in logged if "_aws" not in line]
    assert {name for line in lines for name in line} <= set(documented_fields)
    on_all_lines = set(re.findall(r"^\| `(\w+)` \| all lines", section, flags=re.MULTILINE)) - {"xray_trace_id"}
    assert [line for line in lines if not on_all_lines <= line.keys()] == []
    elsewhere = {
        "xray_trace_id",
        "calls",
        "notes",
        "error",
        "costs",
        "usd",
        "nodeHours",
        "installer",
        "request",
        "status",
    }
    assert set(documented_fields) - {name for line in lines for name in line} <= elsewhere


def test_all_lines_of_a_cycle_have_its_id(logged: list[dict[str, Any]]) -> None:
    cycles = {line["cycle"] for line in logged if line.get("message") == "cycle completed"}
    summaries = [line for line in logged if line.get("message") == "fleet summary"]
    assert summaries
    assert {line["cycle"] for line in summaries} <= cycles
    assert {line["function"] for line in summaries} == {"disrupt"}


def test_failed_cycle_and_multiple_problems_are_logged_in_the_queried_fields() -> None:
    world = EmbeddedWorld(template=synthesize_template(settings=ACTIVE_SETTINGS))
    world.tap = partial(_fail_port, "ec2")
    world.run(timedelta(minutes=2))
    world.tap = partial(_fail_port, "kube")
    world.run(timedelta(minutes=2))
    logged_fields = {name for line in world.log_lines for name in list_field_names(json.loads(line))}
    assert {"error", "problems.1"} <= logged_fields


def _fail_port(port: str, call: PortCall) -> None:
    if call.port == port:
        raise Invalid("no")


@pytest.mark.parametrize("query", FIRST_QUERIES, ids=lambda one: one.title)
def test_every_dashboard_query_matches_log_lines(query: Any, logged: list[dict[str, Any]]) -> None:
    condition = query.lines[0].removeprefix("filter ")
    assert [line for line in logged if passes_filter(condition, line)]


def test_fleet_is_logged_by_every_cost_dimension(logged: list[dict[str, Any]]) -> None:
    fleets = {(line["fleet"], line["group"]) for line in logged if "fleet" in line}
    assert fleets >= {
        ("all", "demo"),
        ("capacityType", "spot"),
        ("instanceType", "m5.xlarge"),
        ("label", "search"),
        ("nodePool", "default"),
        ("nodePool", "odd"),
    }


def test_dashboard_queries_logs_of_all_functions_and_shows_every_alarm() -> None:
    template = synthesize_template()
    [page] = get_resources(template, "AWS::CloudWatch::Dashboard").values()
    body = json.loads(page["DashboardBody"])
    queries = [widget["properties"]["query"] for widget in body["widgets"] if widget["type"] == "log"]
    assert len(queries) == len((*FIRST_QUERIES, *LAST_QUERIES))
    assert {query.count("SOURCE '") for query in queries} == {6}
    [alarms] = [widget["properties"]["alarms"] for widget in body["widgets"] if widget["type"] == "alarm"]
    assert len(alarms) == len(get_resources(template, "AWS::CloudWatch::Alarm"))


def passes_filter(condition: str, line: dict[str, Any]) -> bool:
    """Return whether a line passes a filter, of the two kinds that the dashboard uses."""
    if match := re.fullmatch(r"ispresent\((\w+)\)", condition):
        return match[1] in line
    name, _, value = condition.partition(" = ")
    return bool(line.get(name) == json.loads(value))


def list_field_names(line: dict[str, Any], prefix: str = "") -> set[str]:
    """Return the fields of a line, as Logs Insights names them: ``counts.PendingPods``, ``problems.0``."""
    field_names: set[str] = set()
    for key, value in line.items():
        inner = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(inner, dict):
            field_names |= list_field_names({str(name): item for name, item in inner.items()}, f"{prefix}{key}.")
        else:
            field_names.add(f"{prefix}{key}")
    return field_names


def list_query_fields(line: str) -> set[str]:
    """Return the fields that a line of a query names."""
    bare = re.sub(r'"[^"]*"| as \w+|bin\(\d+m\)|@\w+', " ", line)
    if bare.startswith(("sort", "limit")):
        return set()  # they use fields of earlier lines
    return set(re.findall(r"[A-Za-z][\w.]*", bare)) - QUERY_KEYWORDS
