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

from shared.errors import Fault, Forbidden, Unreachable
from shared.kube.definitions import definitions
from shared.model.objects import Problem
from shared.snapshot import memory
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.watching import Watching
from sim.cloud import instances
from sim.playground_desk import DEFINITIONS, NODE_CLAIMS
from tests.contract.test_kube_crds import claim
from tests.controlplane.definitions import install
from tests.controlplane.fixtures import FUNCTIONS
from tests.kubernetes.arena import POOLS, SECOND, Arena, is_ready
from tests.kubernetes.bad_days import (
    LISTER,
    BadPlane,
    ShakenArena,
    Trap,
    Watch,
    full_house,
    is_refused,
    object_of,
    policy,
    standing,
    tapped,
    without_service,
)
from tests.kubernetes.manifests import deployment, node_class, node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODE_CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
ELSEWHERE = {"nodeSelector": {"tier": "side"}, "tolerations": [{"key": "tier", "operator": "Exists"}]}


def inhabited(plane: BadPlane) -> Arena:
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
def shared(plane: BadPlane, _at_once: None) -> Arena:
    """One with a node of ours; tests leave it as they found it, but for what they launched."""
    arena = inhabited(plane)
    arena.desk.apply(deployment("web", 1, "2", "1Gi"))
    arena.until(arena.running(1, "web"), "a node of ours runs a pod")
    return arena


def goes_on(arena: Arena, app: str, **more: object) -> None:
    """Fail unless a pod that nothing has room for gets a node that is on its way to it."""
    before = arena.told.launched
    arena.desk.apply(deployment(app, 1, "15", "1Gi", **more))
    arena.until(lambda: arena.told.launched == before + 1, "work goes on")


def says_what_is_out_of_reach(arena: Arena, plane: BadPlane, since: int) -> bool:
    said = [one for one in arena.playground.lines[since:] if "is up and that the functions reach it" in one]
    return any(plane.endpoint in one for one in said)


@pytest.mark.usefixtures("_at_once")
def test_an_api_server_that_dies_within_a_cycle_costs_nothing() -> None:
    with BadPlane() as plane:
        arena = inhabited(plane)
        claims = len(arena.claims())
        sites = [
            ("after", "kube.create", NODE_CLAIMS),
            ("after", "ec2.create_fleet", ""),
            ("after", "kube.patch", "/api/v1/nodes/"),
        ]
        trap = Trap(sites, plane.die)
        watch = Watch(arena)
        with tapped(arena, trap):
            arena.desk.apply_all([deployment("one", 1, "15", "1Gi"), deployment("two", 1, "15", "1Gi", **ELSEWHERE)])
            for left in (2, 1, 0):
                arena.until(partial(trap.has_left, left), "the next call is made", SECOND / 4)
                died = len(arena.playground.lines)
                arena.until(
                    partial(says_what_is_out_of_reach, arena, plane, died), "somebody says what is out of reach"
                )
                plane.rise()
                watch.nothing_has_ended()
        arena.until(arena.running(2), "the pods run at the end")
        assert not arena.told.ended
        assert (len(arena.claims()) - claims, watch.launched, len(arena.playground.living())) == (2, 2, 2)
        assert not arena.planned_twice()


def test_an_api_server_that_neither_answers_nor_hangs_up_is_left_alone(shared: Arena, plane: BadPlane) -> None:
    watch = Watch(shared)

    def is_left_alone() -> bool:
        return bool(
            watch.told("Unreachable", "timed out", plane.endpoint)
            and watch.told("Unreachable", "not sent: the API server was silent for 1 s")
        )

    with plane.frozen():
        shared.until(is_left_alone, "the functions stay away")
    shared.passes(3 * SECOND)
    watch.nothing_has_ended()
    goes_on(shared, "after-silence")


def test_a_token_that_is_not_taken_is_renewed_once_and_then_told(shared: Arena, plane: BadPlane) -> None:
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
    shared.until(lambda: is_refused(lambda: plane.client(revoked).list(POOLS), "401"), "one token is not taken")
    shared.until(lambda: bool(plane.client(valid).list(POOLS)), "the other is")

    watch = Watch(shared)
    plane.identity, plane.next_identity = revoked, valid
    shared.until(lambda: plane.renewals > 0, "another token is asked for")
    shared.passes(3 * SECOND)
    assert (plane.renewals, watch.told("401")) == (1, [])

    plane.identity = plane.next_identity = revoked
    shared.until(lambda: bool(watch.told("Forbidden", "401", "access entry", "joiner:functions")), "that is told")
    shared.passes(3 * SECOND)
    assert plane.renewals == 2, "every call asks for another token"
    plane.identity = ""
    watch.nothing_has_ended()
    goes_on(shared, "after-expiry")


