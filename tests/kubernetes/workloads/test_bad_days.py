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

from shared.crds.definitions import read_crds
from shared.errors import Forbidden, Unreachable
from shared.model.core.metadata import Problem
from shared.take.kubernetes import informer_cache
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from sim.cloud.ec2 import instance_lifecycle
from sim.playground.kubectl import CRDS_PATH, NODE_CLAIMS_PATH
from tests.contract.kube_front import is_gone
from tests.contract.kubernetes.test_crds import make_node_claim
from tests.controlplane.definitions import install_crds
from tests.controlplane.fixtures import FUNCTIONS
from tests.kubernetes.arena import ONE_SECOND, POOLS, Arena, is_ready
from tests.kubernetes.bad_days import (
    CLUSTER_COLLECTION_PATHS,
    ELSEWHERE,
    ShakenArena,
    Trap,
    Watch,
    apply_manifests,
    install_tap,
    is_refused,
    make_admission_policy,
    make_full_priority_level,
    make_lone_deployment,
    make_webhook_without_service,
    read_object,
)
from tests.kubernetes.bad_plane import LISTER, REQUEST_TIMEOUT, BadPlane
from tests.kubernetes.manifests import make_deployment, make_node_class, make_node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODE_CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}


def build_arena(plane: BadPlane) -> ShakenArena:
    """Build an arena on *plane* whose instances start immediately and whose schedules fire every two seconds."""
    arena = ShakenArena(plane)
    arena.desk.apply_all([make_node_pool("default"), make_node_pool("side", tier="side")])
    arena.wait_until(lambda: all(is_ready(one) for one in arena.desk.list_objects(POOLS)), "the NodePools are ready")
    arena.playground.invoke_schedules_every(2 * ONE_SECOND)
    return arena


@pytest.fixture(scope="module")
def _at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instance_lifecycle, "BOOT_DELAY_RANGE", (timedelta(seconds=2.2), timedelta(seconds=3)))
        yield


@pytest.fixture(scope="module")
def plane() -> Iterator[BadPlane]:
    with BadPlane() as plane:
        yield plane


@pytest.fixture(scope="module")
def shared(plane: BadPlane, _at_once: None) -> ShakenArena:
    """One with a node of ours; tests leave it as they found it, but for what they launched."""
    arena = build_arena(plane)
    arena.desk.apply(make_deployment("web", 1, "2", "1Gi"))
    arena.wait_until(arena.build_running_check(1, "web"), "a managed node runs a pod")
    return arena


@pytest.fixture
def arena(shared: ShakenArena) -> ShakenArena:
    """The shared one, in which nothing is under way."""
    shared.wait_until_at_rest()
    return shared


def assert_work_goes_on(arena: Arena, app: str) -> None:
    """Fail unless a pod that nothing has room for gets a node, and runs."""
    before = arena.reporter.launched_count
    arena.desk.apply(make_lone_deployment(app))
    arena.wait_until(arena.build_running_check(1, app), "work goes on")
    assert arena.reporter.launched_count > before


def is_outage_logged(arena: Arena, plane: BadPlane, since: int) -> bool:
    outage_lines = [
        line for line in arena.playground.log_lines[since:] if "is available and reachable from the functions" in line
    ]
    return any(plane.endpoint in line for line in outage_lines)


@pytest.fixture
def mortal() -> Iterator[BadPlane]:
    with BadPlane() as plane:
        yield plane


@pytest.fixture
def mortals(mortal: BadPlane, _at_once: None) -> ShakenArena:
    return build_arena(mortal)


def test_api_server_killed_at_critical_calls_causes_no_duplicates_or_terminations(
    mortals: ShakenArena, mortal: BadPlane
) -> None:
    sites = [
        ("after", "kube.create", NODE_CLAIMS_PATH),
        ("after", "ec2.create_fleet", ""),
        ("after", "kube.patch", "/api/v1/nodes/"),
    ]
    trap = Trap(sites, mortal.kill_api_server)
    watch, claims, pod_names = Watch(mortals), len(mortals.list_claims()), set[str]()

    def record_pods_and_check() -> bool:
        pod_names.update(pod["metadata"]["name"] for pod in mortals.list_pods())
        return mortals.build_running_check(2)()

    mortals.desk.apply_all([make_lone_deployment("one"), make_lone_deployment("two", **ELSEWHERE)])
    mortals.wait_until_scheduled("one", 1)
    mortals.wait_until_scheduled("two", 1)
    assert not record_pods_and_check()
    with install_tap(mortals, trap):
        for remaining_calls in (2, 1, 0):
            mortals.wait_until(partial(trap.has_left, remaining_calls), "the next call is made", ONE_SECOND / 4)
            died = len(mortals.playground.log_lines)
            mortals.wait_until(partial(is_outage_logged, mortals, mortal, died), "somebody says what is out of reach")
            mortal.restart_api_server()
            watch.assert_nothing_ended()
    mortals.wait_until(record_pods_and_check, "the pods run at the end")
    mortals.wait_until(mortals.are_instances_nodes, "every instance is a node")
    assert not mortals.reporter.terminated_count
    # A pod that comes to a node whose controllers do not know yet that it is open is evicted, and another made for it.
    assert 2 <= watch.launched == len(mortals.list_claims()) - claims <= len(pod_names), pod_names
    assert not mortals.count_repeated_plans()


