"""Events on an event bus in a simulated account: schemas, example rules, permissions, and cycles without a bus."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.reference.events import build_schema_name
from shared.errors import Throttled
from shared.model.core.labels import CANARY, PAUSE_AFTER_FAILURES
from shared.ports.messaging import BusEvent
from shared.report.event_bus.derive_events import derive_events
from shared.report.event_bus.event_details import DETAIL_TYPE_NAMES, DETAIL_TYPES
from shared.report.journal.journal import DecisionNote, JournalEntry
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.event_pattern import check_pattern, matches_pattern
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_ec2_message, make_node_class, make_node_pool

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples" / "events").glob("*.yaml"))
SETTINGS = {"event-bus": "alerts", "launch-nodes-per-minute": "1"}


def build_world(**settings: str) -> World:
    """Return a world in which all that events report has happened."""
    pool = make_node_pool(
        capacity=("spot",),
        types=("m5.large", "m5.xlarge"),
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
    )
    template = synthesize_template(settings=ACTIVE_SETTINGS | settings)
    world = World(make_node_class(), pool, make_deployment(4), template=template)
    world.wait_until_settled(4)
    [instance, *_] = world.list_active_instances()
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", instance.instance_id))
    world.advance_seconds(200)
    world.wait_until_settled(4)
    world.apply([make_deployment(1, "huge", cpu="90")])
    world.apply([make_deployment(2, "wide", nodeSelector={"topology.kubernetes.io/zone": "nowhere"})])
    world.advance_seconds(150)
    world.apply([make_node_pool("small", types=("m5.large",), limits={"cpu": "1"})])
    world.apply([make_deployment(1, "limited", nodeSelector={"karpenter.sh/nodepool": "small"})])
    world.apply([make_deployment(6, "more", cpu="3")])
    world.advance_seconds(120)
    world.scale(1)
    world.scale(0, "more")
    world.advance_seconds(400)
    let_nodes_fail(world)
    reject_image(world)
    return world


def let_nodes_fail(world: World) -> None:
    """Launch nodes of another EC2NodeClass that do not register, until its launches pause."""
    apply_class(world, "fragile", {PAUSE_AFTER_FAILURES: "2"})
    world.instance_booter.is_image_broken = lambda _: True
    world.apply([make_deployment(2, "fragile", cpu="1500m", nodeSelector={"karpenter.sh/nodepool": "fragile"})])
    world.wait_until(lambda: world.list_events("fragile", "LaunchesPaused"), 1200)
    world.scale(0, "fragile")
    world.instance_booter.is_image_broken = lambda _: False


def reject_image(world: World) -> None:
    """Let the first node with a new image fail."""
    apply_class(world, "tested", {CANARY: "nodes=1 soak=1h"})
    world.apply([make_deployment(1, "tested", nodeSelector={"karpenter.sh/nodepool": "tested"})])
    world.advance_seconds(180)
    old_images = {instance.image_id for instance in world.list_active_instances()}
    world.cloud.release_amis()
    world.instance_booter.is_image_broken = lambda image_id: image_id not in old_images
    world.wait_until(lambda: world.list_events("tested", "CanaryRejected"), 2400)


def apply_class(world: World, name: str, annotations: dict[str, str]) -> None:
    """Create an EC2NodeClass with *annotations*, and its NodePool."""
    node_class = make_node_class()
    node_class["metadata"] |= {"name": name, "annotations": annotations}
    pool = make_node_pool(name, types=("m5.large",))
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = name
    world.apply([node_class, pool])
    world.advance_seconds(30)


@cache
def run_with_bus() -> World:
    return build_world(**SETTINGS)


def list_envelopes(world: World) -> list[dict[str, Any]]:
    """Return the events as rules receive them."""
    return [
        {
            "source": event.source,
            "detail-type": event.detail_type,
            "time": event.at.isoformat(),
            "detail": json.loads(event.detail),
        }
        for event in world.event_bus.events
    ]


def test_every_detail_type_occurs_and_matches_its_schema() -> None:
    events = list_envelopes(run_with_bus())
    assert {event["detail-type"] for event in events} == DETAIL_TYPES.keys()
    for event in events:
        schema = json.loads(
            (ROOT / "docs/reference/event-schemas" / build_schema_name(event["detail-type"])).read_text()
        )
        Draft202012Validator(schema).validate(event["detail"])


def test_no_event_is_put_twice_and_each_can_be_found_in_the_journal() -> None:
    world = run_with_bus()
    details = [event["detail"] for event in list_envelopes(world)]
    assert len({detail["id"] for detail in details}) == len(details)
    assert {detail["journalKey"] for detail in details} <= set(world.bucket.list_keys("journal/"))
    derived = {detail.id for entry in world.entries for detail in derive_events(entry, cluster="demo", journal_key="")}
    assert {detail["id"] for detail in details} <= derived


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_rule_matches_events_and_its_messages_are_json(path: Path) -> None:
    template = read_template(path)
    [rule] = [resource for resource in template["Resources"].values() if resource["Type"] == "AWS::Events::Rule"]
    pattern = check_pattern(rule["Properties"]["EventPattern"])
    detail_types = {name for part in pattern.get("$or", [pattern]) for name in part["detail-type"]}
    assert detail_types <= DETAIL_TYPES.keys()
    matches = [event for event in list_envelopes(run_with_bus()) if matches_pattern(pattern, event)]
    assert {event["detail-type"] for event in matches} == detail_types
    [target] = rule["Properties"]["Targets"]
    for event in matches:
        text = json.dumps(transform_input(target["InputTransformer"], event), ensure_ascii=False)
        assert json.dumps(event["detail"]["message"], ensure_ascii=False) in text
        assert event["detail-type"] in text
    assert not matches_pattern(pattern, {"source": "aws.ec2", "detail-type": "Pods Blocked"})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_rule_sends_one_message_if_a_limit_blocks_pods(path: Path) -> None:
    pattern, _ = read_rule(path)
    events = [event for event in list_envelopes(run_with_bus()) if is_about_limit(event)]
    assert {event["detail-type"] for event in events} == {"Pods Blocked", "Limit Reached"}
    assert len({event["detail-type"] for event in events if matches_pattern(pattern, event)}) == 1


def is_about_limit(event: dict[str, Any]) -> bool:
    return bool(event["detail-type"] == "Limit Reached") or bool(event["detail"].get("reason") == "LimitExceeded")


def test_pagerduty_opens_one_incident_while_pods_are_blocked_for_hours() -> None:
    _, transformer = read_rule(ROOT / "examples" / "events" / "pagerduty.yaml")
    [template_event, *_] = [event for event in list_envelopes(run_with_bus()) if event["detail-type"] == "Pods Blocked"]
    started_at = run_with_bus().entries[0].at
    ids, incidents = set(), set()
    for hour in range(24):
        notes = tuple(
            DecisionNote(kind="Pod", name=f"shop/cart-{number}", verdict="NoInstanceTypeFits", reason="too large")
            for number in range(hour + 1)
        )
        at = started_at + timedelta(hours=hour)
        entry = JournalEntry(function="provision", trigger="schedule", at=at, cluster="", notes=notes)
        [detail] = derive_events(entry, cluster="demo", journal_key="")
        ids.add(detail.id)
        event = template_event | {"detail": json.loads(msgspec.json.encode(detail))}
        incidents.add(transform_input(transformer, event)["dedup_key"])
    assert (len(ids), len(incidents)) == (24, 1)


def test_test_event_matches_its_schema_and_every_example_rule() -> None:
    [entry] = json.loads((ROOT / "examples" / "events" / "test-event.json").read_text())
    event = {"source": entry["Source"], "detail-type": entry["DetailType"], "detail": json.loads(entry["Detail"])}
    schema = json.loads((ROOT / "docs/reference/event-schemas" / build_schema_name(event["detail-type"])).read_text())
    Draft202012Validator(schema).validate(event["detail"])
    assert all(matches_pattern(read_rule(path)[0], event) for path in EXAMPLES)


def read_rule(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the event pattern and the input transformer of the rule of a template."""
    resources = read_template(path)["Resources"].values()
    [rule] = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::Events::Rule"]
    check_pattern(rule["EventPattern"])
    return rule["EventPattern"], rule["Targets"][0]["InputTransformer"]


