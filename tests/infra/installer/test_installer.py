"""The installer at work on a cluster in memory, request by request of CloudFormation."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.crds.definitions import load_shipped_crds
from shared.installer.manifests import (
    MANAGED_BY_LABEL,
    build_collection_path,
    build_manifest_path,
    get_manifest_name,
)
from shared.ports.kubernetes import Kube
from shared.wire.paths import CRD_KIND
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.cluster import SimulatedCluster
from sim.time.virtual_clock import Clock
from tests.contract.kubernetes.test_crds import make_node_claim, make_node_class, make_node_pool
from tests.infra.installations import (
    CLAIMS,
    CLASSES,
    NODES,
    POOLS,
    PROFILE,
    TERMINATION_METADATA,
    Stack,
    build_release_manifests,
    create_object,
    finish_claim_deletion,
    is_there,
    parse_release_manifests,
    read_object,
)


def test_create_installs_all_manifests_and_serves_the_crds(stack: Stack, kube: Kube) -> None:
    status, message = stack.ask("Create")
    assert status == "SUCCESS"
    assert message.count(" created") == len(parse_release_manifests())
    for manifest in parse_release_manifests():
        assert read_object(kube, build_manifest_path(manifest))["metadata"]["labels"][MANAGED_BY_LABEL] == "joiner"
        if manifest["kind"] == CRD_KIND:
            kube.list(build_collection_path(manifest))


def test_repeated_installation_changes_nothing(stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    before = kube.api.revision
    assert stack.ask("Update") == ("SUCCESS", "no changes")
    assert kube.api.revision == before


def test_update_installs_new_release_and_rollback_restores_the_old(stack: Stack, kube: Kube) -> None:
    def change_release(documents: list[dict[str, Any]]) -> None:
        for document in documents:
            if document["kind"] == CRD_KIND:
                document["spec"]["names"]["shortNames"] = ["x"]
            if document["kind"] == "FlowSchema":
                document["spec"]["matchingPrecedence"] = 900

    stack.ask("Create")
    stack.body = build_release_manifests(change_release)
    assert stack.ask("Update")[1].count("updated") == 6
    [schema] = [candidate for candidate in parse_release_manifests() if candidate["kind"] == "FlowSchema"]
    assert read_object(kube, build_manifest_path(schema))["spec"]["matchingPrecedence"] == 900
    stack.body = build_release_manifests()
    stack.ask("Update")
    assert read_object(kube, build_manifest_path(schema))["spec"] == schema["spec"]
    for manifest in parse_release_manifests():
        if manifest["kind"] == CRD_KIND:
            assert read_object(kube, build_manifest_path(manifest))["spec"] == manifest["spec"]


def test_delete_removes_all_manifests(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    assert stack.ask("Delete")[0] == "SUCCESS"
    assert [
        build_manifest_path(manifest)
        for manifest in parse_release_manifests()
        if is_there(kube, build_manifest_path(manifest))
    ] == []
    assert stack.ask("Delete") == ("SUCCESS", "no changes")


def test_delete_without_prior_installation_succeeds(stack: Stack) -> None:
    assert stack.ask("Delete") == ("SUCCESS", "no changes")


def test_user_objects_are_kept_without_joiner_finalizers(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, CLASSES, make_node_class("a"), finalizers=["karpenter.k8s.aws/termination", "example.com/own"])
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"karpenter.sh/nodepool": "a"}}}
    create_object(kube, NODES, node, **TERMINATION_METADATA)
    status, message = stack.ask("Delete")
    assert status == "SUCCESS"
    assert "ec2nodeclasses.karpenter.k8s.aws kept: it has 1 object" in message
    assert read_object(kube, f"{CLASSES}/a")["metadata"]["finalizers"] == ["example.com/own"]
    for path in (f"{CLAIMS}/a", f"{NODES}/a"):
        assert "finalizers" not in read_object(kube, path)["metadata"]
        kube.delete(path)
        assert not is_there(kube, path)
    assert not is_there(kube, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh")


def test_unmanaged_node_keeps_its_finalizers(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}, **TERMINATION_METADATA)
    stack.ask("Delete")
    assert read_object(kube, f"{NODES}/a")["metadata"]["finalizers"] == TERMINATION_METADATA["finalizers"]


@pytest.mark.parametrize("age", [timedelta(seconds=5), timedelta(minutes=5), None])
def test_running_karpenter_keeps_its_finalizers(age: timedelta | None, stack: Stack, kube: Kube, clock: Clock) -> None:
    stays = age == timedelta(seconds=5)
    stack.ask("Create")
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    spec = {} if age is None else {"renewTime": f"{clock.get_time() - age:%Y-%m-%dT%H:%M:%S.%fZ}"}
    for name in ("karpenter-leader-election", "other"):
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        create_object(kube, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease)
    message = stack.ask("Delete")[1]
    assert ("Karpenter is running: finalizers are kept" in message) is stays
    assert read_object(kube, f"{CLAIMS}/a")["metadata"].get("finalizers", []) == (
        TERMINATION_METADATA["finalizers"] if stays else []
    )


def test_existing_karpenter_crds_are_not_changed_or_deleted(clock: Clock) -> None:
    kube = InMemoryKube(ApiServer(clock, definitions=load_shipped_crds()))
    before = {
        build_manifest_path(manifest): kube.read(build_manifest_path(manifest))
        for manifest in parse_release_manifests()
        if manifest["kind"] == CRD_KIND
    }
    stack = Stack(kube, clock)
    status, message = stack.ask("Create")
    assert status == "SUCCESS"
    assert message.count("was not created by Joiner and was not changed") == len(before)
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert {path: kube.read(path) for path in before} == before


def test_installation_fails_with_karpenter_crds_older_than_v1(clock: Clock) -> None:
    older = msgspec.json.decode(msgspec.json.encode(load_shipped_crds()))
    for definition in older:
        definition["spec"]["versions"][0]["name"] = "v1beta1"
    kube = InMemoryKube(ApiServer(clock, definitions=older))
    status, message = Stack(kube, clock).ask("Create")
    assert status == "FAILED"
    assert "nodepools.karpenter.sh was not created by Joiner, and it does not serve v1: upgrade it" in message
    assert not [
        manifest
        for manifest in parse_release_manifests()
        if manifest["kind"] != CRD_KIND and is_there(kube, build_manifest_path(manifest))
    ]


def test_purge_deletes_crds_with_their_objects(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, CLASSES, make_node_class("a"), finalizers=["karpenter.k8s.aws/termination"])
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert [
        build_manifest_path(manifest)
        for manifest in parse_release_manifests()
        if is_there(kube, build_manifest_path(manifest))
    ] == []


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_emptying_does_nothing_on_create_and_update(request_type: str, stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    create_object(kube, POOLS, make_node_pool("a"))
    before = kube.api.revision
    assert stack.ask(request_type, "emptied", OnDestroy="purge") == ("SUCCESS", "no changes")
    assert kube.api.revision == before


def test_stack_deletion_fails_while_nodes_use_the_stack_role(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(
        kube, CLAIMS, make_node_claim("b"), annotations={"karpenter.k8s.aws/instance-profile-name": "another"}
    )
    assert stack.ask("Delete", "emptied") == ("SUCCESS", "no changes")
    create_object(kube, CLAIMS, make_node_claim("a"), annotations={"karpenter.k8s.aws/instance-profile-name": PROFILE})
    status, message = stack.ask("Delete", "emptied")
    assert status == "FAILED"
    assert message.startswith("1 node with the role of the stack: a; to fix: run `kubectl delete nodepools --all")
    assert stack.ask("Delete", "emptied", OnDestroy="abandon") == ("SUCCESS", "no changes")
    assert is_there(kube, f"{CLAIMS}/a")


def test_purge_waits_until_all_nodes_are_terminated(clock: Clock) -> None:
    live = SimulatedCluster(clock)
    stack = Stack(kube := InMemoryKube(live.api), clock)
    stack.ask("Create")
    create_object(kube, POOLS, make_node_pool("a"))
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    clock.call_after(timedelta(minutes=4), lambda: finish_claim_deletion(kube), "the functions are done")
    status, message = stack.ask("Delete", "emptied", OnDestroy="purge")
    assert (status, message) == ("SUCCESS", "all NodePools, NodeClaims and EC2NodeClasses are deleted")
    assert timedelta(minutes=4) <= stack.waited <= timedelta(minutes=5)
    assert msgspec.json.decode(kube.list(POOLS))["items"] == []


def test_purge_times_out_with_failure_and_can_be_retried(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    status, message = stack.ask("Delete", "emptied", OnDestroy="purge")
    assert status == "FAILED"
    assert message == "NodeClaims are still being deleted: a; to fix: delete the stack again"
    assert timedelta(minutes=14) <= stack.waited <= timedelta(minutes=15)
    finish_claim_deletion(kube)
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"


def test_emptying_succeeds_in_a_cluster_without_karpenter_crds(stack: Stack) -> None:
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"
    assert stack.ask("Delete", "emptied")[0] == "SUCCESS"


def test_release_manifests_include_every_crd() -> None:
    assert {get_manifest_name(manifest) for manifest in parse_release_manifests() if manifest["kind"] == CRD_KIND} == {
        get_manifest_name(definition) for definition in load_shipped_crds()
    }