def test_unresponsive_api_server_gets_no_further_requests(arena: ShakenArena, plane: BadPlane) -> None:
    watch = Watch(arena)

    def is_left_alone() -> bool:
        return bool(
            watch.list_messages("Unreachable", "timed out", plane.endpoint)
            and watch.list_messages(
                "Unreachable", f"not sent: the API server did not respond for {REQUEST_TIMEOUT.seconds} s"
            )
        )

    with plane.freeze_api_server():
        arena.wait_until(is_left_alone, "the functions stay away")
    arena.advance(3 * ONE_SECOND)
    watch.assert_nothing_ended()
    assert_work_goes_on(arena, "after-silence")


def test_rejected_token_is_renewed_once_and_then_reported(arena: ShakenArena, plane: BadPlane) -> None:
    kube = plane.get_client()
    name = {"metadata": {"name": "functions"}}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "functions"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "joiner-functions"}
    kube.create(ACCOUNTS, msgspec.json.encode(name))
    kube.create(BINDINGS, msgspec.json.encode(name | {"roleRef": role, "subjects": [subject]}))
    revoked = plane.create_account_token("default", "functions")
    kube.delete(f"{ACCOUNTS}/functions")
    kube.create(ACCOUNTS, msgspec.json.encode(name))
    valid = plane.create_account_token("default", "functions")
    arena.wait_until(lambda: is_refused(lambda: plane.get_client(revoked).list(POOLS), "401"), "one token is not taken")
    plane.wait_until(lambda: bool(plane.get_client(valid).list(POOLS)), "the other is")

    watch = Watch(arena)
    try:
        plane.identity, plane.next_identity = revoked, valid
        arena.wait_until(lambda: plane.renewals > 0, "another token is asked for")
        arena.advance(3 * ONE_SECOND)
        assert (plane.renewals, watch.list_messages("401")) == (1, [])

        plane.identity = plane.next_identity = revoked
        arena.wait_until(
            lambda: bool(watch.list_messages("Forbidden", "401", "access entry", "joiner:functions")), "that is told"
        )
        arena.advance(3 * ONE_SECOND)
        assert plane.renewals == 2, "every call asks for another token"
    finally:
        plane.identity = ""
    watch.assert_nothing_ended()
    assert_work_goes_on(arena, "after-expiry")


def test_overloaded_api_server_is_retried_with_backoff(arena: ShakenArena, plane: BadPlane) -> None:
    watch, level = Watch(arena), "nobody"
    flow = f"{CLUSTER_COLLECTION_PATHS['FlowSchema']}/{level}"
    arena.desk.apply(make_lone_deployment("patient"))
    with (
        apply_manifests(
            arena,
            *make_full_priority_level(level),
            takes_effect=lambda: plane.read_flow_schema_uid() == read_object(arena, flow)["metadata"]["uid"],
        ),
        plane.occupy_priority_level(level),
    ):
        arena.wait_until(
            lambda: bool(watch.list_messages("Throttled", "429", "priority level")), "somebody is turned away"
        )
        before, began = plane.count_rejected_requests(level), arena.seconds
        arena.advance(10 * ONE_SECOND)
        arena.wait_until(lambda: plane.count_rejected_requests(level) > before, "somebody tries again")
        waits = "not sent: the API server throttled requests"
        arena.wait_until(lambda: bool(watch.list_messages("Throttled", waits)), "somebody does not")
        rejected, took = plane.count_rejected_requests(level) - before, arena.seconds - began
        max_rejections = 2 + log2(1 + took) + took / 20
        assert rejected <= max_rejections, (
            f"1, 2, 4 … 30 seconds apart, and one that waits, each minute; it took {took:.0f} s"
        )
    watch.assert_nothing_ended()
    arena.wait_until(arena.build_running_check(1, "patient"), "work goes on")