def test_an_api_server_that_is_too_busy_is_not_hammered(shared: Arena, plane: BadPlane) -> None:
    calls: list[str] = []
    watch = Watch(shared)
    shared.desk.apply(deployment("patient", 1, "15", "1Gi"))
    with standing(shared, *full_house("nobody"), takes_effect=lambda: True), plane.crowded():
        shared.until(lambda: plane.rejected("nobody") > 0, "somebody is turned away")
        before, began = plane.rejected("nobody"), shared.seconds
        with tapped(shared, lambda call: calls.append(call.method) if call.port == "kube" else None):
            shared.passes(10 * SECOND)
            shared.until(lambda: plane.rejected("nobody") > before, "somebody tries again")
        rejected, took, asked = plane.rejected("nobody") - before, shared.seconds - began, len(calls)
        assert watch.told("Throttled", "429", "priority level")
        assert watch.told("Throttled", "not sent: the API server asked for time")
        assert rejected <= 2 + log2(1 + took), "1, 2, 4 and 8 seconds apart, and one that waits"
        assert asked > rejected, "the cycles came as ever"
        launched = watch.launched
    watch.nothing_has_ended()
    shared.until(lambda: watch.launched > launched or shared.running(1, "patient")(), "work goes on")


def test_a_policy_that_refuses_our_patch_holds_up_its_claim_alone(shared: Arena, plane: BadPlane) -> None:
    watch = Watch(shared)

    def has_instance(pool: str) -> bool:
        mine = [one for one in shared.claims() if one["metadata"]["labels"]["karpenter.sh/nodepool"] == pool]
        return any(one.get("status", {}).get("providerID") for one in mine if one["metadata"]["name"] not in known)

    known = {one["metadata"]["name"] for one in shared.claims()}
    refuses = policy("no-joiner-today", "object.metadata.labels['karpenter.sh/nodepool'] != 'side'")
    kube, path = plane.client(plane.token_of(FUNCTIONS)), f"{NODE_CLAIMS}/{min(known)}?dryRun=All"
    aside = msgspec.json.encode({"metadata": {"labels": {"karpenter.sh/nodepool": "side"}}})
    with standing(
        shared, *refuses, takes_effect=lambda: is_refused(lambda: kube.patch(path, aside), "no-joiner-today")
    ):
        shared.desk.apply_all(
            [deployment("refused", 1, "15", "1Gi", **ELSEWHERE), deployment("admitted", 1, "15", "1Gi")]
        )
        shared.until(lambda: has_instance("default"), "the other claim goes on")
        helps = "let it admit what the group joiner:functions writes"
        shared.until(lambda: bool(watch.told("PatchStatus", "no-joiner-today", helps)), "it is told")
        assert not has_instance("side")
        watch.nothing_has_ended()
        assert watch.launched == 2
    shared.until(lambda: has_instance("side"), "the claim learns of its instance")
    assert watch.launched == 2, "somebody launched a second time"


def test_a_webhook_whose_service_is_dead_is_named(shared: Arena) -> None:
    watch = Watch(shared)
    probe = partial(shared.desk.kube.create, f"{NODE_CLAIMS}?dryRun=All", msgspec.json.encode(claim("probe")))
    guard = "guard.example.com"
    with standing(shared, without_service(guard), takes_effect=lambda: is_refused(probe, guard)):
        shared.desk.apply(deployment("guarded", 1, "15", "1Gi"))
        shared.until(lambda: bool(watch.told("CreateNodeClaim", "guard.example.com", "repair the webhook")), "told")
        shared.passes(2 * SECOND)
        assert not watch.launched
        watch.nothing_has_ended()
    shared.until(lambda: watch.launched == 1, "work goes on")


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


