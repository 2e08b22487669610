"""The installer with `cluster-objects: external`: another tool applies and removes the cluster objects."""

from datetime import timedelta

import msgspec
import pytest

from shared.installer.external_objects import ObjectComparison, compare_objects
from shared.installer.manifests import MANIFEST_PATHS, build_manifest_path, format_kind_and_name
from shared.ports.kubernetes import Kube
from shared.wire.paths import CRD_KIND
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.contract.kubernetes.test_crds import make_node_claim
from tests.infra.installations import (
    CLAIMS,
    POOLS,
    TERMINATION_METADATA,
    Stack,
    create_object,
    is_there,
    parse_release_manifests,
    read_object,
)
from tests.infra.installer.test_plan import NODE_POOLS_CRD, build_live_manifests, copy_definition, make_live_manifest

EXTERNAL = {"ClusterObjects": "external"}
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"


def apply_release(kube: Kube) -> None:
    """Create all objects, as Argo CD does from a bundle."""
    for manifest in parse_release_manifests():
        kube.create(build_manifest_path(manifest).rpartition("/")[0], msgspec.json.encode(manifest))


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_applied_objects_are_accepted_and_not_written(request_type: str, stack: Stack, kube: InMemoryKube) -> None:
    apply_release(kube)
    revision = kube.api.revision
    assert stack.ask(request_type, **EXTERNAL) == ("SUCCESS", "no changes")
    assert kube.api.revision == revision
    assert stack.waited == timedelta(0)


def test_deployment_waits_for_objects_that_are_applied_meanwhile(stack: Stack, kube: Kube, clock: Clock) -> None:
    clock.call_after(timedelta(minutes=1), lambda: apply_release(kube), "Argo CD syncs the bundle")
    assert stack.ask("Create", **EXTERNAL)[0] == "SUCCESS"
    assert timedelta(minutes=1) <= stack.waited < timedelta(minutes=2)


def test_deployment_fails_with_each_missing_object_and_writes_nothing(stack: Stack, kube: InMemoryKube) -> None:
    revision = kube.api.revision
    status, message = stack.ask("Create", **EXTERNAL)
    assert status == "FAILED"
    for manifest in parse_release_manifests():
        assert f"{format_kind_and_name(manifest)} does not exist" in message
    assert message.endswith("To fix: apply the cluster objects of the bundle of this version, then deploy again")
    assert kube.api.revision == revision
    assert timedelta(minutes=3) <= stack.waited < timedelta(minutes=4)


def test_objects_of_another_version_fail_a_new_stack(stack: Stack, kube: Kube) -> None:
    apply_release(kube)
    kube.patch(ROLE, b'{"rules": []}')
    status, message = stack.ask("Create", **EXTERNAL)
    assert status == "FAILED"
    assert message.startswith("ClusterRole joiner-functions is not of this version of Joiner. To fix: ")
    assert read_object(kube, ROLE)["rules"] == []


def test_update_with_objects_of_another_version_is_reported_and_can_roll_back(stack: Stack, kube: Kube) -> None:
    """The rollback of an update is an update to the previous version, and no tool has applied its objects."""
    apply_release(kube)
    kube.patch(ROLE, b'{"rules": []}')
    assert stack.ask("Update", **EXTERNAL) == (
        "SUCCESS",
        "ClusterRole joiner-functions is not of this version of Joiner",
    )
    assert timedelta(minutes=3) <= stack.waited < timedelta(minutes=4)
    kube.delete(ROLE)
    status, message = stack.ask("Update", **EXTERNAL)
    assert (status, message.partition(". To fix: ")[0]) == (
        "FAILED",
        "ClusterRole joiner-functions does not exist",
    )


@pytest.mark.parametrize("on_destroy", ["keep", "purge", "abandon"])
def test_removal_keeps_the_objects_and_removes_finalizers(on_destroy: str, stack: Stack, kube: Kube) -> None:
    apply_release(kube)
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    assert stack.ask("Delete", OnDestroy=on_destroy, **EXTERNAL)[0] == "SUCCESS"
    assert all(is_there(kube, build_manifest_path(manifest)) for manifest in parse_release_manifests())
    assert "finalizers" not in read_object(kube, f"{CLAIMS}/a")["metadata"]
    assert msgspec.json.decode(kube.list(POOLS))["items"] == []


def test_change_of_the_setting_writes_nothing(stack: Stack, kube: InMemoryKube) -> None:
    assert stack.ask("Create")[0] == "SUCCESS"
    revision = kube.api.revision
    assert stack.ask("Update", **EXTERNAL) == ("SUCCESS", "no changes")
    assert stack.ask("Update") == ("SUCCESS", "no changes")
    assert kube.api.revision == revision


def test_equal_objects_have_no_differences_and_missing_objects_are_refused() -> None:
    assert compare_objects(parse_release_manifests(), build_live_manifests()) == ObjectComparison()
    comparison = compare_objects(parse_release_manifests(), {})
    assert len(comparison.refusals) == len(parse_release_manifests())
    assert "ClusterRole joiner-functions does not exist" in comparison.refusals


@pytest.mark.parametrize("kind", MANIFEST_PATHS)
def test_object_of_another_version_is_named(kind: str) -> None:
    manifest = next(candidate for candidate in parse_release_manifests() if candidate["kind"] == kind)
    path, live = build_manifest_path(manifest), build_live_manifests()
    key = next(key for key in ("spec", "rules", "subjects") if key in manifest)
    changed = {**live[path], key: {} if isinstance(manifest[key], dict) else []}
    comparison = compare_objects(parse_release_manifests(), {**live, path: changed})
    assert comparison == ObjectComparison(
        differences=(f"{format_kind_and_name(manifest)} is not of this version of Joiner",)
    )
    going = make_live_manifest(manifest, deletionTimestamp="2026-11-21T08:00:00Z")
    comparison = compare_objects(parse_release_manifests(), {**live, path: going})
    assert comparison == ObjectComparison(refusals=(f"{format_kind_and_name(manifest)} does not exist",))


def test_labels_and_annotations_of_another_tool_are_no_difference() -> None:
    live = build_live_manifests()
    metadata = {
        "labels": {"app.kubernetes.io/instance": "joiner"},
        "annotations": {"argocd.argoproj.io/sync-wave": "1"},
    }
    live[ROLE] = {**live[ROLE], "metadata": {**live[ROLE]["metadata"], **metadata}}
    assert compare_objects(parse_release_manifests(), live) == ObjectComparison()


def test_compatible_crd_of_a_karpenter_chart_is_accepted_and_reported() -> None:
    crd = make_live_manifest(copy_definition(), labels={})
    live = {**build_live_manifests(), build_manifest_path(crd): crd}
    message = f"{NODE_POOLS_CRD} was not created by Joiner and was not changed"
    assert compare_objects(parse_release_manifests(), live) == ObjectComparison(messages=(message,))
    crd["spec"]["versions"][0]["served"] = False
    refusal = f"{CRD_KIND} {NODE_POOLS_CRD} was not created by Joiner, and it does not serve v1: upgrade it"
    assert compare_objects(parse_release_manifests(), live) == ObjectComparison(refusals=(refusal,))
