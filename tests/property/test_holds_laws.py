"""Laws of what people hold back: what is written is read, what is added holds, what is taken back does not."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.pausing import added, taken_back
from shared.disruption.pauses import Switches, as_reasons, pauses
from shared.disruption.sweep import sweep
from shared.model.cluster import Cluster, Namespace
from shared.model.holds import DISRUPTIONS, HOME, LAUNCHES, Hold, holds_from, holds_text, plain
from shared.model.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.scheduling.placement import Options
from tests.property.lifecycle_world import clusters

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
INSTANTS = st.integers(-7200, 7200).map(lambda seconds: NOW + timedelta(seconds=seconds))
REASONS = st.sets(st.sampled_from(DISRUPTIONS), min_size=1).map(lambda some: tuple(sorted(some)))
WORDS = st.text("abc ;:,=\n\"'äuntil by since because", max_size=40).map(plain)
HOLDS = st.builds(
    Hold,
    what=REASONS,
    pools=st.sampled_from(((), ("any", "batch"))),
    until=st.none() | INSTANTS,
    by=st.sampled_from(("", "anna", "arn:aws:sts::111122223333:assumed-role/Admin/anna")),
    since=st.none() | INSTANTS,
    because=WORDS,
)
STEPS = st.lists(st.tuples(st.booleans(), HOLDS), max_size=8)


def paused_at(text: str, now: datetime) -> set[str]:
    """Answer for which reasons the functions hold disruption back."""
    spoken = Namespace(name=HOME, annotations=((DISRUPTION_PAUSED, text),))
    found, problems = pauses(Cluster(taken_at=now, namespaces=(spoken,)), (), (), Switches())
    assert problems == ()
    return {reason for reason in DISRUPTIONS if found.why("any", reason)}


@given(st.lists(HOLDS, max_size=4))
def test_what_is_written_is_read(holds: list[Hold]) -> None:
    assert holds_from(holds_text(holds), DISRUPTIONS) == tuple(holds)


@given(STEPS, st.integers(0, 7200))
def test_after_any_history_exactly_what_was_paused_last_is_paused(steps: list[tuple[bool, Hold]], later: int) -> None:
    text, until = "", dict[str, datetime | None]()
    for is_pause, hold in steps:
        text = (added(hold, NOW) if is_pause else taken_back(hold.what, NOW))(DISRUPTION_PAUSED, text)
        for reason in hold.what:
            until.pop(reason, None)
            if is_pause:
                until[reason] = hold.until
    now = NOW + timedelta(seconds=later)
    assert paused_at(text, now) == {reason for reason, end in until.items() if end is None or now < end}


@given(STEPS)
def test_of_a_reason_there_is_one_hold_however_often_it_was_paused(steps: list[tuple[bool, Hold]]) -> None:
    text = ""
    for _, hold in steps:
        text = added(hold, NOW)(DISRUPTION_PAUSED, text)
    said = [reason for one in holds_from(text, DISRUPTIONS) if one.counts(NOW) for reason in one.what]
    assert len(said) == len(set(said))


@given(st.text("DriftedEmpty,; untilbysincebecause0123456789-:TZ\t\n", max_size=60))
def test_whatever_is_written_holds_back_everything_or_what_it_says(text: str) -> None:
    spoken = Namespace(name=HOME, annotations=((DISRUPTION_PAUSED, text),))
    found, problems = pauses(Cluster(taken_at=NOW, namespaces=(spoken,)), (), (), Switches())
    if problems:
        assert {reason for reason in DISRUPTIONS if found.why("any", reason)} == set(DISRUPTIONS)
        assert as_reasons(found)


@given(HOLDS)
def test_launches_and_disruption_do_not_touch_each_other(hold: Hold) -> None:
    assert added(hold, NOW)(LAUNCHES_PAUSED, "true by anna") == "true by anna"
    assert taken_back(LAUNCHES, NOW)(DISRUPTION_PAUSED, text := holds_text([Hold(what=hold.what)])) == text


@given(clusters(), REASONS, st.sampled_from(("NodePool", "Namespace")))
def test_nothing_is_decided_for_a_reason_that_is_paused(start: Cluster, reasons: tuple[str, ...], where: str) -> None:
    text = holds_text([Hold(what=reasons, until=start.taken_at + timedelta(seconds=1))])
    if where == "NodePool":
        pools = tuple(
            replace(one, meta=replace(one.meta, annotations=((DISRUPTION_PAUSED, text),))) for one in start.node_pools
        )
        paused = replace(start, node_pools=pools)
    else:
        paused = replace(start, namespaces=(Namespace(name=HOME, annotations=((DISRUPTION_PAUSED, text),)),))
    held = as_reasons(pauses(paused, (), (), Switches())[0])
    assert not {one.reason for one in sweep(paused, options=Options(), paused=held).commands} & set(reasons)
    over = replace(paused, taken_at=start.taken_at + timedelta(seconds=1))
    assert as_reasons(pauses(over, (), (), Switches())[0]) == frozenset()
