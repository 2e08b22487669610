"""What the dashboard asks the log is asked of an embedded run, and everything that it names was there."""

import json
import re
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from infra.queries import FIRST, LAST
from shared.errors import Invalid
from sim.embedded import Embedded
from sim.faults import Call
from sim.lambdas.template import ACTIVE, synthesised
from tests.infra.policies import resources
from tests.scenario.worlds import deployment, node_class, pool

WORDS: Final = frozenset(
    ("as", "by", "desc", "fields", "filter", "ispresent", "latest", "limit", "max", "or", "sort", "stats", "sum")
)
UNDERUSED: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}


@pytest.fixture(scope="module")
def logged() -> list[dict[str, Any]]:
    """Answer the lines of a quarter of an hour in which everything happened once."""
    world = Embedded(template=synthesised(context={**ACTIVE, "joiner:cost-label": "team"}))
    world.apply([node_class(), pool(labels={"team": "search"}, capacity=("spot",), disruption=UNDERUSED)])
    world.run(timedelta(minutes=2))
    world.apply([deployment(9)])
    world.run(timedelta(minutes=5))
    [first, *_] = world.living()
    warning = "EC2 Spot Instance Interruption Warning"
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": {"instance-id": first.instance_id}})
    world.run(timedelta(minutes=5))
    world.apply([deployment(2), pool("odd", of="nobody")])
    world.run(timedelta(minutes=8))
    world.tap = _tags_fail
    world.apply([deployment(9)])
    world.run(timedelta(minutes=3))
    return [json.loads(line) for line in world.lines]


def _tags_fail(call: Call) -> None:
    if call.method == "create_tags":
        raise Invalid("no tags today", code="InvalidParameterValue")


def test_every_field_that_a_query_names_is_in_the_log(logged: list[dict[str, Any]]) -> None:
    known = {name for line in logged for name in names_in(line)}
    asked = {name for query in (*FIRST, *LAST) for line in query.lines for name in names_of(line)}
    assert {"counts.PendingPods", "done.EvictPod", "usdPerHour", "seconds"} <= asked
    assert asked - known == {"error", "problems.1"}  # of these there was none


def test_a_cycle_that_fails_and_more_than_one_problem_are_logged_by_these_names() -> None:
    world = Embedded(template=synthesised(context=ACTIVE))
    world.tap = partial(_fails, "ec2")
    world.run(timedelta(minutes=2))
    world.tap = partial(_fails, "kube")
    world.run(timedelta(minutes=2))
    known = {name for line in world.lines for name in names_in(json.loads(line))}
    assert {"error", "problems.1"} <= known


def _fails(port: str, call: Call) -> None:
    if call.port == port:
        raise Invalid("no")


@pytest.mark.parametrize("query", FIRST, ids=lambda one: one.title)
def test_every_query_finds_lines(query: Any, logged: list[dict[str, Any]]) -> None:
    condition = query.lines[0].removeprefix("filter ")
    assert [line for line in logged if holds(condition, line)]


def test_the_fleet_is_told_by_everything_that_costs_are_told_apart_by(logged: list[dict[str, Any]]) -> None:
    told = {(line["fleet"], line["name"]) for line in logged if "fleet" in line}
    assert told >= {
        ("all", "demo"),
        ("capacityType", "spot"),
        ("instanceType", "m5.xlarge"),
        ("label", "search"),
        ("pool", "default"),
        ("pool", "odd"),
    }


def test_the_page_asks_the_logs_of_all_working_functions_and_shows_every_alarm() -> None:
    template = synthesised()
    [page] = resources(template, "AWS::CloudWatch::Dashboard").values()
    body = json.loads(page["DashboardBody"])
    asked = [one["properties"]["query"] for one in body["widgets"] if one["type"] == "log"]
    assert len(asked) == len((*FIRST, *LAST))
    assert {query.count("SOURCE '") for query in asked} == {5}
    [alarms] = [one["properties"]["alarms"] for one in body["widgets"] if one["type"] == "alarm"]
    assert len(alarms) == len(resources(template, "AWS::CloudWatch::Alarm"))


def holds(condition: str, line: dict[str, Any]) -> bool:
    """Whether a line passes a filter, of the two kinds that we write."""
    if asked := re.fullmatch(r"ispresent\((\w+)\)", condition):
        return asked[1] in line
    name, _, value = condition.partition(" = ")
    return bool(line.get(name) == json.loads(value))


def names_in(line: dict[str, Any], prefix: str = "") -> set[str]:
    """Answer the fields of a line, as Logs Insights finds them: ``counts.PendingPods``, ``problems.0``."""
    found: set[str] = set()
    for key, value in line.items():
        inner = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(inner, dict):
            found |= names_in({str(name): one for name, one in inner.items()}, f"{prefix}{key}.")
        else:
            found.add(f"{prefix}{key}")
    return found


def names_of(line: str) -> set[str]:
    """Answer the fields that a line of a query names."""
    bare = re.sub(r'"[^"]*"| as \w+|bin\(\d+m\)|@\w+', " ", line)
    if bare.startswith(("sort", "limit")):
        return set()  # by what was named before
    return set(re.findall(r"[A-Za-z][\w.]*", bare)) - WORDS
