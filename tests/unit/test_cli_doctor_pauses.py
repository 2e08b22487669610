"""`joiner doctor` on what is held back, by people and by Joiner itself, and on who is told what nodes cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.checks.every import examine
from cli.checks.facts import Facts, Notice, Topic, Unseen
from cli.checks.findings import Finding
from cli.doctor_events import FRESH, notices
from cli.doctor_stack import stack_named
from shared.actions.events import QUIET_AT_MOST, event_name, event_object
from shared.disruption.pauses import describe_pauses, is_meant, pauses, switches, words
from shared.launch.breaker import Trip
from shared.launch.outcome import blown
from shared.model.action import PublishEvent
from shared.model.cluster import Cluster, Namespace
from shared.model.commands import Pause, Pauses
from shared.model.objects import Meta
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from tests.contract.kube_front import create
from tests.unit.doctor_answers import DENIED, ByHeart, function
from tests.unit.doctor_facts import NOW, TOPIC, facts, pool, stacked

DEAF = Unseen(why="Unreachable: nobody")
FAILED = "the last 3 replacements came to nothing (none was to be had): it goes on an hour later"


def lines(some: Facts, check: str) -> list[Finding]:
    return [one for _, one in examine(some) if one.check == check]


NOTED = (("joiner.dev/disruption-paused", "Drifted until 2100-01-01T00:00:00Z by anna because Black Friday"),)


@pytest.mark.parametrize(
    ("of_cluster", "words", "remedy"),
    [
        ({"namespaces": (Namespace(name="kube-system", annotations=NOTED),)}, "all NodePools: ", "`joiner resume` "),
        (
            {"node_pools": (pool(meta=Meta(name="batch", annotations=NOTED)),)},
            "NodePool batch: ",
            "`joiner resume --nodepool batch` ",
        ),
    ],
)
def test_what_is_paused_is_said_with_who_until_when_and_why(
    of_cluster: dict[str, Any], words: str, remedy: str
) -> None:
    [one] = lines(facts(of_cluster), "pauses")
    assert one.level == "warn"
    assert one.what.startswith(f"{words}Drifted disruption for ")
    assert "(until 2100-01-01T00:00:00Z), by anna: Black Friday" in one.what
    assert one.remedy.startswith(remedy)


def test_a_pause_that_cannot_be_read_is_wrong() -> None:
    bad = (("joiner.dev/disruption-paused", "Drfited"),)
    first, second = lines(facts({"node_pools": (pool(meta=Meta(name="batch", annotations=bad)),)}), "pauses")
    assert (first.level, second.level) == ("fail", "warn")
    assert "'Drfited'" in first.what


def told(pool: str, message: str, minutes: int = 3) -> Notice:
    return Notice(pool=pool, message=message, at=NOW - timedelta(minutes=minutes))


def test_what_joiner_holds_back_by_itself_is_told_once_for_all_its_nodepools() -> None:
    some = (told("web", FAILED, 9), told("batch", FAILED), told("web", "launch breaker: the others wait"))
    second, first = lines(facts({"notices": some}), "pauses")
    assert first.what == f"NodePool batch, web: {FAILED} (it said so 3 minutes ago)"
    assert second.what.startswith("NodePool web: launch breaker: ")
    assert {one.level for one in (first, second)} == {"warn"}
    assert first.remedy.startswith("`joiner explain nodepool batch` ")


@pytest.mark.parametrize(
    ("seen_of_events", "levels", "words"),
    [
        ((), ["ok"], "nothing is paused by an annotation, and Joiner holds nothing back by itself"),
        (None, ["ok"], "nothing is paused by an annotation"),
        (DEAF, ["ok", "unseen"], "nothing is paused by an annotation"),
    ],
)
def test_nothing_is_concluded_from_events_that_were_not_seen(
    seen_of_events: Any, levels: list[str], words: str
) -> None:
    some = lines(facts({"notices": seen_of_events}), "pauses")
    assert [one.level for one in some] == levels
    assert some[0].what == words


HELD = Pause(pool="web", reason="Drifted", why=FAILED)


def written(kube: InMemoryKube, *some: PublishEvent) -> None:
    for one in some:
        create(kube, "/api/v1/namespaces/default/events", event_object(one, event_name(one), "default"))


def events(*some: Pause, at: datetime = NOW) -> tuple[PublishEvent, ...]:
    cluster = Cluster(taken_at=at, node_pools=(pool(meta=Meta(name="web")),))
    return tuple(one for one in describe_pauses(Pauses(items=some), cluster) if isinstance(one, PublishEvent))


def heard(kube: InMemoryKube) -> list[tuple[str, str, datetime]]:
    return [(one.pool, one.message, one.at) for one in notices(kube, NOW)]


@pytest.fixture
def kube() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


def test_events_of_nodepools_tell_what_joiner_holds_back_by_itself(
    kube: InMemoryKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.listed._PAGE", 1)
    trip = Trip(pool="batch", fuse="nodes_per_minute", message="launch breaker: the others wait")
    opened = blown(trip, Cluster(taken_at=NOW))
    assert isinstance(opened[0], PublishEvent)
    written(kube, *events(HELD), opened[0])
    assert sorted(heard(kube)) == [("batch", trip.message, NOW), ("web", words(HELD), NOW)]


def test_what_people_want_held_back_is_left_to_their_annotations(kube: InMemoryKube) -> None:
    cluster = Cluster(taken_at=NOW, namespaces=(Namespace(name="kube-system", annotations=NOTED),))
    some = people(cluster)
    assert {is_meant(words(one)) for one in some} == {True}
    assert not is_meant(words(HELD))
    written(kube, *events(*some))
    assert heard(kube) == []


def people(cluster: Cluster) -> tuple[Pause, ...]:
    """Answer what an annotation and a setting hold back."""
    both, _ = pauses(cluster, (), (), switches("Empty", "0"))
    assert {one.reason for one in both.items} == {"Drifted", "Empty"}
    return both.items


@pytest.mark.parametrize(("minutes", "still"), [(0, True), (15, True), (17, True), (18, False)])
def test_what_was_not_said_again_is_over(kube: InMemoryKube, minutes: int, *, still: bool) -> None:
    written(kube, *events(HELD, at=NOW - timedelta(minutes=minutes)))
    assert bool(heard(kube)) is still
    assert QUIET_AT_MOST < FRESH


def test_events_of_others_tell_nothing(kube: InMemoryKube) -> None:
    [one] = events(HELD)
    other = event_object(one, "other", "default") | {"source": {"component": "karpenter"}}
    untimed = event_object(one, "untimed", "default") | {"lastTimestamp": None}
    for each in (other, untimed):
        create(kube, "/api/v1/namespaces/default/events", each)
    assert heard(kube) == []


@pytest.mark.parametrize(
    ("topic", "level", "words", "remedy"),
    [
        (Topic(arn=TOPIC, listeners=1), "ok", "1 subscription to topic costs", ""),
        (Topic(arn=TOPIC, listeners=2, key="alias/aws/sns"), "ok", "2 subscriptions to topic costs", ""),
        (
            Topic(arn=TOPIC, listeners=2, key="alias/mine"),
            "ok",
            "2 subscriptions to topic costs; its key alias/mine must let the role of `catalog` in (docs/cost.md)",
            "",
        ),
        (Topic(arn=TOPIC), "warn", "nobody listens to topic costs", "aws sns subscribe --topic-arn "),
        (
            Topic(arn=TOPIC, unconfirmed=1),
            "warn",
            "nobody listens to topic costs, 1 subscription not confirmed yet",
            "confirm: SNS has sent a link",
        ),
        (
            Topic(arn=TOPIC, is_there=False),
            "fail",
            f"joiner:report-topic: there is no topic {TOPIC}: nobody is told what nodes cost",
            "aws sns create-topic --name costs, or ",
        ),
        (DEAF, "unseen", "the topic of joiner:report-topic: could not be looked at: Unreachable: nobody", "look again"),
    ],
)
def test_whoever_is_told_of_costs_is_looked_at(topic: Any, level: str, words: str, remedy: str) -> None:
    [one] = lines(stacked(topic=topic), "report-topic")
    assert (one.level, one.what) == (level, words)
    assert one.remedy.startswith(remedy)


def test_where_nobody_is_to_be_told_of_costs_nothing_is_said_of_it() -> None:
    assert lines(stacked(topic=None), "report-topic") == []


@pytest.mark.parametrize(
    ("answer", "topic"),
    [
        (
            {"Attributes": {"SubscriptionsConfirmed": "1", "SubscriptionsPending": "2", "KmsMasterKeyId": "k"}},
            Topic(arn=TOPIC, listeners=1, unconfirmed=2, key="k"),
        ),
        ({"Error": {"Code": "NotFound", "Message": "Topic does not exist"}}, Topic(arn=TOPIC, is_there=False)),
    ],
)
def test_sns_is_asked_of_the_topic_that_the_functions_tell(answer: dict[str, Any], topic: Topic) -> None:
    found = stack_named(ByHeart(sns__GetTopicAttributes=answer), "joiner-prod", datetime.now(UTC))
    assert found is not None
    assert found.topic == topic


def test_a_topic_is_not_asked_of_where_the_functions_tell_none_or_were_not_seen() -> None:
    silent = function("catalog") | {"Environment": {"Variables": {}}}
    for answer in (silent, DENIED):
        clients = ByHeart(lambda__GetFunctionConfiguration=answer)
        found = stack_named(clients, "joiner-prod", datetime.now(UTC))
        assert found is not None
        assert found.topic is None
        assert clients.asked["sns:GetTopicAttributes"] == 0
