"""What a container remembers, and when it lists all the same."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from shared.errors import Expired, Fault, Forbidden, Gone, Throttled, Unreachable
from shared.model.cluster import Cluster
from shared.ports import Changes, Kube, World
from shared.snapshot import memory
from shared.snapshot.take import EVERYTHING, Wanted, first_look, retake, take
from tests.unit.snapshot_world import NOW, PATHS, Lists, a_pod, named, world

PODS = Wanted(lists=("pods",))
MACHINES = Wanted(lists=("nodes", "node_claims", "pods"))
KINDS = {path: kind for kind, path in PATHS.items()}
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


class Watched(Lists):
    """Lists whose changes are told by the test; every object has an identity, every list a version."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        """Hold *objects* by kind, at version 10."""
        some = {kind: [stamped(one) for one in ones] for kind, ones in objects.items()}
        super().__init__(some)
        self.versions = {"": "10"}
        self.told: dict[str, Changes | Fault] = {}
        self.since: list[tuple[str, str, str]] = []
        self.memory: dict[str, object] = {}
        self.remembered_while_listing: list[int] = []
        self.refusal: Fault | None = None

    def list(self, path: str, **options: Any) -> bytes:
        token = options.get("continue_token", "")
        self.remembered_while_listing.append(len(self.memory))
        document = msgspec.json.decode(super().list(path, **options))
        document["metadata"]["resourceVersion"] = self.versions.get(token, "10")
        return msgspec.json.encode(document)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        kind = KINDS[path]
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(f"watch {kind}")
        self.since.append((kind, since, field_selector))

        def ask() -> Changes:
            self.asked.append(f"ask {kind}")
            told = self.told.get(kind, Changes(version=since))
            if isinstance(told, Fault):
                raise told
            return told

        return ask


def stamped(one: dict[str, Any], version: str = "9") -> dict[str, Any]:
    meta = one["metadata"]
    return one | {"metadata": {"uid": f"uid-{meta['name']}", "resourceVersion": version} | meta}


def event(type_: str, one: dict[str, Any], version: str) -> bytes:
    return msgspec.json.encode({"type": type_, "object": stamped(one, version)})


def changes(*events: bytes, version: str = "20", count: int | None = None) -> Changes:
    return Changes(events=events, version=version, count=count)


def warm(kube: Watched, now: Callable[[], datetime] = lambda: NOW) -> World:
    return msgspec.structs.replace(world(kube, clock=now), kube=cast("Kube", kube), memory=kube.memory)


def pods_of(cluster: Cluster) -> list[str]:
    return [pod.meta.name for pod in cluster.pods]


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SMALL", 0)


@pytest.fixture
def kube() -> Watched:
    return Watched(Pod=[a_pod("a"), a_pod("b")], Node=[named("n")], NodeClaim=[named("c", spec={"nodeClassRef": REF})])


def test_what_is_remembered_is_followed_from_its_version(kube: Watched) -> None:
    take(warm(kube), PODS)
    kube.told["Pod"] = changes(
        event("ADDED", a_pod("c"), "11"), event("DELETED", a_pod("a"), "12"), event("MODIFIED", a_pod("b"), "13")
    )
    second = take(warm(kube), PODS)
    assert [(pod.meta.name, pod.meta.resource_version) for pod in second.pods] == [("b", "13"), ("c", "11")]
    kube.told.clear()
    assert take(warm(kube), PODS) == second
    assert kube.since == [("Pod", "10", kube.selectors["Pod"]), ("Pod", "20", kube.selectors["Pod"])]
    assert kube.asked.count("Pod") == 1


def test_without_a_memory_everything_is_listed(kube: Watched) -> None:
    forgetful = msgspec.structs.replace(warm(kube), memory=None)
    assert take(forgetful, PODS) == take(forgetful, PODS)
    assert kube.asked == ["Pod", "Pod"]


def test_a_small_list_is_listed_again(kube: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SMALL", 8192)
    take(warm(kube), PODS)
    take(warm(kube), PODS)
    assert kube.asked == ["Pod", "Pod"]


def test_all_watches_begin_in_order_before_the_first_is_asked(kube: Watched) -> None:
    take(warm(kube), MACHINES)
    kube.asked.clear()
    take(warm(kube), MACHINES)
    kinds = ["Node", "NodeClaim", "Pod"]
    assert kube.asked == [*(f"watch {kind}" for kind in kinds), *(f"ask {kind}" for kind in kinds)]


@pytest.mark.parametrize("kind", ["Node", "NodeClaim"])
def test_pods_are_followed_again_where_machines_had_to_be_listed(kube: Watched, kind: str) -> None:
    take(warm(kube), MACHINES)
    kube.told[kind] = Expired("410")
    kube.asked.clear()
    take(warm(kube), MACHINES)
    assert kube.asked[kube.asked.index(kind) :][-2:] == ["watch Pod", "ask Pod"]
    assert kube.asked.count("watch Pod") == 2


def test_a_memory_reads_no_more_of_a_second_look_than_changed(kube: Watched) -> None:
    first = take(warm(kube), EVERYTHING)
    kube.asked.clear()
    kube.told["NodeClaim"] = changes(event("ADDED", named("d", spec={"nodeClassRef": REF}), "15"))
    second = retake(warm(kube), first)
    assert [claim.name for claim in second.node_claims] == ["c", "d"]
    assert kube.asked == ["watch NodeClaim", "ask NodeClaim"]


A_PLAIN_EVENT = event("MODIFIED", a_pod("a"), "11")


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("too old", Expired("410")),
        ("cut off", Unreachable("reset")),
        ("not served", Gone("404")),
        ("out of order", changes(event("MODIFIED", a_pod("a"), "12"), A_PLAIN_EVENT)),
        ("told twice", changes(A_PLAIN_EVENT, A_PLAIN_EVENT)),
        ("known already", changes(event("MODIFIED", a_pod("a"), "10"))),
        ("after its end", changes(event("MODIFIED", a_pod("a"), "21"))),
        ("no JSON", changes(b"{")),
        ("no text", changes(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}')),
        ("no name", changes(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}')),
        ("no version", changes(b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}')),
        ("no change", changes(event("BOOKMARK", a_pod("a"), "11"))),
    ],
)
def test_in_doubt_it_lists_again(kube: Watched, why: str, told: Changes | Fault) -> None:
    take(warm(kube), PODS)
    kube.objects = {"Pod": [stamped(a_pod("z"))]}
    kube.told["Pod"] = told
    assert pods_of(take(warm(kube), PODS)) == ["z"], why
    assert kube.remembered_while_listing == [0, 0]
    kube.told.clear()
    assert pods_of(take(warm(kube), PODS)) == ["z"]
    assert kube.asked.count("Pod") == 2


def test_a_count_that_does_not_agree_is_doubt(kube: Watched) -> None:
    nodes = Wanted(lists=("nodes",))
    take(warm(kube), nodes)
    kube.told["Node"] = changes(event("ADDED", named("m"), "11"), count=2)
    assert len(take(warm(kube), nodes).nodes) == 2
    kube.told["Node"] = changes(count=3, version="21")
    kube.asked.clear()
    take(warm(kube), nodes)
    assert kube.asked == ["watch Node", "ask Node", "Node"]


def test_pods_are_a_selection_whose_number_nobody_knows(kube: Watched) -> None:
    take(warm(kube), PODS)
    kube.told["Pod"] = changes(count=500)
    take(warm(kube), PODS)
    assert kube.asked.count("Pod") == 1


@pytest.mark.parametrize("begins", [True, False])
def test_a_server_that_is_busy_is_not_asked_for_more(kube: Watched, *, begins: bool) -> None:
    take(warm(kube), PODS)
    kube.told["Pod"] = Throttled("later")
    kube.refusal = Throttled("later") if begins else None
    with pytest.raises(Throttled):
        take(warm(kube), PODS)
    kube.refusal = None
    kube.told.clear()
    assert pods_of(take(warm(kube), PODS)) == ["a", "b"]
    assert kube.asked.count("Pod") == 1


@pytest.mark.parametrize("begins", [True, False])
def test_what_may_not_be_watched_is_told_once_and_listed(kube: Watched, *, begins: bool) -> None:
    take(warm(kube), PODS)
    fault = Forbidden("GET /api/v1/pods?watch=1: 403 cannot watch; apply rbac.yaml")
    kube.told["Pod"] = fault
    kube.refusal = fault if begins else None
    [told] = take(warm(kube), PODS).problems
    assert (told.kind, told.name) == ("Watch", "/api/v1/pods")
    assert told.message == f"{fault}; it is listed instead, which costs the API server more"
    kube.refusal = None
    kube.asked.clear()
    for minutes in (0, 1, 29):
        assert take(warm(kube, partial(NOW.__add__, timedelta(minutes=minutes))), PODS).problems == ()
    assert kube.asked == ["Pod"] * 3
    later = warm(kube, lambda: NOW + timedelta(minutes=30))
    assert [one.kind for one in take(later, PODS).problems] == ["Watch"], "it is asked for again, in vain"


def test_a_list_that_cannot_be_read_either_is_a_fault(kube: Watched) -> None:
    take(warm(kube), PODS)
    kube.told["Pod"] = Unreachable("down")
    kube.faults["Pod"] = Unreachable("down")
    with pytest.raises(Unreachable):
        take(warm(kube), PODS)
    assert kube.memory == {}


@pytest.mark.parametrize(
    ("later", "listed"),
    [(timedelta(minutes=29), 1), (timedelta(minutes=30), 2), (-timedelta(seconds=1), 2), (timedelta(days=3), 2)],
)
def test_a_list_is_not_trusted_for_long_nor_before_it_was_read(kube: Watched, later: timedelta, listed: int) -> None:
    take(warm(kube), PODS)
    take(warm(kube, lambda: NOW + later), PODS)
    assert kube.asked.count("Pod") == listed


@pytest.mark.parametrize("versions", [{"": "10", "1": "11"}, {"": "", "1": ""}, {"": "ten", "1": "ten"}])
def test_a_list_of_no_one_moment_is_not_kept(kube: Watched, versions: dict[str, str]) -> None:
    kube.per_page, kube.versions = 1, versions
    assert pods_of(take(warm(kube), PODS)) == ["a", "b"]
    assert kube.memory == {}


def test_a_bad_object_is_remembered_until_it_is_mended_or_gone(kube: Watched) -> None:
    bad = a_pod("a") | {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}}
    kube.objects = {"Pod": [stamped(bad), stamped(a_pod("b"))]}
    first = take(warm(kube), PODS)
    assert [problem.name for problem in first.problems] == ["shop/a"]
    assert take(warm(kube), PODS) == first
    kube.told["Pod"] = changes(event("MODIFIED", bad | named("b", "shop"), "11"), event("MODIFIED", a_pod("a"), "12"))
    second = take(warm(kube), PODS)
    assert [problem.name for problem in second.problems] == ["shop/b"]
    assert pods_of(second) == ["a"]
    kube.told["Pod"] = changes(event("DELETED", named("b", "shop"), "21"), version="21")
    third = take(warm(kube), PODS)
    assert third.problems == ()
    assert kube.asked.count("Pod") == 1


def test_an_object_that_nobody_can_name_is_not_kept() -> None:
    kube = Watched(Pod=[a_pod("a")])
    kube.objects = {"Pod": [{"metadata": {"uid": ""}, "spec": {}}]}
    assert len(take(warm(kube), PODS).problems) == 1
    assert kube.memory == {}


def test_a_definition_that_comes_and_goes_is_told_of(kube: Watched) -> None:
    claims = Wanted(lists=("node_claims",))
    take(warm(kube), claims)
    kube.told["NodeClaim"] = kube.faults["NodeClaim"] = Gone("404")
    gone = take(warm(kube), claims)
    assert gone.node_claims == ()
    assert [problem.kind for problem in gone.problems] == ["CustomResourceDefinition"]
    kube.faults.clear()
    assert len(take(warm(kube), claims).node_claims) == 1


def unscheduled(name: str) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return a_pod(name) | {"status": {"conditions": conditions}}


def test_the_first_look_is_at_pods_without_a_node_alone_if_one_of_them_waits() -> None:
    kube = Lists({"Pod": [unscheduled("a")]})
    assert pods_of(first_look(world(kube))) == ["a"]
    assert kube.asked == ["Pod"]
    assert kube.selectors["Pod"] == "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def test_the_first_look_stops_at_the_first_page_with_a_pod_that_waits() -> None:
    kube = Lists({"Pod": [a_pod("a"), a_pod("b"), unscheduled("c"), a_pod("d"), a_pod("e")]}, per_page=2)
    assert pods_of(first_look(world(kube))) == ["a", "b", "c", "d"]


def test_the_first_look_goes_on_to_machines_and_node_classes() -> None:
    kube = Lists({"Pod": [a_pod("a")], "Node": [named("n")]})
    assert [node.name for node in first_look(world(kube)).nodes] == ["n"]
    assert kube.asked == ["Pod", "Node", "NodeClaim", "EC2NodeClass"]


def test_a_first_look_that_expires_begins_again() -> None:
    kube = Lists({"Pod": [a_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 1
    assert pods_of(first_look(world(kube))) == list("abcd")