def test_admission_policy_that_rejects_a_patch_blocks_only_its_own_nodeclaim(
    arena: ShakenArena, plane: BadPlane
) -> None:
    watch = Watch(arena)

    def has_instance(pool: str) -> bool:
        pool_claims = [
            node_claim
            for node_claim in arena.list_claims()
            if node_claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool
        ]
        return any(
            node_claim.get("status", {}).get("providerID")
            for node_claim in pool_claims
            if node_claim["metadata"]["name"] not in earlier_claim_names
        )

    earlier_claim_names = {node_claim["metadata"]["name"] for node_claim in arena.list_claims()}
    refuses = make_admission_policy("no-joiner-today", "object.metadata.labels['karpenter.sh/nodepool'] != 'side'")
    kube, path = (
        plane.get_client(plane.get_token(FUNCTIONS)),
        f"{NODE_CLAIMS_PATH}/{min(earlier_claim_names)}?dryRun=All",
    )
    aside = msgspec.json.encode({"metadata": {"labels": {"karpenter.sh/nodepool": "side"}}})
    with apply_manifests(
        arena, *refuses, takes_effect=lambda: is_refused(lambda: kube.patch(path, aside), "no-joiner-today")
    ):
        arena.desk.apply_all([make_lone_deployment("refused", **ELSEWHERE), make_lone_deployment("admitted")])
        arena.wait_until(lambda: has_instance("default"), "the other claim goes on")
        helps = "let it admit the requests of the group joiner:functions"
        arena.wait_until(lambda: bool(watch.list_messages("PatchStatus", "no-joiner-today", helps)), "it is told")
        arena.wait_until(lambda: watch.launched >= 2, "both are launched")
        assert not has_instance("side")
        watch.assert_nothing_ended()
    arena.wait_until(lambda: has_instance("side"), "the claim learns of its instance")
    assert watch.launched == 2, "somebody launched a second time"


def test_failing_admission_webhook_is_reported_by_name(arena: ShakenArena) -> None:
    watch = Watch(arena)
    probe = partial(
        arena.desk.kube.create, f"{NODE_CLAIMS_PATH}?dryRun=All", msgspec.json.encode(make_node_claim("probe"))
    )
    guard = "guard.example.com"
    with apply_manifests(arena, make_webhook_without_service(guard), takes_effect=lambda: is_refused(probe, guard)):
        arena.desk.apply(make_lone_deployment("guarded"))
        arena.wait_until(
            lambda: bool(watch.list_messages("CreateNodeClaim", "guard.example.com", "repair the webhook")), "told"
        )
        arena.advance(2 * ONE_SECOND)
        launched = watch.launched
        assert launched == 0
        watch.assert_nothing_ended()
    arena.wait_until(arena.build_running_check(1, "guarded"), "work goes on")
    assert watch.launched == 1, "\n".join(arena.timeline_lines[-60:])