def read_template(path: Path) -> dict[str, Any]:
    """Return a CloudFormation template; the short forms of its functions become their text."""

    class Loader(yaml.SafeLoader):
        """Reads `!Sub` and the like."""

    Loader.add_multi_constructor("!", lambda *arguments: getattr(arguments[-1], "value", ""))
    document: dict[str, Any] = yaml.load(path.read_text(), Loader)  # noqa: S506 - a safe loader
    return document


def transform_input(transformer: dict[str, Any], event: dict[str, Any]) -> Any:
    """Return the input that EventBridge sends: values in quotes as text, others as JSON."""
    text: str = transformer["InputTemplate"]
    for name, json_path in transformer["InputPathsMap"].items():
        value: Any = event
        for key in json_path.removeprefix("$.").split("."):
            value = value[key]
        text = text.replace(f": <{name}>", f": {json.dumps(value)}").replace(f"<{name}>", str(value))
    return json.loads(text)


def test_cluster_without_a_bus_decides_and_requests_the_same() -> None:
    world_without_bus = build_world(**{name: value for name, value in SETTINGS.items() if name != "event-bus"})
    with_bus = run_with_bus()
    assert world_without_bus.event_bus.events == []
    assert world_without_bus.entries == with_bus.entries
    requests, more_requests = (
        {kind: use.functions for kind, use in world.request_checks.log.use_by_kind.items()}
        for world in (world_without_bus, with_bus)
    )
    added = {kind: functions for kind, functions in more_requests.items() if kind not in requests}
    assert {kind.call for kind in added} == {"events:PutEvents"}
    assert requests == {kind: functions for kind, functions in more_requests.items() if kind not in added}


def refuse(call: PortCall) -> None:
    if call.port == "event_bus":
        raise Throttled("events:PutEvents")


def kill_after(call: PortCall) -> None:
    if (call.port, call.phase) == ("event_bus", "after"):
        raise Killed


@pytest.mark.parametrize("tap", [refuse, kill_after])
def test_cycles_continue_if_the_bus_fails_or_the_function_dies_while_it_sends(tap: Callable[[PortCall], None]) -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | SETTINGS)
    world = World(make_node_class(), make_node_pool(), template=template)
    with world.use_tap(tap):
        world.apply([make_deployment(3)])
        world.wait_until_settled(3)
    world.advance_seconds(300)
    launched = [event for event in world.event_bus.events if event.detail_type == "Node Launched"]
    assert {read_claim(event) for event in launched} == {claim["metadata"]["name"] for claim in world.list_claims()}
    assert not world.broken


def read_claim(event: BusEvent) -> str:
    return str(json.loads(event.detail)["nodeClaim"])


def test_names_of_detail_types_are_unique() -> None:
    assert len(DETAIL_TYPE_NAMES) == len(DETAIL_TYPES)
