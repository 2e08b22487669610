"""Schedules: their grammar, which values are in force, and when they change."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.core.labels import SCHEDULE, SCHEDULE_TIME_ZONE
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.schedule import (
    ScaledWorkload,
    Schedule,
    ScheduledBudget,
    ScheduledValues,
    merge_values,
)
from shared.model.karpenter.schedules.schedule_grammar import (
    BUFFER_KEYS,
    NODE_POOL_KEYS,
    PAUSABLE,
    format_values,
    parse_schedule,
)

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
WORKLOADS = st.builds(
    ScaledWorkload,
    kind=st.sampled_from(("Deployment", "StatefulSet")),
    namespace=st.sampled_from(("shop", "team-a")),
    name=st.sampled_from(("web", "cart.v2")),
    replicas=st.integers(0, 9),
)
VALUES = st.builds(
    ScheduledValues,
    replicas=st.none() | st.integers(0, 9),
    limits=st.dictionaries(st.sampled_from(("cpu", "memory", "nodes")), st.integers(0, 9000)).map(
        lambda amounts: tuple(sorted(amounts.items()))
    ),
    limit_usd_per_hour=st.sampled_from(("", "12.50")),
    consolidation_policy=st.sampled_from(("", "WhenEmpty")),
    consolidate_after=st.sampled_from(("", "30s", "Never")),
    budgets=st.sampled_from(
        ((), (ScheduledBudget(nodes="0", reasons=("Drifted", "Empty")), ScheduledBudget(nodes="10%")))
    ),
    paused=st.sampled_from(((), ("Launches",), ("Drifted", "Launches"), PAUSABLE)),
    workloads=st.lists(WORKLOADS, unique_by=lambda workload: workload.key).map(lambda items: tuple(sorted(items))),
)


def parse(text: str, zone: str = "", keys: tuple[str, ...] = NODE_POOL_KEYS) -> Schedule:
    annotations = {SCHEDULE: text} | ({SCHEDULE_TIME_ZONE: zone} if zone else {})
    schedule = parse_schedule(ObjectMeta(name="default", annotations=build_pairs(annotations)), keys)
    assert schedule is not None
    return schedule


def test_windows_are_lines_with_a_name_a_schedule_a_duration_and_values() -> None:
    schedule = parse(
        "night: 0 20 * * mon-fri 11h replicas=0 paused=launches\n@weekly 2h limits.cpu=1500m", "Asia/Tokyo"
    )
    night, weekly = schedule.windows
    assert (night.name, night.calendar.schedule, night.calendar.zone) == ("night", "0 20 * * mon-fri", "Asia/Tokyo")
    assert night.calendar.duration == timedelta(hours=11)
    assert night.values == ScheduledValues(replicas=0, paused=("Launches",))
    assert (weekly.name, weekly.values.limits) == ("@weekly 2h", (("cpu", 1500),))


def test_semicolons_separate_windows_as_lines_do() -> None:
    assert parse("@daily 1h replicas=1; ;@hourly 5m replicas=2\n") == parse(
        "@daily 1h replicas=1\n@hourly 5m replicas=2"
    )


def test_object_without_the_annotation_has_no_schedule() -> None:
    assert parse_schedule(ObjectMeta(name="default"), NODE_POOL_KEYS) is None
    assert parse_schedule(ObjectMeta(name="a", annotations=((SCHEDULE, " \n"),)), NODE_POOL_KEYS) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 20 * * * replicas=0", "is not a schedule, a duration and values: write them like 0 20 * * mon-fri 11h"),
        ("0 20 * * * 11h replicas = 0", "without spaces around '='"),
        ("0 20 * * * 11h", "sets no value: add one or more of replicas, limits.RESOURCE"),
        ("0 20 * * * 11 replicas=0", "not a duration: '11'"),
        ("0 25 * * * 11h replicas=0", "hour '25' is not a range within 0-23"),
        ("Night: @daily 1h replicas=0", "'Night' is not a name: write lower-case letters, digits and '-', like night:"),
        ("@daily 1h replica=0", "'replica' is not a value of this kind: write one of replicas, limits.RESOURCE"),
        ("@daily 1h replicas=-1", "replicas=-1: is not zero or a positive number: write replicas=0"),
        ("@daily 1h replicas=", "replicas has no value: write replicas=0"),
        ("@daily 1h replicas=1 replicas=2", "replicas is set twice: remove one"),
        ("@daily 1h limits.cpu=many", "limits.cpu=many: not a quantity: 'many': write limits.cpu=100"),
        ("@daily 1h limits.cpu=-1", "is not a limit of zero or more"),
        ("@daily 1h limits.usd-per-hour=-1", "is not between 0 and 1,000,000 USD per hour"),
        ("@daily 1h consolidation-policy=Never", "write consolidation-policy=WhenEmpty|WhenEmptyOrUnderutilized|Bal"),
        ("@daily 1h consolidate-after=soon", "write consolidate-after=30s or consolidate-after=Never"),
        ("@daily 1h budget=101%", "is neither a number of nodes nor a percentage up to 100%: write budget=10%"),
        ("@daily 1h budget=0:Unhealthy", "'Unhealthy' is not a reason"),
        ("@daily 1h paused=Lunches", "did you mean Launches?"),
        ("@daily 1h scale=ReplicaSet/shop/web", "is not a Deployment or StatefulSet: write scale=Deployment/NAMESPACE"),
        ("@daily 1h scale=Deployment/web", "is not a Deployment or StatefulSet"),
        ("@daily 1h scale=Deployment/shop/web:x", "is not zero or a positive number"),
        ("a: @daily 1h replicas=0; a: @daily 2h replicas=0", "two windows 'a': give each its own name"),
    ],
)
def test_invalid_schedule_is_rejected_with_the_field_and_the_fix(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        parse(text)
    assert str(error.value).startswith(f"metadata.annotations[{SCHEDULE}]: ")


def test_invalid_time_zone_is_an_error_of_its_own_annotation() -> None:
    with pytest.raises(ValueError, match=re.escape(f"metadata.annotations[{SCHEDULE_TIME_ZONE}]: ")):
        parse("@daily 1h replicas=0", "Berlin")


def test_capacity_buffer_accepts_only_sizes_and_limits() -> None:
    assert parse("@daily 1h percentage=20 limits.cpu=8", keys=BUFFER_KEYS).windows[0].values.percentage == 20
    with pytest.raises(ValueError, match=r"write one of replicas, percentage, limits\.RESOURCE"):
        parse("@daily 1h paused=true", keys=BUFFER_KEYS)


def test_of_two_open_windows_the_later_one_in_the_list_wins_value_by_value() -> None:
    schedule = parse("@daily 24h replicas=1 limits.cpu=4 limits.memory=8Gi\n0 12 * * * 1h limits.cpu=2")
    assert format_values(schedule.compute_values(MONDAY)) == "replicas=1 limits.cpu=4 limits.memory=8Gi"
    noon = MONDAY + timedelta(hours=12)
    assert format_values(schedule.compute_values(noon)) == "replicas=1 limits.cpu=2 limits.memory=8Gi"


def test_workloads_of_open_windows_are_joined() -> None:
    text = "@daily 24h scale=Deployment/shop/web scale=Deployment/shop/cart\n@daily 1h scale=Deployment/shop/web:1"
    workloads = parse(text).compute_values(MONDAY).workloads
    assert [(workload.name, workload.replicas) for workload in workloads] == [("cart", 0), ("web", 1)]


def test_next_change_skips_windows_that_change_nothing() -> None:
    schedule = parse("0 20 * * * 11h replicas=0\n0 22 * * * 1h replicas=0")
    assert schedule.find_next_change(MONDAY + timedelta(hours=21)) == MONDAY + timedelta(days=1, hours=7)


def test_schedule_that_always_has_the_same_values_has_no_next_change() -> None:
    assert parse("@daily 24h replicas=0").find_next_change(MONDAY) is None


@given(VALUES)
def test_values_are_formatted_as_they_are_parsed(values: ScheduledValues) -> None:
    text = format_values(values)
    if text:
        assert parse(f"@daily 1h {text}").windows[0].values == values


@given(VALUES, VALUES, VALUES)
def test_merging_is_associative_and_keeps_the_last_values(
    first: ScheduledValues, second: ScheduledValues, third: ScheduledValues
) -> None:
    assert merge_values((merge_values((first, second)), third)) == merge_values((first, second, third))
    assert merge_values((first, first)) == merge_values((first,))
    assert merge_values((first, second)).replicas in (second.replicas, first.replicas)


@given(
    st.lists(st.sampled_from(("0 20 * * 1-5 11h", "0 0 * * * 24h", "*/30 * * * * 10m", "0 7 * * 6 48h")), max_size=3),
    st.data(),
)
@settings(deadline=None, max_examples=15)
def test_values_are_a_function_of_the_instant_and_change_only_at_their_edges(
    calendars: list[str], data: st.DataObject
) -> None:
    windows = [f"w{place}: {calendar} replicas={place}" for place, calendar in enumerate(calendars)]
    schedule = parse("\n".join(windows)) if windows else Schedule(windows=())
    at = MONDAY + timedelta(minutes=data.draw(st.integers(0, 20000)))
    edges = [at]
    while len(edges) < 6 and (change := schedule.find_next_change(edges[-1])) is not None:
        edges.append(change)
    for edge, next_edge in pairwise(edges):
        middle = edge + (next_edge - edge) / 2
        assert edge < next_edge
        assert schedule.compute_values(edge) == schedule.compute_values(middle) != schedule.compute_values(next_edge)
