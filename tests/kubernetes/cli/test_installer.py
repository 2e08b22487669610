"""The installer with a real API server: the stored manifests, and their removal."""

import ssl
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
from urllib3 import PoolManager

from shared.errors import NotFound
from shared.installer.manifests import build_manifest_path
from shared.kubernetes.client import KubeClient
from shared.ports.kubernetes import Kube
from shared.wire.paths import CRD_KIND
from sim.fault_tap import tap_port
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import wait_until
from tests.contract.kubernetes.test_crds import make_node_claim, make_node_class
from tests.controlplane.definitions import install_crds, is_established
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.controlplane.rights import is_allowed, list_granted_permissions
from tests.infra.installations import Stack, build_release_manifests, parse_release_manifests

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
FLOW_HEADER: Final = "X-Kubernetes-PF-FlowSchema-UID"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A cluster without any installation."""
    with ControlPlane(parts=API_ONLY, users=(FUNCTIONS, STRANGER)) as plane:
        yield plane


@pytest.fixture
def kube(plane: ControlPlane) -> KubeClient:
    return plane.get_client()


@pytest.fixture
def stack(kube: KubeClient) -> Iterator[Stack]:
    """Afterwards the cluster is as it was."""
    deployed_stack = make_stack(kube)
    yield deployed_stack
    for _ in range(2):
        status, message = deployed_stack.ask("Delete", OnDestroy="purge")
        assert status == "SUCCESS", message
        wait_until_gone(kube, list_manifest_paths())


def make_stack(kube: Kube) -> Stack:
    clock = Clock()

    def wait(_: timedelta) -> None:
        time.sleep(0.3)
        clock.advance(timedelta(seconds=0.3))

    return Stack(kube, clock, wait)


def read_objects(kube: KubeClient, paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the objects at *paths* without what the API server's own controllers write: conditions and their times."""
    documents = {path: read_object(kube, path) for path in paths}
    for document in documents.values():
        document.pop("status", None)
        for name in ("resourceVersion", "managedFields"):
            del document["metadata"][name]
    return documents


def list_manifest_paths() -> list[str]:
    return [build_manifest_path(manifest) for manifest in parse_release_manifests()]


