"""Bad days of a real control plane: nothing ends, what helps is named, and work goes on when it is back.

Everything here happens to the deployed handlers in (shortened) real time. What they could not see they must not take
for gone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from math import log2

import msgspec
import pytest

from shared.errors import Forbidden, Unreachable
from shared.kube.definitions import definitions
from shared.model.objects import Problem
from shared.snapshot import memory
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.watching import Watching
from sim.cloud import instances
from sim.playground_desk import DEFINITIONS, NODE_CLAIMS
from tests.contract.kube_front import is_gone
from tests.contract.test_kube_crds import claim
from tests.controlplane.definitions import install
from tests.controlplane.fixtures import FUNCTIONS
from tests.kubernetes.arena import POOLS, SECOND, Arena, is_ready
from tests.kubernetes.bad_days import (
    CLUSTER_WIDE,
    ELSEWHERE,
    ShakenArena,
    Trap,
    Watch,
    alone,
    full_house,
    is_refused,
    object_of,
    policy,
    standing,
    tapped,
    without_service,
)
from tests.kubernetes.bad_plane import LISTER, TIMEOUT, BadPlane
from tests.kubernetes.manifests import deployment, node_class, node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODE_CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}


def inhabited(plane: BadPlane) -> ShakenArena:
    """Answer an arena on *plane* whose machines start at once, and whose schedules ring every two seconds besides."""
    arena = ShakenArena(plane)
    arena.desk.apply_all([node_pool("default"), node_pool("side", tier="side")])
    arena.until(lambda: all(is_ready(one) for one in arena.desk.look(POOLS)), "the NodePools are ready")
    arena.playground.ring_every(2 * SECOND)
    return arena


@pytest.fixture(scope="module")
def _at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instances, "BOOT", (timedelta(seconds=2.2), timedelta(seconds=3)))
        yield


@pytest.fixture(scope="module")
def plane() -> Iterator[BadPlane]:
    with BadPlane() as plane:
        yield plane


@pytest.fixture(scope="module")
def shared(plane: BadPlane, _at_once: None) -> ShakenArena:
    """One with a node of ours; tests leave it as they found it, but for what they launched."""
    arena = inhabited(plane)
    arena.desk.apply(deployment("web", 1, "2", "1Gi"))
    arena.until(arena.running(1, "web"), "a node of ours runs a pod")
    return arena


@pytest.fixture
def arena(shared: ShakenArena) -> ShakenArena:
    """The shared one, in which nothing is under way."""
    shared.comes_to_rest()
    return shared


def goes_on(arena: Arena, app: str) -> None:
    """Fail unless a pod that nothing has room for gets a node, and runs."""
    before = arena.told.launched
    arena.desk.apply(alone(app))
    arena.until(arena.running(1, app), "work goes on")
    assert arena.told.launched > before


def says_what_is_out_of_reach(arena: Arena, plane: BadPlane, since: int) -> bool:
    said = [one for one in arena.playground.lines[since:] if "is up and that the functions reach it" in one]
    return any(plane.endpoint in one for one in said)


@pytest.fixture
def mortal() -> Iterator[BadPlane]:
    with BadPlane() as plane:
        yield plane


@pytest.fixture
def mortals(mortal: BadPlane, _at_once: None) -> ShakenArena:
    return inhabited(mortal)


def test_an_api_server_that_dies_within_a_cycle_costs_nothing(mortals: ShakenArena, mortal: BadPlane) -> None:
    sites = [
        ("after", "kube.create", NODE_CLAIMS),
        ("after", "ec2.create_fleet", ""),
        ("after", "kube.patch", "/api/v1/nodes/"),
    ]
    trap = Trap(sites, mortal.die)
    watch, claims, seen = Watch(mortals), len(mortals.claims()), set[str]()

    def all_run() -> bool:
        seen.update(pod["metadata"]["name"] for pod in mortals.pods())
        return mortals.running(2)()

    mortals.desk.apply_all([alone("one"), alone("two", **ELSEWHERE)])
    mortals.settle("one", 1)
    mortals.settle("two", 1)
    assert not all_run()
    with tapped(mortals, trap):
        for left in (2, 1, 0):
            mortals.until(partial(trap.has_left, left), "the next call is made", SECOND / 4)
            died = len(mortals.playground.lines)
            mortals.until(
                partial(says_what_is_out_of_reach, mortals, mortal, died), "somebody says what is out of reach"
            )
            mortal.rise()
            watch.nothing_has_ended()
    mortals.until(all_run, "the pods run at the end")
    mortals.until(mortals.instances_are_nodes, "every instance is a node")
    assert not mortals.told.ended
    # A pod that comes to a node whose controllers do not know yet that it is open is evicted, and another made for it.
    assert 2 <= watch.launched == len(mortals.claims()) - claims <= len(seen), seen
    assert not mortals.planned_twice()


def test_an_api_server_that_neither_answers_nor_hangs_up_is_left_alone(arena: ShakenArena, plane: BadPlane) -> None:
    watch = Watch(arena)

    def is_left_alone() -> bool:
        return bool(
            watch.told("Unreachable", "timed out", plane.endpoint)
            and watch.told("Unreachable", f"not sent: the API server was silent for {TIMEOUT.seconds} s")
        )

    with plane.frozen():
        arena.until(is_left_alone, "the functions stay away")
    arena.passes(3 * SECOND)
    watch.nothing_has_ended()
    goes_on(arena, "after-silence")


def test_a_token_that_is_not_taken_is_renewed_once_and_then_told(arena: ShakenArena, plane: BadPlane) -> None:
    kube = plane.client()
    name = {"metadata": {"name": "functions"}}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "functions"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "joiner-functions"}
    kube.create(ACCOUNTS, msgspec.json.encode(name))
    kube.create(BINDINGS, msgspec.json.encode(name | {"roleRef": role, "subjects": [subject]}))
    revoked = plane.account_token("default", "functions")
    kube.delete(f"{ACCOUNTS}/functions")
    kube.create(ACCOUNTS, msgspec.json.encode(name))
    valid = plane.account_token("default", "functions")
    arena.until(lambda: is_refused(lambda: plane.client(revoked).list(POOLS), "401"), "one token is not taken")
    plane.wait_for(lambda: bool(plane.client(valid).list(POOLS)), "the other is")

    watch = Watch(arena)
    try:
        plane.identity, plane.next_identity = revoked, valid
        arena.until(lambda: plane.renewals > 0, "another token is asked for")
        arena.passes(3 * SECOND)
        assert (plane.renewals, watch.told("401")) == (1, [])

        plane.identity = plane.next_identity = revoked
        arena.until(lambda: bool(watch.told("Forbidden", "401", "access entry", "joiner:functions")), "that is told")
        arena.passes(3 * SECOND)
        assert plane.renewals == 2, "every call asks for another token"
    finally:
        plane.identity = ""
    watch.nothing_has_ended()
    goes_on(arena, "after-expiry")


def test_an_api_server_that_is_too_busy_is_not_hammered(arena: ShakenArena, plane: BadPlane) -> None:
    watch, level = Watch(arena), "nobody"
    flow = f"{CLUSTER_WIDE['FlowSchema']}/{level}"
    arena.desk.apply(alone("patient"))
    with (
        standing(
            arena,
            *full_house(level),
            takes_effect=lambda: plane.flow_schema() == object_of(arena, flow)["metadata"]["uid"],
        ),
        plane.crowded(level),
    ):
        arena.until(lambda: bool(watch.told("Throttled", "429", "priority level")), "somebody is turned away")
        before, began = plane.rejected(level), arena.seconds
        arena.passes(10 * SECOND)
        arena.until(lambda: plane.rejected(level) > before, "somebody tries again")
        waits = "not sent: the API server asked for time"
        arena.until(lambda: bool(watch.told("Throttled", waits)), "somebody does not")
        rejected, took = plane.rejected(level) - before, arena.seconds - began
        most = 2 + log2(1 + took) + took / 20
        assert rejected <= most, f"1, 2, 4 … 30 seconds apart, and one that waits, each minute; it took {took:.0f} s"
    watch.nothing_has_ended()
    arena.until(arena.running(1, "patient"), "work goes on")


def test_a_policy_that_refuses_our_patch_holds_up_its_claim_alone(arena: ShakenArena, plane: BadPlane) -> None:
    watch = Watch(arena)

    def has_instance(pool: str) -> bool:
        mine = [one for one in arena.claims() if one["metadata"]["labels"]["karpenter.sh/nodepool"] == pool]
        return any(one.get("status", {}).get("providerID") for one in mine if one["metadata"]["name"] not in known)

    known = {one["metadata"]["name"] for one in arena.claims()}
    refuses = policy("no-joiner-today", "object.metadata.labels['karpenter.sh/nodepool'] != 'side'")
    kube, path = plane.client(plane.token_of(FUNCTIONS)), f"{NODE_CLAIMS}/{min(known)}?dryRun=All"
    aside = msgspec.json.encode({"metadata": {"labels": {"karpenter.sh/nodepool": "side"}}})
    with standing(arena, *refuses, takes_effect=lambda: is_refused(lambda: kube.patch(path, aside), "no-joiner-today")):
        arena.desk.apply_all([alone("refused", **ELSEWHERE), alone("admitted")])
        arena.until(lambda: has_instance("default"), "the other claim goes on")
        helps = "let it admit what the group joiner:functions writes"
        arena.until(lambda: bool(watch.told("PatchStatus", "no-joiner-today", helps)), "it is told")
        arena.until(lambda: watch.launched >= 2, "both are launched")
        assert not has_instance("side")
        watch.nothing_has_ended()
    arena.until(lambda: has_instance("side"), "the claim learns of its instance")
    assert watch.launched == 2, "somebody launched a second time"


def test_a_webhook_whose_service_is_dead_is_named(arena: ShakenArena) -> None:
    watch = Watch(arena)
    probe = partial(arena.desk.kube.create, f"{NODE_CLAIMS}?dryRun=All", msgspec.json.encode(claim("probe")))
    guard = "guard.example.com"
    with standing(arena, without_service(guard), takes_effect=lambda: is_refused(probe, guard)):
        arena.desk.apply(alone("guarded"))
        arena.until(lambda: bool(watch.told("CreateNodeClaim", "guard.example.com", "repair the webhook")), "told")
        arena.passes(2 * SECOND)
        launched = watch.launched
        assert launched == 0
        watch.nothing_has_ended()
    arena.until(arena.running(1, "guarded"), "work goes on")
    assert watch.launched == 1, "\n".join(arena.said[-60:])


def test_what_may_not_be_watched_is_listed_and_told_once(plane: BadPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SMALL", 0)
    kube, theirs = plane.client(), plane.client(plane.token_of(LISTER))
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    kube.create(ROLES, msgspec.json.encode({"metadata": {"name": LISTER.name}, "rules": rules}))
    subject = {"kind": "User", "name": LISTER.name}
    binding = {"roleRef": {"kind": "ClusterRole", "name": LISTER.name}, "subjects": [subject]}
    kube.create(BINDINGS, msgspec.json.encode(binding | {"metadata": {"name": LISTER.name}}))
    listing = next(one for one in LISTINGS if one.field == "namespaces")
    plane.wait_for(lambda: bool(theirs.list(listing.path)), "the role to be known")
    kept: dict[str, object] = {}

    def look() -> list[Problem]:
        problems: list[Problem] = []
        found = Watching(theirs, kept, datetime.now(UTC)).lists([listing], problems)
        assert len(found["namespaces"]) == len(msgspec.json.decode(kube.list(listing.path))["items"])
        return problems

    assert look() == []
    kube.create(listing.path, b'{"metadata":{"name":"new"}}')
    [told] = look()
    for words in ('cannot watch resource "namespaces"', "the ClusterRole joiner-functions", "apply rbac.yaml"):
        assert words in told.message
    kube.create(listing.path, b'{"metadata":{"name":"newer"}}')
    assert (look(), look()) == ([], [])
    with pytest.raises(Forbidden, match=r'cannot list resource "nodes".*the ClusterRole joiner-functions'):
        theirs.list("/api/v1/nodes")


def test_a_version_that_nobody_here_knows_is_named_and_the_rest_goes_on(arena: ShakenArena, plane: BadPlane) -> None:
    name = "nodepools.karpenter.sh"
    kube, path = arena.desk.kube, f"{DEFINITIONS}/{name}"
    [known] = object_of(arena, path)["spec"]["versions"]
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    newer = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": loose}}
    newer |= {"subresources": {"status": {}}}

    watch = Watch(arena)
    versions = [known | {"storage": False}, newer]
    kube.patch(path, msgspec.json.encode({"spec": {"versions": versions}}))
    future = node_pool("future") | {"apiVersion": "karpenter.sh/v2"}
    future["spec"]["disruption"]["consolidationPolicy"] = "WhenTheMoonIsFull"
    plane.wait_for(lambda: bool(arena.desk.apply(future)), "v2 to be served")
    arena.until(lambda: bool(watch.told("NodePool future", "consolidationPolicy", "WhenTheMoonIsFull")), "told")
    goes_on(arena, "beside-the-future")
    kube.delete("/apis/karpenter.sh/v2/nodepools/future")
    watch.nothing_has_ended()


def _is_going(arena: Arena, path: str) -> bool:
    return "deletionTimestamp" in object_of(arena, path)["metadata"]


def test_node_classes_that_cannot_be_seen_cost_no_claim(arena: ShakenArena, plane: BadPlane) -> None:
    name = "ec2nodeclasses.karpenter.k8s.aws"
    path = f"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/{node_class()['metadata']['name']}"
    watch = Watch(arena)

    def ec2_is_down(call: object) -> None:
        if getattr(call, "method", "") == "create_fleet":
            raise Unreachable("EC2 has a bad day, too")

    known = {one["metadata"]["name"] for one in arena.claims()}
    with tapped(arena, ec2_is_down):
        arena.desk.apply(alone("classless"))
        arena.until(lambda: len(arena.claims()) == len(known) + 1, "there is a claim")
        arena.desk.kube.delete(f"{DEFINITIONS}/{name}")
        # Our finalizer keeps classes, and so their definition, while there are claims. Somebody takes that off as well.
        arena.until(lambda: _is_going(arena, path), "the class is about to go")
        arena.desk.kube.patch(path, msgspec.json.encode({"metadata": {"finalizers": None}}))
        arena.until(lambda: bool(watch.told(name, "is not installed", "apply the CustomResource")), "told")
    arena.passes(4 * SECOND)
    watch.nothing_has_ended()
    assert len(arena.claims()) == len(known) + 1, "the claim was given up"
    arena.until(lambda: is_gone(arena.desk.kube, f"{DEFINITIONS}/{name}"), "the definition is gone")
    install(plane, [one for one in definitions() if name in one])
    arena.desk.apply(node_class())
    arena.until(lambda: watch.launched > 0, "the claim is launched")
    assert watch.launched == 1
    watch.nothing_has_ended()


def test_node_pools_that_cannot_be_seen_cost_no_node(arena: ShakenArena, plane: BadPlane) -> None:
    """To the garbage collector of Kubernetes an owner whose version is not served is gone: it deletes claims.

    Which of them, and when, depends on what it has seen of the definitions. So here one is deleted for it.
    """
    name = "nodepools.karpenter.sh"
    kube, path = arena.desk.kube, f"{DEFINITIONS}/{name}"
    versions = object_of(arena, path)["spec"]["versions"]
    newer = {"name": "v2", "served": True, "storage": True, "schema": versions[0]["schema"]}
    unserved = [versions[0] | {"storage": False, "served": False}, newer | {"subresources": {"status": {}}}]
    watch = Watch(arena)
    kube.patch(path, msgspec.json.encode({"spec": {"versions": unserved}}))
    arena.until(lambda: bool(watch.told(name, "is served as v2, not as v1", "update Joiner")), "told")
    kube.delete(path)
    arena.until(lambda: bool(watch.told(name, "is not installed", "apply the CustomResource")), "told")

    arena.desk.delete(NODE_CLAIM | {"metadata": {"name": min(one["metadata"]["name"] for one in arena.claims())}})
    arena.passes(6 * SECOND)
    watch.nothing_has_ended()
    arena.until(lambda: is_gone(kube, path), "the definition is gone")
    install(plane, [one for one in definitions() if name in one])
    arena.desk.apply_all([node_pool("default"), node_pool("side", tier="side")])
    arena.until(lambda: watch.launched > 0, "what was deleted is replaced")
