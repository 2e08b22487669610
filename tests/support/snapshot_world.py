"""A world of lists with only the data that a snapshot reads."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from shared.errors import Expired, NotFound
from shared.model.cluster import ClusterSnapshot
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.ec2.instance import Instance
from shared.ports.aws import Ec2, Eks, ParameterStore, PricingService
from shared.ports.kubernetes import Kube
from shared.ports.messaging import MessageQueue
from shared.ports.world import World
from shared.report.journal.snapshot_digest import compute_encoded_digest, encode_snapshot
from shared.settings import Settings
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from sim.world.memory_ports import MemoryBucket, MemoryTable

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FACTS = ControlPlaneFacts(
    name="demo", endpoint="https://k", certificate_authority="", version="1.33", service_cidr="10.0.0.0/16"
)
PATHS = {listing.kind: listing.path for listing in (*RESOURCE_KINDS, *OPTIONAL_KINDS)}


class Lists:
    """Kubernetes as lists of objects by kind, *per_page* of them at a time."""

    def __init__(self, objects: Mapping[str, Sequence[object]], per_page: int = 500) -> None:
        """Store *objects* by kind."""
        self.objects = objects
        self.per_page = per_page
        self.requested_kinds: list[str] = []
        self.selectors: dict[str, str] = {}
        self.limits: set[int] = set()
        self.faults: dict[str, Exception] = {}
        self.expirations: dict[str, int] = {}
        self.bodies: dict[str, bytes] = {}

    def list(
        self, path: str, *, field_selector: str = "", limit: int = 500, continue_token: str = "", **_: str
    ) -> bytes:
        [kind] = (kind for kind, its_path in PATHS.items() if its_path == path)
        self.requested_kinds.append(kind)
        self.selectors[kind] = field_selector
        self.limits.add(limit)
        if kind in self.faults:
            raise self.faults[kind]
        if continue_token and self.expirations.get(kind, 0):
            self.expirations[kind] -= 1
            raise Expired(path)
        if kind in self.bodies:
            return self.bodies[kind]
        start = int(continue_token or 0)
        items = self.objects.get(kind, ())
        list_metadata = {"continue": str(start + self.per_page)} if start + self.per_page < len(items) else {}
        return msgspec.json.encode({"metadata": list_metadata, "items": items[start : start + self.per_page]})

    def read(self, path: str) -> bytes:
        raise NotFound(path)


class Machines:
    """EC2 with only the calls that a snapshot makes."""

    def __init__(self, instances: tuple[Instance, ...] | Exception = ()) -> None:
        """Return *instances* for every call, or raise the exception."""
        self.instances = instances

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        assert cluster == "demo"
        if isinstance(self.instances, Exception):
            raise self.instances
        return self.instances


class Plane:
    """EKS with one cluster."""

    def __init__(self, facts: ControlPlaneFacts | None = FACTS) -> None:
        """Store *facts*; with None, the cluster does not exist."""
        self.facts = facts

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        if self.facts is None:
            raise NotFound(name)
        return self.facts


def make_world(
    kube: Lists | None = None,
    *,
    ec2: Machines | None = None,
    eks: Plane | None = None,
    table: MemoryTable | None = None,
    bucket: MemoryBucket | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
) -> World:
    """Return a world with the given ports and stores only."""
    return World(
        settings=Settings(cluster_name="demo", region="us-east-1"),
        kube=cast("Kube", kube or Lists({})),
        ec2=cast("Ec2", ec2 or Machines()),
        parameters=cast("ParameterStore", None),
        prices=cast("PricingService", None),
        eks=cast("Eks", eks or Plane()),
        mailbox=cast("MessageQueue", None),
        table=table or MemoryTable(),
        bucket=bucket or MemoryBucket(),
        clock=clock,
        emit=lambda _: None,
    )


def make_object(name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """Return an object with metadata and the given fields."""
    return {"metadata": {"name": name} | ({"namespace": namespace} if namespace else {}), **fields}


def make_pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a pod in the namespace shop, with one small container."""
    return make_object(
        name, "shop", spec={"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]} | spec
    )


def make_node_pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    """Return a valid NodePool; *spec* replaces parts of its template's spec."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return make_object(name, spec={"template": {"spec": {"nodeClassRef": ref, "requirements": []} | spec}})


def compute_snapshot_digest(cluster: ClusterSnapshot) -> str:
    """Return the digest of *cluster*, as the journal has it."""
    return compute_encoded_digest(encode_snapshot(cluster), cluster)