def test_missing_watch_permission_falls_back_to_list_and_is_reported_once(
    plane: BadPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
    kube, lister_kube = plane.get_client(), plane.get_client(plane.get_token(LISTER))
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    kube.create(ROLES, msgspec.json.encode({"metadata": {"name": LISTER.name}, "rules": rules}))
    subject = {"kind": "User", "name": LISTER.name}
    binding = {"roleRef": {"kind": "ClusterRole", "name": LISTER.name}, "subjects": [subject]}
    kube.create(BINDINGS, msgspec.json.encode(binding | {"metadata": {"name": LISTER.name}}))
    listing = next(resource_kind for resource_kind in RESOURCE_KINDS if resource_kind.field == "namespaces")
    plane.wait_until(lambda: bool(lister_kube.list(listing.path)), "the role to be known")
    memory: dict[str, object] = {}

    def list_problems() -> list[Problem]:
        problems: list[Problem] = []
        lists = Reflector(lister_kube, memory, datetime.now(UTC)).read_lists([listing], problems)
        assert len(lists["namespaces"]) == len(msgspec.json.decode(kube.list(listing.path))["items"])
        return problems

    assert list_problems() == []
    kube.create(listing.path, b'{"metadata":{"name":"new"}}')
    [problem] = list_problems()
    for words in ('cannot watch resource "namespaces"', "the ClusterRole joiner-functions", "apply rbac.yaml"):
        assert words in problem.message
    kube.create(listing.path, b'{"metadata":{"name":"newer"}}')
    assert (list_problems(), list_problems()) == ([], [])
    with pytest.raises(Forbidden, match=r'cannot list resource "nodes".*the ClusterRole joiner-functions'):
        lister_kube.list("/api/v1/nodes")


def test_nodepool_of_an_unknown_api_version_is_reported_and_other_nodepools_continue(
    arena: ShakenArena, plane: BadPlane
) -> None:
    name = "nodepools.karpenter.sh"
    kube, path = arena.desk.kube, f"{CRDS_PATH}/{name}"
    [served_version] = read_object(arena, path)["spec"]["versions"]
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    newer = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": loose}}
    newer |= {"subresources": {"status": {}}}

    watch = Watch(arena)
    versions = [served_version | {"storage": False}, newer]
    kube.patch(path, msgspec.json.encode({"spec": {"versions": versions}}))
    future = make_node_pool("future") | {"apiVersion": "karpenter.sh/v2"}
    future["spec"]["disruption"]["consolidationPolicy"] = "WhenTheMoonIsFull"
    plane.wait_until(lambda: bool(arena.desk.apply(future)), "v2 to be served")
    arena.wait_until(
        lambda: bool(watch.list_messages("NodePool future", "consolidationPolicy", "WhenTheMoonIsFull")), "told"
    )
    assert_work_goes_on(arena, "beside-the-future")
    kube.delete("/apis/karpenter.sh/v2/nodepools/future")
    watch.assert_nothing_ended()


def _is_going(arena: Arena, path: str) -> bool:
    return "deletionTimestamp" in read_object(arena, path)["metadata"]


def test_missing_node_class_crd_deletes_no_nodeclaim(arena: ShakenArena, plane: BadPlane) -> None:
    name = "ec2nodeclasses.karpenter.k8s.aws"
    path = f"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/{make_node_class()['metadata']['name']}"
    watch = Watch(arena)

    def fail_create_fleet(call: object) -> None:
        if getattr(call, "method", "") == "create_fleet":
            raise Unreachable("EC2 has a bad day, too")

    earlier_claim_names = {node_claim["metadata"]["name"] for node_claim in arena.list_claims()}
    with install_tap(arena, fail_create_fleet):
        arena.desk.apply(make_lone_deployment("classless"))
        arena.wait_until(lambda: len(arena.list_claims()) == len(earlier_claim_names) + 1, "there is a claim")
        arena.desk.kube.delete(f"{CRDS_PATH}/{name}")
        # Our finalizer keeps classes, and so their definition, while there are claims. Somebody takes that off as well.
        arena.wait_until(lambda: _is_going(arena, path), "the class is about to go")
        arena.desk.kube.patch(path, msgspec.json.encode({"metadata": {"finalizers": None}}))
        arena.wait_until(
            lambda: bool(watch.list_messages(name, "is not installed", "apply the CustomResource")), "told"
        )
    arena.advance(4 * ONE_SECOND)
    watch.assert_nothing_ended()
    assert len(arena.list_claims()) == len(earlier_claim_names) + 1, "the claim was given up"
    arena.wait_until(lambda: is_gone(arena.desk.kube, f"{CRDS_PATH}/{name}"), "the definition is gone")
    install_crds(plane, [crd for crd in read_crds() if name in crd])
    arena.desk.apply(make_node_class())
    arena.wait_until(lambda: watch.launched > 0, "the claim is launched")
    assert watch.launched == 1
    watch.assert_nothing_ended()


def test_missing_nodepool_crd_deletes_no_node(arena: ShakenArena, plane: BadPlane) -> None:
    """For the Kubernetes garbage collector an owner whose version is not served does not exist: it deletes claims.

    Which claims, and when, depends on what the collector has seen of the CRDs. This test deletes a claim for it.
    """
    name = "nodepools.karpenter.sh"
    kube, path = arena.desk.kube, f"{CRDS_PATH}/{name}"
    versions = read_object(arena, path)["spec"]["versions"]
    newer = {"name": "v2", "served": True, "storage": True, "schema": versions[0]["schema"]}
    unserved = [versions[0] | {"storage": False, "served": False}, newer | {"subresources": {"status": {}}}]
    watch = Watch(arena)
    kube.patch(path, msgspec.json.encode({"spec": {"versions": unserved}}))
    arena.wait_until(lambda: bool(watch.list_messages(name, "is served as v2, not as v1", "update Joiner")), "told")
    kube.delete(path)
    arena.wait_until(lambda: bool(watch.list_messages(name, "is not installed", "apply the CustomResource")), "told")

    arena.desk.delete(
        NODE_CLAIM | {"metadata": {"name": min(node_claim["metadata"]["name"] for node_claim in arena.list_claims())}}
    )
    arena.advance(6 * ONE_SECOND)
    watch.assert_nothing_ended()
    arena.wait_until(lambda: is_gone(kube, path), "the definition is gone")
    install_crds(plane, [crd for crd in read_crds() if name in crd])
    arena.desk.apply_all([make_node_pool("default"), make_node_pool("side", tier="side")])
    arena.wait_until(lambda: watch.launched > 0, "what was deleted is replaced")
