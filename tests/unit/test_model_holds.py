"""What people hold back: where it is said, for whom it counts, and how long."""

import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.disruption.pauses import Switches, pauses, switches
from shared.model.cluster import Cluster, Namespace
from shared.model.holds import DISRUPTIONS, HOME, Hold, held_in, holds_from, launches_held
from shared.model.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.objects import Problem, pairs
from shared.model.units import instant_text
from shared.scheduling.placement import Options
from shared.scheduling.static import is_usable
from shared.scheduling.templates import refused
from shared.snapshot import wire_core as wire
from shared.snapshot.core import namespace_from_wire
from tests.unit.lifecycle_cases import NOW, POOL, changed

SOON = instant_text(NOW + timedelta(hours=1))
LATE = instant_text(NOW)


def spoken(**annotations: str) -> Namespace:
    return Namespace(name=HOME, annotations=pairs(annotations))


def of_launches(text: str) -> Cluster:
    return Cluster(taken_at=NOW, node_pools=(POOL,), namespaces=(spoken(**{LAUNCHES_PAUSED: text}),))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dirfted", "'Dirfted' is no reason: did you mean Drifted? write true, or some of Drifted, Empty"),
        ("empty,xyz", "'xyz' is no reason: write true, or some of Drifted, Empty"),
        ("Drifted till 9", "'Drifted till 9' is not like REASON,… [in NODEPOOL,…] [until INSTANT]"),
        ("Drifted until tomorrow", "tomorrow"),
        ("Drifted until", "is not like"),
        ("true,Drifted", "'true' is no reason"),
        ("Launches", "'Launches' is no reason"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        holds_from(text, DISRUPTIONS)


def test_reasons_may_be_written_in_small_letters() -> None:
    assert holds_from("empty, DRIFTED", DISRUPTIONS)[0].what == ("Drifted", "Empty")


def test_the_namespace_and_a_setting_may_name_nodepools() -> None:
    text = "Drifted in web,batch until 2100-01-01T00:00:00Z by anna"
    cluster = Cluster(taken_at=NOW, node_pools=(POOL,), namespaces=(spoken(**{DISRUPTION_PAUSED: text}),))
    held, problems = held_in(cluster)
    assert (problems, [one.pool for one in held]) == ((), ["batch", "web"])
    assert {one.resumed_by() for one in held} == {"`joiner resume`"}
    assert all("of Namespace kube-system says so" in one.why() for one in held)
    for some in (pauses(cluster, (), (), Switches()), pauses(Cluster(taken_at=NOW), (), (), switches(text, "0"))):
        assert [bool(some[0].why(pool, "Drifted")) for pool in ("batch", "web", "other")] == [True, True, False]
        assert not some[0].why("batch", "Empty")


def test_launches_of_one_nodepool_are_held_by_the_namespace_too() -> None:
    assert launches_held(POOL, of_launches(f"true in {POOL.name}"))
    assert not launches_held(POOL, of_launches("true in another"))


def test_a_nodepool_speaks_of_itself() -> None:
    pool = replace(POOL, meta=replace(POOL.meta, annotations=((DISRUPTION_PAUSED, "Empty in another"),)))
    [held], [problem] = held_in(Cluster(taken_at=NOW, node_pools=(pool,)))
    assert (held.pool, held.hold.what) == (POOL.name, DISRUPTIONS)
    assert "'in another' is said on a NodePool, which speaks of itself: leave it out" in problem.message


@pytest.mark.parametrize(
    ("text", "is_held"),
    [("", False), ("false", False), ("true", True), (f"true until {SOON}", True), (f"true until {LATE}", False)],
)
def test_launches_are_held_until_their_instant(text: str, is_held: bool) -> None:  # noqa: FBT001
    cluster = of_launches(text)
    assert bool(launches_held(POOL, cluster)) == is_held
    refusal = refused(POOL, cluster, Options(readiness="Assumed"))
    assert refusal is not None
    assert ("launches are paused" in refusal.message) == is_held


def test_no_node_of_a_static_pool_is_made_while_launches_are_held() -> None:
    assert not is_usable(POOL, of_launches("true"))


def test_a_pool_is_held_by_its_own_annotation_and_by_the_clusters() -> None:
    other = changed(POOL, meta=changed(POOL.meta, name="other", annotations=pairs({LAUNCHES_PAUSED: "true by anna"})))
    cluster = Cluster(taken_at=NOW, node_pools=(POOL, other))
    assert launches_held(POOL, cluster) == ""
    assert launches_held(other, cluster) == (
        f"launches are paused: by anna; {LAUNCHES_PAUSED} of NodePool other says so: `joiner resume --nodepool other` "
        "goes on"
    )
    assert "Namespace kube-system says so: `joiner resume` goes on" in launches_held(POOL, of_launches("true"))


def test_annotations_of_other_namespaces_say_nothing() -> None:
    elsewhere = Namespace(name="shop", annotations=pairs({DISRUPTION_PAUSED: "true"}))
    assert held_in(Cluster(taken_at=NOW, namespaces=(elsewhere,))) == ((), ())


def test_what_cannot_be_read_holds_everything_and_is_named_once() -> None:
    cluster = Cluster(taken_at=NOW, node_pools=(POOL,), namespaces=(spoken(**{DISRUPTION_PAUSED: "Dirfted"}),))
    [held], [problem] = held_in(cluster)
    assert held.hold.what == DISRUPTIONS
    assert (problem.kind, problem.name) == ("Namespace", HOME)
    assert problem.message.endswith("nothing at all is disrupted")
    [_], [of_pool] = held_in(
        Cluster(
            taken_at=NOW,
            node_pools=(changed(POOL, meta=changed(POOL.meta, annotations=pairs({LAUNCHES_PAUSED: "perhaps"}))),),
        )
    )
    assert of_pool.message.endswith("nothing of it is launched")


def test_where_the_namespace_cannot_be_read_everything_is_held() -> None:
    unread = Problem(kind="Namespace", name=HOME, message="metadata: not an object")
    held, _ = held_in(Cluster(taken_at=NOW, problems=(unread,)))
    assert {one.key: set(one.hold.what) for one in held} == {
        DISRUPTION_PAUSED: set(DISRUPTIONS),
        LAUNCHES_PAUSED: {"Launches"},
    }


def test_a_snapshot_keeps_of_a_namespace_what_is_ours() -> None:
    meta = wire.Meta(name=HOME, annotations={DISRUPTION_PAUSED: "true", "owner": "platform"})
    assert namespace_from_wire(wire.Namespace(metadata=meta)).annotations == ((DISRUPTION_PAUSED, "true"),)


def test_a_hold_says_whose_it_is() -> None:
    hold = Hold(what=("Empty",), until=NOW, by="anna", since=NOW, because="Black Friday")
    assert hold.words() == f"by anna since {LATE} until {LATE}: Black Friday"
    assert Hold(what=("Empty",)).words() == ""
