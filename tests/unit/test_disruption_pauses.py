"""What holds disruption back, by whose wish, and until when."""

from datetime import timedelta

import pytest

from shared.disruption.pauses import (
    AFTERMATH,
    LONG,
    Switches,
    as_reasons,
    describe_pauses,
    long_waiting,
    pauses,
    switches,
    words,
)
from shared.disruption.scenes import scene_of
from shared.model.action import PublishEvent
from shared.model.cluster import Cluster
from shared.model.commands import Pause, Pauses, Phase, Standing
from shared.model.labels import DISRUPTION_PAUSED, DISRUPTION_RESUMED, LAUNCHES_PAUSED
from shared.model.objects import Condition, pairs
from shared.model.units import instant_text
from tests.unit.command_cases import order, stands
from tests.unit.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    node,
    of,
    pod,
    true,
)

NOTHING = Switches()
PENDING = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
OTHER = changed(POOL, meta=changed(POOL.meta, name="other", uid="o"))


def annotated(**annotations: str) -> Case:
    keys = {"paused": DISRUPTION_PAUSED, "resumed": DISRUPTION_RESUMED}
    return changed(
        POOL, meta=changed(POOL.meta, annotations=pairs({keys[name]: text for name, text in annotations.items()}))
    )


def paused(of_cluster: Cluster, *standings: Standing, wanted: Switches = NOTHING) -> Pauses:
    return pauses(of_cluster, scene_of(of_cluster).states, standings, wanted)[0]


def stopped(found: Pauses, pool: str = "default") -> set[str]:
    return {reason for reason in ("Drifted", "Empty", "Unhealthy", "Underutilized") if found.why(pool, reason)}


def lost(number: int, phase: Phase = "ROLLED_BACK", **fields: Case) -> Standing:
    """Answer a command that came to nothing, or to that phase, *number* minutes ago."""
    failed = {"failures": (ago(minutes=number),), "why": "replacement new is gone"} if phase == "ROLLED_BACK" else {}
    one = order(f"a{number}", by=("new",))
    return stands(one, phase, since=ago(minutes=number), **(failed | fields))


# People


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("", set()),
        ("false", set()),
        ("Drifted", {"Drifted"}),
        ("Drifted, Empty", {"Drifted", "Empty"}),
        ("true", {"Drifted", "Empty", "Unhealthy", "Underutilized"}),
    ],
)
def test_a_setting_pauses_the_cluster_and_an_annotation_a_pool(text: str, reasons: set[str]) -> None:
    both = cluster(node_pools=(annotated(paused=text), OTHER))
    assert stopped(paused(both)) == reasons
    assert stopped(paused(both), "other") == set()
    everywhere = paused(cluster(node_pools=(POOL, OTHER)), wanted=switches(text, "0"))
    assert stopped(everywhere) == stopped(everywhere, "other") == reasons
    assert all(one.is_meant for one in (*paused(both).items, *everywhere.items))


def test_an_annotation_that_cannot_be_read_pauses_the_pool_and_is_named() -> None:
    odd = cluster(node_pools=(annotated(paused="Dirft"),))
    found, problems = pauses(odd, (), (), NOTHING)
    assert stopped(found) == {"Drifted", "Empty", "Unhealthy", "Underutilized"}
    assert not any(one.is_meant for one in found.items)
    [problem] = problems
    assert (problem.kind, problem.name) == ("NodePool", "default")
    assert "'Dirft' is no reason: did you mean Drifted? write true, or some of Drifted, Empty" in problem.message


