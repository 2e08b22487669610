"""A pod comes back by another name: it inherits the home that was planned for its predecessor."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, PatchMetadata
from shared.model.cluster import Cluster
from shared.model.labels import INITIALIZED, NOMINATED_PODS, NOMINATED_UNTIL, REGISTERED
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, Owner, pairs
from shared.model.pods import Pod
from shared.model.state import state_nodes
from shared.model.units import instant_text
from shared.scheduling.decide import decide
from shared.scheduling.homes import heirs_of, hints_of, homes_of, kin_of, pod_mark
from shared.scheduling.nominations import reservations
from shared.scheduling.solve import solve
from tests.unit.catalogues import NOW, claimed, node, pod, world

OWNER = (Owner(api_version="apps/v1", kind="ReplicaSet", name="web-6d5f", uid="rs"),)


def web(letters: str, cpu: str = "3", **more: object) -> Pod:
    return pod(f"web-6d5f-{letters}", cpu, owners=OWNER, **more)  # type: ignore[arg-type]


def db(letters: str, cpu: str = "3500m", **more: object) -> Pod:
    return pod(f"db-77b-{letters}", cpu, owners=OWNER, **more)  # type: ignore[arg-type]


def made_for(name: str, *pods: Pod, opened: float | None = None) -> tuple[Node, NodeClaim]:
    """A node of 4 cpu made for *pods*: closed still, or in use for so many minutes."""
    some, claim = claimed(node(name), initialized=opened is not None)
    fit = "false" if opened is None else "true"
    labels = pairs(dict(some.meta.labels) | {REGISTERED: fit, INITIALIZED: fit})
    created = NOW - timedelta(seconds=5)
    ready = (Condition(type="Ready", status="True"),)
    some = replace(some, meta=replace(some.meta, labels=labels, created_at=created), conditions=ready)
    notes = ((NOMINATED_PODS, ",".join(sorted(pod_mark(one.name) for one in pods))),)
    since = NOW - timedelta(minutes=opened or 0)
    known = (Condition(type="Initialized", status="True", since=since),) if opened is not None else ()
    return some, replace(claim, meta=replace(claim.meta, annotations=notes, created_at=created), conditions=known)


def cluster(*pods: Pod, machines: tuple[tuple[Node, NodeClaim], ...]) -> Cluster:
    return world(*pods, nodes=tuple(one for one, _ in machines), node_claims=tuple(one for _, one in machines))


def told(some: Cluster) -> list[tuple[str, str]]:
    found = reservations(some)
    places = [hint for _, hints in sorted(found.places.items()) for hint in hints]
    return [(hint.name, hint.node) for hint in (*found.hints, *places)]


TWO = (made_for("n1", web("bbbbb")), made_for("n2", db("bbbbb")))


def test_pods_of_one_maker_have_half_a_mark_in_common() -> None:
    one, other = pod_mark("shop/web-6d5f-bbbbb"), pod_mark("shop/web-6d5f-ccccc")
    assert kin_of(one) == kin_of(other)
    assert one != other
    for stranger in ("shop/web-77b-bbbbb", "home/web-6d5f-bbbbb", "shop/web-6d5f-0", "shop/web-6d5f-alien"):
        assert kin_of(pod_mark(stranger)) != kin_of(one)


@pytest.mark.parametrize(("opened", "is_home"), [(None, True), (4, True), (6, False)])
def test_a_node_in_use_expects_nobody_for_ever_though_it_is_nominated_again_and_again(
    opened: float | None,
    is_home: bool,  # noqa: FBT001
) -> None:
    some, claim = made_for("n1", web("bbbbb"), opened=opened)
    until = ((NOMINATED_UNTIL, instant_text(NOW + timedelta(minutes=1))),)
    claim = replace(claim, meta=replace(claim.meta, annotations=(*claim.meta.annotations, *until)))
    [state] = state_nodes(cluster(machines=((some, claim),)))
    assert state.is_nominated(NOW)
    assert bool(homes_of([state], NOW)) == is_home


def test_who_comes_back_by_another_name_is_told_of_its_predecessors_home() -> None:
    some = cluster(web("ccccc"), db("ccccc"), machines=TWO)
    assert told(some) == [("web-6d5f-ccccc", "n1"), ("db-77b-ccccc", "n2")]


def test_a_pod_that_leaves_is_succeeded_at_once_and_one_that_stays_is_not() -> None:
    leaving = web("bbbbb", on="old")
    gone = replace(leaving, meta=replace(leaving.meta, deleted_at=NOW))
    marks = {pod_mark(leaving.name)}
    assert heirs_of(marks, (gone, web("ccccc"))) == {pod_mark(web("ccccc").name): pod_mark(leaving.name)}
    assert heirs_of(marks, (leaving, web("ccccc"))) == {}


def test_each_place_is_inherited_once() -> None:
    marks = {pod_mark(web(letters).name) for letters in ("bbbbb", "ddddd")}
    heirs = heirs_of(marks, (web("ccccc"), web("fffff"), web("ggggg")))
    assert len(heirs) == 2
    assert set(heirs.values()) == marks


@pytest.mark.parametrize(
    "stranger",
    [
        replace(web("ccccc"), node_name="n9"),
        pod("web-6d5f-ccccc"),
        pod("web-6d5f-0", owners=OWNER),
    ],
    ids=["has a node", "made by hand", "has a name of its own"],
)
def test_who_inherits_nothing(stranger: Pod) -> None:
    assert heirs_of({pod_mark(web("bbbbb").name)}, (stranger,)) == {}


@pytest.mark.parametrize(("minutes", "count"), [(4, 1), (6, 0)])
def test_a_node_expects_heirs_for_some_minutes_after_it_is_in_use(minutes: float, count: int) -> None:
    some = cluster(web("ccccc"), machines=(made_for("n1", web("bbbbb"), opened=minutes),))
    homes = homes_of(state_nodes(some), NOW, some.pods)
    assert [home.name for mark, home in homes.items() if mark == pod_mark("shop/web-6d5f-ccccc")] == ["n1"] * count


def test_heirs_are_planned_for_where_their_predecessors_were_and_nothing_is_launched() -> None:
    """First fit alone would put the pod that is taken up first on the first node."""
    some = cluster(db("ccccc"), web("ccccc"), machines=TWO)
    placed = {name: fit.node for fit in solve(some).existing for name in fit.pods}
    assert placed == {"shop/web-6d5f-ccccc": "claim-n1", "shop/db-77b-ccccc": "claim-n2"}
    assert not [one for one in decide(some, solve(some)) if isinstance(one, CreateNodeClaim)]


def test_the_claim_remembers_the_heir_instead() -> None:
    some = cluster(web("ccccc"), db("ccccc"), machines=TWO)
    written = {
        action.name: dict(action.annotations)[NOMINATED_PODS]
        for action in decide(some, solve(some))
        if isinstance(action, PatchMetadata)
    }
    assert written == {
        "claim-n1": pod_mark("shop/web-6d5f-ccccc"),
        "claim-n2": pod_mark("shop/db-77b-ccccc"),
    }


def test_an_heir_that_was_told_waits_like_any_other() -> None:
    hinted = replace(web("ccccc"), nominated_node_name="n1")
    assert hints_of(cluster(hinted, machines=TWO)).ours == {hinted.name: "n1"}
    late = cluster(hinted, machines=(made_for("n1", web("bbbbb"), opened=6),))
    assert not hints_of(late).ours