def read_object(kube: KubeClient, path: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(kube.read(path))
    return document


def wait_until_gone(kube: KubeClient, paths: list[str], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    for path in paths:
        while True:
            try:
                kube.read(path)
            except NotFound:
                break
            assert time.monotonic() < deadline, f"{path} does not go"
            time.sleep(0.1)


def install_and_wait(stack: Stack, kube: KubeClient) -> None:
    """Install, and wait until the API server serves the result."""
    status, message = stack.ask("Create")
    assert status == "SUCCESS", message
    for manifest in parse_release_manifests():
        if manifest["kind"] == CRD_KIND:
            wait_until(lambda one=manifest: is_served(kube, one))  # type: ignore[misc] # bound now
    wait_until(lambda: read_object(kube, FLOW)["status"]["conditions"])


def is_served(kube: KubeClient, definition: dict[str, Any]) -> bool:
    spec = definition["spec"]
    collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return is_established(kube, definition["metadata"]["name"]) and bool(kube.list(collection, limit=1))


def test_installed_functions_have_all_their_permissions(stack: Stack, plane: ControlPlane) -> None:
    admin = plane.get_client()
    install_and_wait(stack, admin)
    for right in sorted(list_granted_permissions()):
        wait_until(lambda right=right: is_allowed(admin, right, *FUNCTIONS.groups))  # type: ignore[misc] # bound now
    assert b"NodePoolList" in plane.get_client(plane.get_token(FUNCTIONS)).list("/apis/karpenter.sh/v1/nodepools")


def test_second_install_writes_nothing(stack: Stack, kube: KubeClient) -> None:
    install_and_wait(stack, kube)
    before, calls = read_objects(kube, list_manifest_paths()), list[str]()
    second_stack = make_stack(tap_port(kube, "kube", lambda call: calls.append(call.method)))
    assert second_stack.ask("Update") == ("SUCCESS", "no changes")
    assert {*calls} <= {"read", "list"}
    assert read_objects(kube, list_manifest_paths()) == before


def test_release_update_and_rollback_change_the_installed_manifests(stack: Stack, kube: KubeClient) -> None:
    def change_release(manifests: list[dict[str, Any]]) -> None:
        for manifest in manifests:
            if manifest["kind"] == CRD_KIND:
                manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Another."
            if manifest["kind"] == "FlowSchema":
                manifest["spec"]["matchingPrecedence"] = 950
            if manifest["kind"] == "PriorityLevelConfiguration":
                manifest["spec"]["limited"]["borrowingLimitPercent"] = 10
            if manifest["kind"] == "ClusterRoleBinding":
                manifest["roleRef"]["name"] = "other"

    install_and_wait(stack, kube)
    stack.body = build_release_manifests(change_release)
    status, message = stack.ask("Update")
    assert (status, message.count("updated"), message.count("recreated")) == ("SUCCESS", 7, 1), message
    assert read_object(kube, FLOW)["spec"]["matchingPrecedence"] == 950
    stack.body = build_release_manifests()
    assert stack.ask("Update")[0] == "SUCCESS"
    assert stack.ask("Update") == ("SUCCESS", "no changes")
    level = read_object(kube, FLOW.replace("flowschemas", "prioritylevelconfigurations"))
    assert level["spec"]["limited"].get("borrowingLimitPercent") is None


def read_flow_schema_uid(plane: ControlPlane, token: str) -> str:
    """Return the uid of the FlowSchema to which a request with *token* belongs."""
    context = ssl.create_default_context(cadata=b64decode(plane.certificate_authority).decode())
    url, headers = f"{plane.endpoint}/api/v1/nodes?limit=1", {"Authorization": f"Bearer {token}"}
    return str(PoolManager(ssl_context=context).request("GET", url, headers=headers).headers[FLOW_HEADER])


def test_function_requests_are_matched_by_the_joiner_flow_schema(stack: Stack, plane: ControlPlane) -> None:
    install_and_wait(stack, plane.get_client())
    flow_schema_uid = read_object(plane.get_client(), FLOW)["metadata"]["uid"]
    wait_until(lambda: read_flow_schema_uid(plane, plane.get_token(FUNCTIONS)) == flow_schema_uid)


def test_uninstall_keeps_user_created_node_classes_without_finalizers(stack: Stack, kube: KubeClient) -> None:
    install_and_wait(stack, kube)
    for collection, body, finalizer in (
        (CLASSES, make_node_class("a"), "karpenter.k8s.aws/termination"),
        (CLAIMS, make_node_claim("a"), "karpenter.sh/termination"),
    ):
        metadata = {**body["metadata"], "finalizers": [finalizer]}
        kube.create(collection, msgspec.json.encode({**body, "metadata": metadata}))
    kube.delete(f"{CLAIMS}/a")
    status, message = stack.ask("Delete")
    assert status == "SUCCESS", message
    assert "ec2nodeclasses.karpenter.k8s.aws kept: it has 1 object" in message
    wait_until_gone(kube, [f"{CLAIMS}/a"])
    assert "finalizers" not in read_object(kube, f"{CLASSES}/a")["metadata"]
    assert stack.ask("Create")[0] == "SUCCESS"


def test_uninstall_with_purge_removes_all_manifests_and_objects(stack: Stack, kube: KubeClient) -> None:
    install_and_wait(stack, kube)
    body = make_node_class("a")
    metadata = {**body["metadata"], "finalizers": ["karpenter.k8s.aws/termination"]}
    kube.create(CLASSES, msgspec.json.encode({**body, "metadata": metadata}))
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    wait_until_gone(kube, list_manifest_paths())


def test_existing_karpenter_crds_are_kept_unchanged(plane: ControlPlane) -> None:
    kube = plane.get_client()
    install_crds(plane)
    definitions = [
        build_manifest_path(manifest) for manifest in parse_release_manifests() if manifest["kind"] == CRD_KIND
    ]
    before = read_objects(kube, definitions)
    stack = make_stack(kube)
    status, message = stack.ask("Create")
    assert (status, message.count("was not created by Joiner and was not changed")) == ("SUCCESS", len(definitions))
    assert "does not know" not in message
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert read_objects(kube, definitions) == before
    for path in definitions:
        kube.delete(path)
    wait_until_gone(kube, definitions)
