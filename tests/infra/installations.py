"""An installer for any cluster, and CloudFormation's view of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from infra.functions.installer import MANIFESTS_FILENAME, build_manifests
from shared.errors import Fault, NotFound
from shared.installer.cloudformation import CloudFormationRequest, parse_cloudformation_request
from shared.installer.cloudformation_requests import handle_request
from shared.installer.manifests import Manifest, parse_manifests
from shared.ports.kubernetes import Kube
from shared.ports.world import World
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing
from sim.fault_tap import PortCall, tap_port
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryBucket, MemoryTable

PROFILE: Final = "nodes-profile"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODES: Final = "/api/v1/nodes"
TERMINATION_METADATA: Final = {"finalizers": ["karpenter.sh/termination"]}


def build_release_manifests(change: Callable[[list[dict[str, Any]]], None] | None = None) -> bytes:
    """Return the manifests of a release; those of another release if there is a *change*."""
    manifests = msgspec.json.decode(build_manifests())
    if change is not None:
        change(manifests)
    return msgspec.json.encode(manifests)


def parse_release_manifests() -> tuple[Manifest, ...]:
    return parse_manifests(build_manifests())


class Stack:
    """CloudFormation with Joiner's stack, on the cluster of *kube*; waiting advances *clock*."""

    def __init__(self, kube: Kube, clock: Clock, wait: Callable[[timedelta], None] | None = None) -> None:
        """Start with nothing deployed."""
        self.kube, self.clock = kube, clock
        self.body = build_release_manifests()
        self.lines: list[str] = []
        self.waited = timedelta(0)
        self.time_limit = timedelta(minutes=15)
        self._wait = clock.advance if wait is None else wait

    def ask(self, request: str, part: str = "installed", **properties: object) -> tuple[str, str]:
        """Return the status and the message that CloudFormation receives."""
        answer = msgspec.json.decode(
            handle_request(self.build_request(request, part, **properties), self._build_world(), self._pause)
        )
        return answer["Status"], answer["Data"]["Told"]

    def build_request(self, request: str, part: str = "installed", **properties: object) -> CloudFormationRequest:
        resource_properties = {
            "Part": part,
            "Manifests": MANIFESTS_FILENAME,
            "Profiles": [PROFILE],
            "ServiceToken": "arn",
            **properties,
        }
        return parse_cloudformation_request(build_event(request, resource_properties))

    def _pause(self, duration: timedelta) -> None:
        self.waited += duration
        self._wait(duration)

    def _build_world(self) -> World:
        cloud = Cloud(self.clock)
        end = self.clock.get_time() + self.time_limit
        return World(
            settings=Settings(cluster_name="demo", region="us-east-1"),
            kube=self.kube,
            ec2=CloudEc2(cloud),
            parameters=CloudParameters(cloud),
            prices=CloudPricing(cloud),
            eks=CloudEks(cloud),
            mailbox=NoMailbox(),
            table=MemoryTable(),
            bucket=MemoryBucket(),
            clock=self.clock.get_time,
            emit=self.lines.append,
            read_packaged_file={MANIFESTS_FILENAME: self.body}.__getitem__,
            time_left=lambda: end - self.clock.get_time(),
        )


class NoMailbox:
    """A mailbox that must not be used: the installer sends no messages."""

    def add(self, function: str, body: str, after: timedelta) -> None:
        raise AssertionError((function, body, after))

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        raise AssertionError((function, body, delays))


def build_event(request: str, properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "RequestType": request,
        "ResponseURL": "https://cloudformation-custom-resource-response/?signed",
        "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/joiner-demo/1",
        "RequestId": "request-1",
        "LogicalResourceId": "InstallerInstalled",
        "ResourceType": "Custom::JoinerInstalled",
        "ResourceProperties": dict(properties),
    }


def create_object(kube: Kube, collection: str, body: dict[str, Any], **metadata: object) -> None:
    kube.create(collection, msgspec.json.encode({**body, "metadata": {**body["metadata"], **metadata}}))


def read_object(kube: Kube, path: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(kube.read(path))
    return document


def is_there(kube: Kube, path: str) -> bool:
    try:
        kube.read(path)
    except NotFound:
        return False
    return True


def finish_claim_deletion(kube: Kube) -> None:
    assert "deletionTimestamp" in read_object(kube, f"{CLAIMS}/a")["metadata"]
    kube.patch(f"{CLAIMS}/a", b'{"metadata": {"finalizers": null}}')


def make_failing_stack(kube: Kube, clock: Clock, faults: Iterator[Fault | None]) -> Stack:
    def raise_next_fault(call: PortCall) -> None:
        fault = next(faults, None) if call.phase == "before" else None
        if fault is not None:
            raise fault

    return Stack(tap_port(kube, "kube", raise_next_fault), clock)