def test_a_version_that_nobody_here_knows_is_named_and_the_rest_goes_on(shared: Arena) -> None:
    name = "nodepools.karpenter.sh"
    kube, path = shared.desk.kube, f"{DEFINITIONS}/{name}"
    [known] = object_of(shared, path)["spec"]["versions"]
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    newer = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": loose}}
    newer |= {"subresources": {"status": {}}}

    watch = Watch(shared)
    versions = [known | {"storage": False}, newer]
    kube.patch(path, msgspec.json.encode({"spec": {"versions": versions}}))
    future = node_pool("future") | {"apiVersion": "karpenter.sh/v2"}
    future["spec"]["disruption"]["consolidationPolicy"] = "WhenTheMoonIsFull"
    shared.until(lambda: bool(_created(shared, "/apis/karpenter.sh/v2/nodepools", future)), "v2 is served")
    shared.until(lambda: bool(watch.told("NodePool future", "consolidationPolicy", "WhenTheMoonIsFull")), "told")
    goes_on(shared, "beside-the-future")
    kube.delete("/apis/karpenter.sh/v2/nodepools/future")
    watch.nothing_has_ended()


def _created(arena: Arena, path: str, manifest: dict[str, object]) -> bytes:
    try:
        return arena.desk.kube.create(path, msgspec.json.encode(manifest))
    except Fault:
        return b""


def _is_going(arena: Arena, path: str) -> bool:
    return "deletionTimestamp" in object_of(arena, path)["metadata"]


def test_node_classes_that_cannot_be_seen_cost_no_claim(shared: Arena, plane: BadPlane) -> None:
    name = "ec2nodeclasses.karpenter.k8s.aws"
    path = f"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/{node_class()['metadata']['name']}"
    watch = Watch(shared)

    def ec2_is_down(call: object) -> None:
        if getattr(call, "method", "") == "create_fleet":
            raise Unreachable("EC2 has a bad day, too")

    known = {one["metadata"]["name"] for one in shared.claims()}
    with tapped(shared, ec2_is_down):
        shared.desk.apply(deployment("classless", 1, "15", "1Gi"))
        shared.until(lambda: len(shared.claims()) == len(known) + 1, "there is a claim")
        shared.desk.kube.delete(f"{DEFINITIONS}/{name}")
        # Our finalizer keeps classes, and so their definition, while there are claims. Somebody takes that off as well.
        shared.until(lambda: _is_going(shared, path), "the class is about to go")
        shared.desk.kube.patch(path, msgspec.json.encode({"metadata": {"finalizers": None}}))
        shared.until(lambda: bool(watch.told(name, "is not installed", "apply the CustomResource")), "told")
    shared.passes(4 * SECOND)
    watch.nothing_has_ended()
    assert len(shared.claims()) == len(known) + 1, "the claim was given up"
    install(plane, [one for one in definitions() if name in one])
    shared.desk.apply(node_class())
    shared.until(lambda: watch.launched == 1, "the claim is launched")
    watch.nothing_has_ended()


def test_node_pools_that_cannot_be_seen_cost_no_node(shared: Arena, plane: BadPlane) -> None:
    """To the garbage collector of Kubernetes an owner whose version is not served is gone: it deletes claims.

    Which of them, and when, depends on what it has seen of the definitions. So here one is deleted for it.
    """
    name = "nodepools.karpenter.sh"
    kube, path = shared.desk.kube, f"{DEFINITIONS}/{name}"
    versions = object_of(shared, path)["spec"]["versions"]
    newer = {"name": "v2", "served": True, "storage": True, "schema": versions[0]["schema"]}
    unserved = [versions[0] | {"storage": False, "served": False}, newer | {"subresources": {"status": {}}}]
    watch = Watch(shared)
    kube.patch(path, msgspec.json.encode({"spec": {"versions": unserved}}))
    shared.until(lambda: bool(watch.told(name, "is served as v2, not as v1", "update Joiner")), "told")
    kube.delete(path)
    shared.until(lambda: bool(watch.told(name, "is not installed", "apply the CustomResource")), "told")

    shared.desk.delete(NODE_CLAIM | {"metadata": {"name": min(one["metadata"]["name"] for one in shared.claims())}})
    shared.passes(6 * SECOND)
    watch.nothing_has_ended()
    install(plane, [one for one in definitions() if name in one])
    shared.desk.apply_all([node_pool("default"), node_pool("side", tier="side")])
    shared.until(lambda: watch.launched > 0, "what was deleted is replaced")
