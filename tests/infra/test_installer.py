"""The installer at work: on a cluster in memory, order by order of CloudFormation."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from functions.installer.manifests import DEFINITION, MANAGED_BY, name_of, objects_of, path_of
from shared.ports import Kube
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.api_definitions import shipped_definitions
from sim.cluster.kube import InMemoryKube
from sim.cluster.live import LiveCluster
from tests.contract.test_kube_crds import claim, node_class, pool
from tests.infra.installations import (
    CLAIMS,
    CLASSES,
    HELD,
    NODES,
    POOLS,
    PROFILE,
    Stack,
    finished,
    is_there,
    make,
    read,
    shipped,
    wanted,
)


def test_after_installing_everything_is_there_and_served(stack: Stack, kube: Kube) -> None:
    status, told = stack.ask("Create")
    assert status == "SUCCESS"
    assert told.count(" made") == len(wanted())
    for one in wanted():
        assert read(kube, path_of(one))["metadata"]["labels"][MANAGED_BY] == "joiner"
        if one["kind"] == DEFINITION:
            kube.list(objects_of(one))


def test_installing_again_changes_nothing(stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    before = kube.api.revision
    assert stack.ask("Update") == ("SUCCESS", "nothing to do")
    assert kube.api.revision == before


def test_a_new_release_is_brought_in_and_the_old_one_back(stack: Stack, kube: Kube) -> None:
    def change(found: list[dict[str, Any]]) -> None:
        for one in found:
            if one["kind"] == DEFINITION:
                one["spec"]["names"]["shortNames"] = ["x"]
            if one["kind"] == "FlowSchema":
                one["spec"]["matchingPrecedence"] = 900

    stack.ask("Create")
    stack.body = shipped(change)
    assert stack.ask("Update")[1].count("brought up to date") == 6
    [schema] = [one for one in wanted() if one["kind"] == "FlowSchema"]
    assert read(kube, path_of(schema))["spec"]["matchingPrecedence"] == 900
    stack.body = shipped()
    stack.ask("Update")
    assert read(kube, path_of(schema))["spec"] == schema["spec"]
    for one in wanted():
        if one["kind"] == DEFINITION:
            assert read(kube, path_of(one))["spec"] == one["spec"]


def test_removing_leaves_nothing(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    assert stack.ask("Delete")[0] == "SUCCESS"
    assert [path_of(one) for one in wanted() if is_there(kube, path_of(one))] == []
    assert stack.ask("Delete") == ("SUCCESS", "nothing to do")


def test_a_removal_of_what_was_never_installed_is_done(stack: Stack) -> None:
    assert stack.ask("Delete") == ("SUCCESS", "nothing to do")


def test_what_an_operator_wrote_stays_and_hangs_on_nothing(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    make(kube, CLASSES, node_class("a"), finalizers=["karpenter.k8s.aws/termination", "example.com/own"])
    make(kube, CLAIMS, claim("a"), **HELD)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"karpenter.sh/nodepool": "a"}}}
    make(kube, NODES, node, **HELD)
    status, told = stack.ask("Delete")
    assert status == "SUCCESS"
    assert "ec2nodeclasses.karpenter.k8s.aws stays: it has 1 objects" in told
    assert read(kube, f"{CLASSES}/a")["metadata"]["finalizers"] == ["example.com/own"]
    for path in (f"{CLAIMS}/a", f"{NODES}/a"):
        assert "finalizers" not in read(kube, path)["metadata"]
        kube.delete(path)
        assert not is_there(kube, path)
    assert not is_there(kube, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh")


def test_a_node_of_others_keeps_its_finalizers(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    make(kube, NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}, **HELD)
    stack.ask("Delete")
    assert read(kube, f"{NODES}/a")["metadata"]["finalizers"] == HELD["finalizers"]


@pytest.mark.parametrize("age", [timedelta(seconds=5), timedelta(minutes=5), None])
def test_a_karpenter_at_work_keeps_its_finalizers(
    age: timedelta | None, stack: Stack, kube: Kube, clock: Clock
) -> None:
    stays = age == timedelta(seconds=5)
    stack.ask("Create")
    make(kube, CLAIMS, claim("a"), **HELD)
    spec = {} if age is None else {"renewTime": f"{clock.now() - age:%Y-%m-%dT%H:%M:%S.%fZ}"}
    for name in ("karpenter-leader-election", "other"):
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        make(kube, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease)
    told = stack.ask("Delete")[1]
    assert ("Karpenter is at work: finalizers stay" in told) is stays
    assert read(kube, f"{CLAIMS}/a")["metadata"].get("finalizers", []) == (HELD["finalizers"] if stays else [])


def test_a_karpenter_that_is_there_is_left_as_it_is(clock: Clock) -> None:
    kube = InMemoryKube(ApiServer(clock, definitions=shipped_definitions()))
    before = {path_of(one): kube.read(path_of(one)) for one in wanted() if one["kind"] == DEFINITION}
    stack = Stack(kube, clock)
    status, told = stack.ask("Create")
    assert status == "SUCCESS"
    assert told.count("somebody else's and left alone") == len(before)
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert {path: kube.read(path) for path in before} == before


def test_a_karpenter_that_is_too_old_is_not_joined(clock: Clock) -> None:
    older = msgspec.json.decode(msgspec.json.encode(shipped_definitions()))
    for one in older:
        one["spec"]["versions"][0]["name"] = "v1beta1"
    kube = InMemoryKube(ApiServer(clock, definitions=older))
    status, told = Stack(kube, clock).ask("Create")
    assert status == "FAILED"
    assert "nodepools.karpenter.sh is somebody else's, and it does not serve v1: upgrade it" in told
    assert not [one for one in wanted() if one["kind"] != DEFINITION and is_there(kube, path_of(one))]


def test_on_request_definitions_go_with_what_is_in_them(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    make(kube, CLASSES, node_class("a"), finalizers=["karpenter.k8s.aws/termination"])
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert [path_of(one) for one in wanted() if is_there(kube, path_of(one))] == []


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_before_the_end_there_is_nothing_to_empty(request_type: str, stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    make(kube, POOLS, pool("a"))
    before = kube.api.revision
    assert stack.ask(request_type, "emptied", OnDestroy="purge") == ("SUCCESS", "nothing to do")
    assert kube.api.revision == before


def test_nodes_that_would_lose_their_role_keep_the_stack_from_going(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    make(kube, CLAIMS, claim("b"), annotations={"karpenter.k8s.aws/instance-profile-name": "another"})
    assert stack.ask("Delete", "emptied") == ("SUCCESS", "nothing to do")
    make(kube, CLAIMS, claim("a"), annotations={"karpenter.k8s.aws/instance-profile-name": PROFILE})
    status, told = stack.ask("Delete", "emptied")
    assert status == "FAILED"
    assert told.startswith("1 nodes run with the stack's role: a; kubectl delete nodepools --all")
    assert stack.ask("Delete", "emptied", OnDestroy="abandon") == ("SUCCESS", "nothing to do")
    assert is_there(kube, f"{CLAIMS}/a")


def test_a_purge_waits_until_the_functions_have_ended_every_node(clock: Clock) -> None:
    live = LiveCluster(clock)
    stack = Stack(kube := InMemoryKube(live.api), clock)
    stack.ask("Create")
    make(kube, POOLS, pool("a"))
    make(kube, CLAIMS, claim("a"), **HELD)
    clock.call_after(timedelta(minutes=4), lambda: finished(kube), "the functions are done")
    status, told = stack.ask("Delete", "emptied", OnDestroy="purge")
    assert (status, told) == ("SUCCESS", "all NodePools, NodeClaims and EC2NodeClasses are gone")
    assert timedelta(minutes=4) <= stack.waited <= timedelta(minutes=5)
    assert msgspec.json.decode(kube.list(POOLS))["items"] == []


def test_a_purge_that_takes_too_long_fails_and_may_be_asked_again(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    make(kube, CLAIMS, claim("a"), **HELD)
    status, told = stack.ask("Delete", "emptied", OnDestroy="purge")
    assert status == "FAILED"
    assert told == "1 NodeClaims are still going: a; delete the stack again"
    assert timedelta(minutes=14) <= stack.waited <= timedelta(minutes=15)
    finished(kube)
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"


def test_a_cluster_without_karpenters_kinds_has_nothing_to_empty(stack: Stack) -> None:
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"
    assert stack.ask("Delete", "emptied")[0] == "SUCCESS"


def test_every_definition_is_among_the_manifests() -> None:
    assert {name_of(one) for one in wanted() if one["kind"] == DEFINITION} == {
        name_of(one) for one in shipped_definitions()
    }