@pytest.mark.parametrize(
    ("setting", "percent", "named"),
    [("Dirft", "0", "'Dirft' is no reason"), ("", "101", "'101' is no percentage"), ("", "x", "'x'")],
)
def test_a_setting_that_cannot_be_read_is_refused(setting: str, percent: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        switches(setting, percent)


def test_what_people_pause_stops_what_was_begun_too() -> None:
    one = order("a", by=("new",))
    by_people = paused(cluster(node_pools=(annotated(paused="Underutilized"),)))
    assert "`joiner resume --nodepool default` goes on" in by_people.stops(one)
    assert not paused(cluster(node_pools=(annotated(paused="Drifted"),))).stops(one)
    failures = paused(cluster(), lost(1), lost(2), lost(3))
    assert failures.why("default", "Underutilized")
    assert not failures.stops(one)


# Replacements that come to nothing


@pytest.mark.parametrize(
    ("history", "reasons"),
    [
        ((lost(1), lost(2)), set()),
        ((lost(1), lost(2), lost(3)), {"Drifted", "Underutilized"}),
        ((lost(1), lost(2, "DONE"), lost(3), lost(4)), set()),
        ((lost(1), lost(2), lost(3), lost(4, "DONE")), {"Drifted", "Underutilized"}),
        ((lost(1), lost(2), lost(3, failures=())), set()),
        ((lost(1), lost(2), lost(3, failures=()), lost(4)), {"Drifted", "Underutilized"}),
        ((lost(1), lost(2), stands(order("x"), "DONE", since=ago(seconds=1)), lost(3)), {"Drifted", "Underutilized"}),
        ((lost(1), lost(2), lost(3, "LAUNCHED")), set()),
        ((lost(9, failures=(ago(minutes=9), ago(minutes=5), ago(minutes=1))),), {"Drifted", "Underutilized"}),
        (
            (lost(1, "LAUNCHED", failures=(ago(minutes=9), ago(minutes=5), ago(minutes=3))),),
            {"Drifted", "Underutilized"},
        ),
        ((lost(1, "DONE", failures=(ago(minutes=9), ago(minutes=5), ago(minutes=3))),), set()),
        ((lost(9, failures=(ago(minutes=61), ago(minutes=5), ago(minutes=1))),), set()),
    ],
)
def test_three_failures_in_a_row_pause_what_needs_replacements(history: Case, reasons: set[str]) -> None:
    found = paused(cluster(node_pools=(POOL, OTHER)), *history)
    assert stopped(found) == reasons
    assert stopped(found, "other") == set()


def test_it_says_how_to_resume_and_does() -> None:
    history = (lost(1), lost(2), lost(3))
    [one, _] = paused(cluster(), *history).items
    assert "replacement new is gone" in one.why
    assert f"kubectl annotate nodepool default --overwrite {DISRUPTION_RESUMED}=" in one.why
    resumed = cluster(node_pools=(annotated(resumed="2026-11-21T11:58:00Z"),))
    assert stopped(paused(resumed, *history)) == set()
    long_ago = cluster(node_pools=(annotated(resumed="2026-11-21T11:00:00Z"),))
    assert stopped(paused(long_ago, *history)) == {"Drifted", "Underutilized"}


def test_an_instant_that_cannot_be_read_resumes_nothing_and_is_named() -> None:
    odd = cluster(node_pools=(annotated(resumed="now"),))
    found, problems = pauses(odd, (), (lost(1), lost(2), lost(3)), NOTHING)
    assert stopped(found) == {"Drifted", "Underutilized"}
    [problem] = problems
    assert "resumes nothing" in problem.message


# Pods that wait


def waiting(count: int, since: timedelta = LONG + timedelta(seconds=1)) -> tuple[Case, ...]:
    some = (pod(f"w{number}", on="", phase="Pending", conditions=PENDING) for number in range(count))
    return tuple(changed(one, meta=changed(one.meta, created_at=NOW - since)) for one in some)


@pytest.mark.parametrize(
    ("count", "before", "since", "phase", "is_paused"),
    [
        (2, 1, timedelta(minutes=1), "DRAINING", True),
        (2, 1, timedelta(minutes=1), "DONE", True),
        (2, 1, timedelta(minutes=1), "INITIALIZED", True),
        (2, 2, timedelta(minutes=1), "DONE", False),
        (2, 1, AFTERMATH + timedelta(seconds=1), "DONE", False),
        (2, 1, timedelta(minutes=1), "PROPOSED", False),
        (2, 1, timedelta(minutes=1), "ROLLED_BACK", False),
    ],
)
def test_more_pods_that_wait_than_before_pause_everything_but_repair(
    count: int,
    before: int,
    since: timedelta,
    phase: Phase,
    is_paused: bool,  # noqa: FBT001 - a table's column
) -> None:
    taken = stands(order("a"), phase, since=NOW - since, waiting=before)
    found = paused(cluster(pods=waiting(count)), taken)
    assert stopped(found) == ({"Drifted", "Empty", "Underutilized"} if is_paused else set())
    assert bool(found.stops(order("b", by=("new",)))) == is_paused


def test_a_pod_that_has_not_waited_long_is_on_its_way() -> None:
    assert long_waiting(cluster(pods=waiting(2))) == 2
    assert long_waiting(cluster(pods=waiting(2, LONG))) == 0
    bound = changed(waiting(1)[0], node_name="node-a")
    assert long_waiting(cluster(pods=(bound,))) == 0


# Drift


def drifted(count: int, total: int, **fields: Case) -> Cluster:
    known = {number: true(*STAGES, *(("Drifted",) if number < count else ())) for number in range(total)}
    claims = tuple(claim(f"n{number}", conditions=conditions) for number, conditions in known.items())
    nodes = tuple(node(f"n{number}") for number in known)
    return cluster(node_claims=claims, nodes=nodes, **fields)


@pytest.mark.parametrize(
    ("count", "percent", "is_paused"),
    [(5, "50", False), (6, "50", True), (10, "100", False), (10, "0", False), (1, "9", True)],
)
def test_more_drift_at_once_than_is_usual_pauses_drift(count: int, percent: str, is_paused: bool) -> None:  # noqa: FBT001
    found = paused(drifted(count, 10), wanted=switches("", percent))
    assert (stopped(found) == {"Drifted"}) == is_paused


def test_drift_that_is_meant_goes_on_for_a_day() -> None:
    wanted = switches("", "50")
    meant = drifted(10, 10, node_pools=(annotated(resumed="2026-11-21T11:00:00Z"),))
    assert stopped(paused(meant, wanted=wanted)) == set()
    long_ago = drifted(10, 10, node_pools=(annotated(resumed="2026-11-20T11:00:00Z"),))
    assert stopped(paused(long_ago, wanted=wanted)) == {"Drifted"}


def test_nodes_that_are_not_there_yet_or_going_are_not_counted() -> None:
    some = drifted(1, 2)
    going = (claim("x", deleted=NOW), claim("y", conditions=true("Launched")))
    more = changed(some, node_claims=(*some.node_claims, *going))
    assert stopped(paused(more, wanted=switches("", "49"))) == {"Drifted"}


# Told


def test_a_sweep_is_told_in_words_of_its_own() -> None:
    some = (Pause(reason="Empty", why=""), Pause(pool="a", reason="Drifted", why=""), Pause(pool="b", why=""))
    every = {f"b/{reason}" for reason in ("Drifted", "Empty", "Unhealthy", "Underutilized")}
    assert as_reasons(Pauses(items=some)) == {"Empty", "a/Drifted", *every}
    assert as_reasons(Pauses(items=(Pause(why=""),))) == {"*"}


def test_every_pool_that_is_paused_is_told() -> None:
    found = Pauses(items=(Pause(why="all of it"), Pause(pool="other", reason="Drifted", why="so many")))
    told = of(PublishEvent, describe_pauses(found, cluster(node_pools=(OTHER, POOL))))
    assert [(one.name, one.type, one.reason, one.message) for one in told] == [
        ("default", "Warning", "DisruptionPaused", "All disruption is paused: all of it"),
        ("other", "Warning", "DisruptionPaused", "All disruption is paused: all of it"),
        ("other", "Warning", "DisruptionPaused", "Drifted disruption is paused: so many"),
    ]
    assert words(found.items[1]) == "Drifted disruption is paused: so many"


def test_a_pool_whose_launches_are_paused_is_told() -> None:
    held = changed(POOL, meta=changed(POOL.meta, annotations=pairs({LAUNCHES_PAUSED: "true by anna"})))
    [event] = describe_pauses(Pauses(), cluster(node_pools=(held, OTHER)))
    assert isinstance(event, PublishEvent)
    assert (event.name, event.reason) == ("default", "LaunchesPaused")
    assert "launches are paused: by anna" in event.message


@pytest.mark.parametrize(("minutes", "is_paused"), [(1, True), (0, False)])
def test_a_setting_may_end_by_itself(minutes: int, is_paused: bool) -> None:  # noqa: FBT001
    until = instant_text(NOW + timedelta(minutes=minutes))
    found = paused(cluster(), wanted=switches(f"Empty until {until} because freeze", "0"))
    assert bool(found.why("default", "Empty")) == is_paused
    assert not is_paused or "until" in found.why("default", "Empty")
