"""A world of lists: just what a snapshot reads."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from shared.errors import Expired, Gone
from shared.model.ec2 import ClusterFacts, Instance
from shared.ports import Ec2, Eks, Kube, Mailbox, Parameters, Prices, World
from shared.settings import Settings
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.optional import OPTIONAL
from sim.memory import MemoryBucket, MemoryTable

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FACTS = ClusterFacts(
    name="demo", endpoint="https://k", certificate_authority="", version="1.33", service_cidr="10.0.0.0/16"
)
PATHS = {listing.kind: listing.path for listing in (*LISTINGS, *OPTIONAL)}


class Lists:
    """Kubernetes as lists of objects by kind; *per_page* of them at a time."""

    def __init__(self, objects: Mapping[str, Sequence[object]], per_page: int = 500) -> None:
        """Hold *objects* by kind."""
        self.objects = objects
        self.per_page = per_page
        self.asked: list[str] = []
        self.selectors: dict[str, str] = {}
        self.limits: set[int] = set()
        self.faults: dict[str, Exception] = {}
        self.expirations: dict[str, int] = {}
        self.bodies: dict[str, bytes] = {}

    def list(
        self, path: str, *, field_selector: str = "", limit: int = 500, continue_token: str = "", **_: str
    ) -> bytes:
        [kind] = (kind for kind, its_path in PATHS.items() if its_path == path)
        self.asked.append(kind)
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
        more = {"continue": str(start + self.per_page)} if start + self.per_page < len(items) else {}
        return msgspec.json.encode({"metadata": more, "items": items[start : start + self.per_page]})

    def read(self, path: str) -> bytes:
        raise Gone(path)


class Machines:
    """EC2 as far as a snapshot asks it."""

    def __init__(self, instances: tuple[Instance, ...] | Exception = ()) -> None:
        """Answer *instances*, or raise them."""
        self.instances = instances

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        assert cluster == "demo"
        if isinstance(self.instances, Exception):
            raise self.instances
        return self.instances


class Plane:
    """EKS, with one cluster."""

    def __init__(self, facts: ClusterFacts | None = FACTS) -> None:
        """Hold *facts*; without there is no cluster."""
        self.facts = facts

    def cluster(self, name: str) -> ClusterFacts:
        if self.facts is None:
            raise Gone(name)
        return self.facts


def world(
    kube: Lists | None = None,
    *,
    ec2: Machines | None = None,
    eks: Plane | None = None,
    table: MemoryTable | None = None,
    bucket: MemoryBucket | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
) -> World:
    """Answer a world that has what is given, and nothing else."""
    return World(
        settings=Settings(cluster_name="demo", region="us-east-1"),
        kube=cast("Kube", kube or Lists({})),
        ec2=cast("Ec2", ec2 or Machines()),
        parameters=cast("Parameters", None),
        prices=cast("Prices", None),
        eks=cast("Eks", eks or Plane()),
        mailbox=cast("Mailbox", None),
        table=table or MemoryTable(),
        bucket=bucket or MemoryBucket(),
        clock=clock,
        emit=lambda _: None,
    )


def named(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    """Answer an object with metadata and whatever else."""
    return {"metadata": {"name": name} | ({"namespace": namespace} if namespace else {}), **more}


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    """Answer a pod in the namespace shop, with a container that asks for little."""
    return named(name, "shop", spec={"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]} | spec)


def a_pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    """Answer a NodePool that any cluster would take; *spec* replaces parts of its template's spec."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return named(name, spec={"template": {"spec": {"nodeClassRef": ref, "requirements": []} | spec}})
