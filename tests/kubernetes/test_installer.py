"""The installer against a real API server: what it keeps of the manifests, and what becomes of it all."""

import ssl
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
from urllib3 import PoolManager

from functions.installer.manifests import DEFINITION, path_of
from shared.errors import Gone
from shared.kube.client import KubeClient
from shared.ports import Kube
from sim.clock import Clock
from sim.faults import tapped
from tests.contract.kube_front import eventually
from tests.contract.test_kube_crds import claim, node_class
from tests.controlplane.definitions import install, is_established
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.controlplane.rights import granted, is_allowed
from tests.infra.installations import Stack, shipped, wanted

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
FLOW_HEADER: Final = "X-Kubernetes-PF-FlowSchema-UID"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A cluster in which nobody has installed anything."""
    with ControlPlane(parts=API_ONLY, users=(FUNCTIONS, STRANGER)) as plane:
        yield plane


@pytest.fixture
def kube(plane: ControlPlane) -> KubeClient:
    return plane.client()


@pytest.fixture
def stack(kube: KubeClient) -> Iterator[Stack]:
    """Afterwards the cluster is as it was."""
    made = deployed(kube)
    yield made
    for _ in range(2):
        status, told = made.ask("Delete", OnDestroy="purge")
        assert status == "SUCCESS", told
        until_gone(kube, everything())


def deployed(kube: Kube) -> Stack:
    clock = Clock()

    def wait(_: timedelta) -> None:
        time.sleep(0.3)
        clock.advance(timedelta(seconds=0.3))

    return Stack(kube, clock, wait)


def state(kube: KubeClient, paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Answer what is at *paths*, but for what the API server's own controllers write: conditions, and when they did."""
    found = {path: read(kube, path) for path in paths}
    for one in found.values():
        one.pop("status", None)
        for name in ("resourceVersion", "managedFields"):
            del one["metadata"][name]
    return found


def everything() -> list[str]:
    return [path_of(one) for one in wanted()]


def read(kube: KubeClient, path: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(kube.read(path))
    return found


def until_gone(kube: KubeClient, paths: list[str], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    for path in paths:
        while True:
            try:
                kube.read(path)
            except Gone:
                break
            assert time.monotonic() < deadline, f"{path} does not go"
            time.sleep(0.1)


def settled(stack: Stack, kube: KubeClient) -> None:
    """Install, and let the server serve it."""
    status, told = stack.ask("Create")
    assert status == "SUCCESS", told
    for one in wanted():
        if one["kind"] == DEFINITION:
            eventually(lambda one=one: is_served(kube, one))  # type: ignore[misc] # bound now
    eventually(lambda: read(kube, FLOW)["status"]["conditions"])


def is_served(kube: KubeClient, definition: dict[str, Any]) -> bool:
    spec = definition["spec"]
    collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return is_established(kube, definition["metadata"]["name"]) and bool(kube.list(collection, limit=1))


def test_after_installing_the_functions_may_do_what_they_do(stack: Stack, plane: ControlPlane) -> None:
    admin = plane.client()
    settled(stack, admin)
    for right in sorted(granted()):
        eventually(lambda right=right: is_allowed(admin, right, *FUNCTIONS.groups))  # type: ignore[misc] # bound now
    assert b"NodePoolList" in plane.client(plane.token_of(FUNCTIONS)).list("/apis/karpenter.sh/v1/nodepools")


def test_installing_again_writes_nothing(stack: Stack, kube: KubeClient) -> None:
    settled(stack, kube)
    before, calls = state(kube, everything()), list[str]()
    again = deployed(tapped(kube, "kube", lambda call: calls.append(call.method)))
    assert again.ask("Update") == ("SUCCESS", "nothing to do")
    assert {*calls} <= {"read", "list"}
    assert state(kube, everything()) == before


def test_a_release_and_its_rollback(stack: Stack, kube: KubeClient) -> None:
    def change(found: list[dict[str, Any]]) -> None:
        for one in found:
            if one["kind"] == DEFINITION:
                one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Another."
            if one["kind"] == "FlowSchema":
                one["spec"]["matchingPrecedence"] = 950
            if one["kind"] == "PriorityLevelConfiguration":
                one["spec"]["limited"]["borrowingLimitPercent"] = 10
            if one["kind"] == "ClusterRoleBinding":
                one["roleRef"]["name"] = "other"

    settled(stack, kube)
    stack.body = shipped(change)
    status, told = stack.ask("Update")
    assert (status, told.count("brought up to date"), told.count("made anew")) == ("SUCCESS", 7, 1), told
    assert read(kube, FLOW)["spec"]["matchingPrecedence"] == 950
    stack.body = shipped()
    assert stack.ask("Update")[0] == "SUCCESS"
    assert stack.ask("Update") == ("SUCCESS", "nothing to do")
    level = read(kube, FLOW.replace("flowschemas", "prioritylevelconfigurations"))
    assert level["spec"]["limited"].get("borrowingLimitPercent") is None


def flow_of(plane: ControlPlane, token: str) -> str:
    """Answer the uid of the FlowSchema that a request of whoever has *token* counted for."""
    context = ssl.create_default_context(cadata=b64decode(plane.certificate_authority).decode())
    url, headers = f"{plane.endpoint}/api/v1/nodes?limit=1", {"Authorization": f"Bearer {token}"}
    return str(PoolManager(ssl_context=context).request("GET", url, headers=headers).headers[FLOW_HEADER])


def test_requests_of_the_functions_count_for_their_own_priority(stack: Stack, plane: ControlPlane) -> None:
    settled(stack, plane.client())
    own = read(plane.client(), FLOW)["metadata"]["uid"]
    eventually(lambda: flow_of(plane, plane.token_of(FUNCTIONS)) == own)


def test_what_an_operator_wrote_stays_and_can_be_deleted(stack: Stack, kube: KubeClient) -> None:
    settled(stack, kube)
    for collection, body, finalizer in (
        (CLASSES, node_class("a"), "karpenter.k8s.aws/termination"),
        (CLAIMS, claim("a"), "karpenter.sh/termination"),
    ):
        metadata = {**body["metadata"], "finalizers": [finalizer]}
        kube.create(collection, msgspec.json.encode({**body, "metadata": metadata}))
    kube.delete(f"{CLAIMS}/a")
    status, told = stack.ask("Delete")
    assert status == "SUCCESS", told
    assert "ec2nodeclasses.karpenter.k8s.aws stays: it has 1 objects" in told
    until_gone(kube, [f"{CLAIMS}/a"])
    assert "finalizers" not in read(kube, f"{CLASSES}/a")["metadata"]
    assert stack.ask("Create")[0] == "SUCCESS"


def test_on_request_nothing_is_left(stack: Stack, kube: KubeClient) -> None:
    settled(stack, kube)
    body = node_class("a")
    metadata = {**body["metadata"], "finalizers": ["karpenter.k8s.aws/termination"]}
    kube.create(CLASSES, msgspec.json.encode({**body, "metadata": metadata}))
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    until_gone(kube, everything())


def test_a_karpenter_that_is_there_stays_as_it_is(plane: ControlPlane) -> None:
    kube = plane.client()
    install(plane)
    definitions = [path_of(one) for one in wanted() if one["kind"] == DEFINITION]
    before = state(kube, definitions)
    stack = deployed(kube)
    status, told = stack.ask("Create")
    assert (status, told.count("somebody else's and left alone")) == ("SUCCESS", len(definitions))
    assert "does not know" not in told
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert state(kube, definitions) == before
    for path in definitions:
        kube.delete(path)
    until_gone(kube, definitions)
