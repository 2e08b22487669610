"""`joiner doctor` on pauses by users and by Joiner itself, and on the subscribers of the cost report."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cli.doctor.checks.all_checks import run_checks
from cli.doctor.checks.finding import CheckResult
from cli.facts.events import MAX_EVENT_AGE, list_pause_events
from cli.facts.model import DoctorFacts, NodePoolEvent, ReadFailure, TopicFacts
from cli.facts.stack import read_stack
from shared.apply.kubernetes.events import MAX_REPEAT_INTERVAL, build_event_name, build_event_object
from shared.decide.disruption.pauses import describe_pauses, find_pauses, is_intentional_pause, parse_pause_settings
from shared.decide.launch.fleets.circuit_breaker import CircuitBreakerTrip
from shared.decide.launch.fleets.fleet_result import report_breaker_trip
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import PublishEvent
from shared.model.decisions.command import DisruptionPause, DisruptionPauses, format_pause
from shared.model.kubernetes.workloads import Namespace
from shared.settings import Settings
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import create
from tests.support.cli.doctor_answers import DENIED, ByHeart, build_function_response
from tests.support.cli.doctor_facts import (
    NOW,
    TOPIC,
    make_control_plane,
    make_facts,
    make_facts_with_stack,
    make_function_facts,
    make_node_class,
    make_node_pool,
)
from tests.support.failing_launches import with_failed_launches

DEAF = ReadFailure(reason="Unreachable: nobody")
FAILED = "the last 3 replacements failed (none was to be had): disruption resumes after an hour"


def list_results(doctor_facts: DoctorFacts, check: str) -> list[CheckResult]:
    return [result for _, result in run_checks(doctor_facts) if result.check == check]


NOTED = (("joiner.dev/disruption-paused", "Drifted until 2100-01-01T00:00:00Z by anna because Black Friday"),)


@pytest.mark.parametrize(
    ("of_cluster", "words", "remedy"),
    [
        ({"namespaces": (Namespace(name="kube-system", annotations=NOTED),)}, "all NodePools: ", "`joiner resume` "),
        (
            {"node_pools": (make_node_pool(meta=ObjectMeta(name="batch", annotations=NOTED)),)},
            "NodePool batch: ",
            "`joiner resume --nodepool batch` ",
        ),
    ],
)
def test_pause_is_reported_with_author_expiry_and_reason(of_cluster: dict[str, Any], words: str, remedy: str) -> None:
    [result] = list_results(make_facts(of_cluster), "pauses")
    assert result.level == "warn"
    assert result.message.startswith(f"{words}Drifted disruption for ")
    assert "(until 2100-01-01T00:00:00Z), by anna: Black Friday" in result.message
    assert result.fix.startswith(remedy)


def test_invalid_pause_annotation_fails_the_check() -> None:
    bad = (("joiner.dev/disruption-paused", "Drfited"),)
    first, second = list_results(
        make_facts({"node_pools": (make_node_pool(meta=ObjectMeta(name="batch", annotations=bad)),)}), "pauses"
    )
    assert (first.level, second.level) == ("fail", "warn")
    assert "'Drfited'" in first.message


def test_pause_after_failed_launches_is_reported_with_its_end() -> None:
    node_class = with_failed_launches(make_node_class(), NOW - timedelta(minutes=10))
    [result] = list_results(make_facts({"node_classes": (node_class,)}), "pauses")
    assert result.level == "warn"
    assert "NodePool default: launches" in result.message
    assert "the last 3 nodes of EC2NodeClass default did not register" in result.message
    assert result.fix.startswith("`kubectl annotate ec2nodeclass default joiner.dev/launch-failures-` ends the pause")


def make_notice(pool: str, message: str, minutes: int = 3) -> NodePoolEvent:
    return NodePoolEvent(pool=pool, message=message, at=NOW - timedelta(minutes=minutes))


def test_automatic_pause_is_reported_once_for_all_its_nodepools() -> None:
    notices = (
        make_notice("web", FAILED, 9),
        make_notice("batch", FAILED),
        make_notice("web", "launch circuit breaker: further launches are delayed"),
    )
    second, first = list_results(make_facts({"pause_events": notices}), "pauses")
    assert first.message == f"NodePool batch, web: {FAILED} (3m ago)"
    assert second.message.startswith("NodePool web: launch circuit breaker: ")
    assert {result.level for result in (first, second)} == {"warn"}
    assert first.fix.startswith("`joiner explain nodepool batch` ")


@pytest.mark.parametrize(
    ("seen_of_events", "levels", "words"),
    [
        ((), ["ok"], "no pause is set, and Joiner pauses nothing itself"),
        (None, ["ok"], "no pause is set"),
        (DEAF, ["ok", "unseen"], "no pause is set"),
    ],
)
def test_pause_check_depends_on_readable_events(seen_of_events: Any, levels: list[str], words: str) -> None:
    results = list_results(make_facts({"pause_events": seen_of_events}), "pauses")
    assert [result.level for result in results] == levels
    assert results[0].message == words


FAILED_DRIFT_PAUSE = DisruptionPause(pool="web", reason="Drifted", message=FAILED)


def write_events(kube: InMemoryKube, *events: PublishEvent) -> None:
    for event in events:
        create(kube, "/api/v1/namespaces/default/events", build_event_object(event, build_event_name(event), "default"))


def make_pause_events(*pauses: DisruptionPause, at: datetime = NOW) -> tuple[PublishEvent, ...]:
    cluster = ClusterSnapshot(taken_at=at, node_pools=(make_node_pool(meta=ObjectMeta(name="web")),))
    return tuple(
        action
        for action in describe_pauses(DisruptionPauses(items=pauses), cluster)
        if isinstance(action, PublishEvent)
    )


def read_notices(kube: InMemoryKube) -> list[tuple[str, str, datetime]]:
    return [(event.pool, event.message, event.at) for event in list_pause_events(kube, NOW)]


@pytest.fixture
def kube() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


def test_nodepool_events_reveal_automatic_pauses(kube: InMemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.cluster.paging._PAGE_SIZE", 1)
    trip = CircuitBreakerTrip(
        node_pool="batch", limit_name="nodes_per_minute", message="launch circuit breaker: further launches are delayed"
    )
    opened = report_breaker_trip(trip, ClusterSnapshot(taken_at=NOW))
    assert isinstance(opened[0], PublishEvent)
    write_events(kube, *make_pause_events(FAILED_DRIFT_PAUSE), opened[0])
    assert sorted(read_notices(kube)) == [("batch", trip.message, NOW), ("web", format_pause(FAILED_DRIFT_PAUSE), NOW)]


def test_user_pauses_are_not_read_from_events(kube: InMemoryKube) -> None:
    cluster = ClusterSnapshot(taken_at=NOW, namespaces=(Namespace(name="kube-system", annotations=NOTED),))
    intentional_pauses = find_intentional_pauses(cluster)
    assert {is_intentional_pause(format_pause(pause)) for pause in intentional_pauses} == {True}
    assert not is_intentional_pause(format_pause(FAILED_DRIFT_PAUSE))
    write_events(kube, *make_pause_events(*intentional_pauses))
    assert read_notices(kube) == []


def find_intentional_pauses(cluster: ClusterSnapshot) -> tuple[DisruptionPause, ...]:
    """Return the pauses from an annotation and from a setting."""
    pauses, _ = find_pauses(cluster, (), (), parse_pause_settings("Empty", 0))
    assert {pause.reason for pause in pauses.items} == {"Drifted", "Empty"}
    return pauses.items


@pytest.mark.parametrize(("minutes", "is_active"), [(0, True), (15, True), (17, True), (18, False)])
def test_event_not_repeated_recently_no_longer_counts_as_a_pause(
    kube: InMemoryKube, minutes: int, *, is_active: bool
) -> None:
    write_events(kube, *make_pause_events(FAILED_DRIFT_PAUSE, at=NOW - timedelta(minutes=minutes)))
    assert bool(read_notices(kube)) is is_active
    assert MAX_REPEAT_INTERVAL < MAX_EVENT_AGE


def test_events_of_other_components_are_ignored(kube: InMemoryKube) -> None:
    [pause_event] = make_pause_events(FAILED_DRIFT_PAUSE)
    foreign_event = build_event_object(pause_event, "other", "default") | {"source": {"component": "karpenter"}}
    untimed = build_event_object(pause_event, "untimed", "default") | {"lastTimestamp": None}
    for event_object in (foreign_event, untimed):
        create(kube, "/api/v1/namespaces/default/events", event_object)
    assert read_notices(kube) == []


@pytest.mark.parametrize(
    ("topic", "level", "words", "remedy"),
    [
        (TopicFacts(arn=TOPIC, confirmed_subscriptions=1), "ok", "1 subscription to topic costs", ""),
        (
            TopicFacts(arn=TOPIC, confirmed_subscriptions=2, kms_key="alias/aws/sns"),
            "ok",
            "2 subscriptions to topic costs",
            "",
        ),
        (
            TopicFacts(arn=TOPIC, confirmed_subscriptions=2, kms_key="alias/mine"),
            "ok",
            "2 subscriptions to topic costs; its key alias/mine must allow the role of `catalog` (docs/cost.md)",
            "",
        ),
        (TopicFacts(arn=TOPIC), "warn", "topic costs has no confirmed subscription", "aws sns subscribe --topic-arn "),
        (
            TopicFacts(arn=TOPIC, pending_subscriptions=1),
            "warn",
            "topic costs has no confirmed subscription, 1 subscription not confirmed",
            "confirm the subscription with the link",
        ),
        (
            TopicFacts(arn=TOPIC, exists=False),
            "fail",
            f"report-topic: topic {TOPIC} does not exist: cost reports are not delivered",
            "aws sns create-topic --name costs, or ",
        ),
        (DEAF, "unseen", "the topic of report-topic: cannot be read: Unreachable: nobody", "run doctor again"),
    ],
)
def test_report_topic_subscriptions_are_checked(topic: Any, level: str, words: str, remedy: str) -> None:
    [result] = list_results(make_facts_with_stack(topic=topic), "report-topic")
    assert (result.level, result.message) == (level, words)
    assert result.fix.startswith(remedy)


@pytest.mark.parametrize(
    ("shifts", "level", "words"),
    [
        ((), "ok", "zonal shift is enabled for the cluster, and no shift is active"),
        (None, "fail", "zonal-shift is on, but zonal shift is not enabled for the EKS cluster"),
        ((ZonalShift(zone_id="use1-az1"),), "warn", "zone use1-az1 has a zonal shift until AWS ends it"),
        (DEAF, "unseen", "zonal shifts: cannot be read"),
    ],
)
def test_zonal_shift_must_be_enabled_for_the_cluster(shifts: Any, level: str, words: str) -> None:
    settings = Settings(cluster_name="prod", region="us-east-1", zonal_shift="on")
    functions = (make_function_facts("provision", settings=settings),)
    [result] = list_results(make_facts_with_stack(functions=functions, zonal_shifts=shifts), "zonal-shift")
    assert result.level == level
    assert result.message.startswith(words)
    assert ("--zonal-shift-config enabled=true" in result.fix) == (shifts is None)


def test_zonal_shift_is_not_checked_without_the_setting() -> None:
    assert list_results(make_facts_with_stack(), "zonal-shift") == []


@pytest.mark.parametrize(("version", "level"), [("1.33", "fail"), ("1.34", "ok"), ("2.0", "ok")])
def test_dynamic_resource_allocation_needs_kubernetes_1_34(version: str, level: str) -> None:
    settings = Settings(cluster_name="prod", region="us-east-1", dynamic_resource_allocation="on")
    facts = make_facts_with_stack(functions=(make_function_facts("provision", settings=settings),))
    assert facts.account is not None
    control_plane = make_control_plane(version=version)
    facts = replace(facts, account=replace(facts.account, control_plane=control_plane))
    [result] = list_results(facts, "dynamic-resources")
    assert result.level == level
    assert f"Kubernetes {version}" in result.message
    assert list_results(make_facts_with_stack(), "dynamic-resources") == []


def test_unconfigured_report_topic_is_not_reported() -> None:
    assert list_results(make_facts_with_stack(topic=None), "report-topic") == []


@pytest.mark.parametrize(
    ("answer", "topic"),
    [
        (
            {"Attributes": {"SubscriptionsConfirmed": "1", "SubscriptionsPending": "2", "KmsMasterKeyId": "k"}},
            TopicFacts(arn=TOPIC, confirmed_subscriptions=1, pending_subscriptions=2, kms_key="k"),
        ),
        ({"Error": {"Code": "NotFound", "Message": "Topic does not exist"}}, TopicFacts(arn=TOPIC, exists=False)),
    ],
)
def test_sns_topic_attributes_are_read_for_the_configured_topic(answer: dict[str, Any], topic: TopicFacts) -> None:
    stack_facts = read_stack(ByHeart(sns__GetTopicAttributes=answer), "joiner-prod", datetime.now(UTC))
    assert stack_facts is not None
    assert stack_facts.topic == topic


def test_sns_is_not_called_without_a_known_report_topic() -> None:
    silent = build_function_response("catalog") | {"Environment": {"Variables": {}}}
    for answer in (silent, DENIED):
        clients = ByHeart(lambda__GetFunctionConfiguration=answer)
        stack_facts = read_stack(clients, "joiner-prod", datetime.now(UTC))
        assert stack_facts is not None
        assert stack_facts.topic is None
        assert clients.call_counts["sns:GetTopicAttributes"] == 0
