"""An installer at work on any cluster, and what CloudFormation would say to it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from functions.installer.answer import Order, parse_order
from functions.installer.manifests import Manifest, parse_manifests
from functions.installer.orders import handle
from infra.installer import FILE, manifests
from shared.errors import Fault, Gone
from shared.ports import Kube, World
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.faults import Call, tapped
from sim.memory import MemoryBucket, MemoryTable

PROFILE: Final = "nodes-profile"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODES: Final = "/api/v1/nodes"
HELD: Final = {"finalizers": ["karpenter.sh/termination"]}


def shipped(change: Callable[[list[dict[str, Any]]], None] | None = None) -> bytes:
    """Answer the manifests of a release; of another one if there is a *change*."""
    found = msgspec.json.decode(manifests())
    if change is not None:
        change(found)
    return msgspec.json.encode(found)


def wanted() -> tuple[Manifest, ...]:
    return parse_manifests(manifests())


class Stack:
    """CloudFormation with our stack, on the cluster of *kube*; waiting takes the time of *clock*."""

    def __init__(self, kube: Kube, clock: Clock, wait: Callable[[timedelta], None] | None = None) -> None:
        """Nothing is deployed yet."""
        self.kube, self.clock = kube, clock
        self.body = shipped()
        self.lines: list[str] = []
        self.waited = timedelta(0)
        self._wait = clock.advance if wait is None else wait

    def ask(self, request: str, part: str = "installed", **properties: object) -> tuple[str, str]:
        """Answer the status and the words that CloudFormation hears."""
        answer = msgspec.json.decode(handle(self.order(request, part, **properties), self._world(), self._pause))
        return answer["Status"], answer["Data"]["Told"]

    def order(self, request: str, part: str = "installed", **properties: object) -> Order:
        said = {"Part": part, "Manifests": FILE, "Profiles": [PROFILE], "ServiceToken": "arn", **properties}
        return parse_order(event(request, said))

    def _pause(self, duration: timedelta) -> None:
        self.waited += duration
        self._wait(duration)

    def _world(self) -> World:
        cloud = Cloud(self.clock)
        end = self.clock.now() + timedelta(minutes=15)
        return World(
            settings=Settings(cluster_name="demo", region="us-east-1"),
            kube=self.kube,
            ec2=CloudEc2(cloud),
            parameters=CloudParameters(cloud),
            prices=CloudPrices(cloud),
            eks=CloudEks(cloud),
            mailbox=NoMailbox(),
            table=MemoryTable(),
            bucket=MemoryBucket(),
            clock=self.clock.now,
            emit=self.lines.append,
            packaged={FILE: self.body}.__getitem__,
            time_left=lambda: end - self.clock.now(),
        )


class NoMailbox:
    """The installer writes to nobody."""

    def send(self, function: str, body: str, after: timedelta) -> None:
        raise AssertionError((function, body, after))


def event(request: str, properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "RequestType": request,
        "ResponseURL": "https://cloudformation-custom-resource-response/?signed",
        "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/joiner-demo/1",
        "RequestId": "request-1",
        "LogicalResourceId": "InstallerInstalled",
        "ResourceType": "Custom::JoinerInstalled",
        "ResourceProperties": dict(properties),
    }


def make(kube: Kube, collection: str, body: dict[str, Any], **metadata: object) -> None:
    kube.create(collection, msgspec.json.encode({**body, "metadata": {**body["metadata"], **metadata}}))


def read(kube: Kube, path: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(kube.read(path))
    return found


def is_there(kube: Kube, path: str) -> bool:
    try:
        kube.read(path)
    except Gone:
        return False
    return True


def finished(kube: Kube) -> None:
    assert "deletionTimestamp" in read(kube, f"{CLAIMS}/a")["metadata"]
    kube.patch(f"{CLAIMS}/a", b'{"metadata": {"finalizers": null}}')


def failing(kube: Kube, clock: Clock, faults: Iterator[Fault | None]) -> Stack:
    def tap(call: Call) -> None:
        fault = next(faults, None) if call.when == "before" else None
        if fault is not None:
            raise fault

    return Stack(tapped(kube, "kube", tap), clock)
