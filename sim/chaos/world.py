"""The embedded world as a play has it: few types, containers, skewed clocks, lists that may be old, and a witness."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from shared.model.ec2 import CapacityReservation, FleetRequest, FleetResult, Instance, LaunchTemplate
from shared.model.labels import NODEPOOL
from shared.ports import Changes, Ec2, Kube, World
from sim.chaos.manifests import RESERVED_TYPE, TYPES, set_up
from sim.chaos.script import Setting
from sim.cloud.machine import Order
from sim.cloud.ports import CloudEc2
from sim.cluster.kube import InMemoryKube
from sim.embedded import Embedded
from sim.lambdas.invocation import Invocation
from sim.lambdas.template import ACTIVE, synthesised

GATES: Final = {"FEATURE_GATES": "StaticCapacity=true"}
OLDEST: Final = timedelta(minutes=5)
"""No server lags longer."""


class Witness(Protocol):
    """Sees what functions do, at the very moment, past every fault that is only theirs to see."""

    def fleet(self, who: str, request: FleetRequest, result: FleetResult) -> None:
        """Instances were asked for."""

    def ending(self, who: str, instance_ids: tuple[str, ...]) -> None:
        """Instances are about to be ended."""

    def deleting(self, who: str, path: str, uid: str = "") -> None:
        """An object is about to be deleted."""

    def evicting(self, who: str, namespace: str, name: str, uid: str = "") -> None:
        """A pod is about to be evicted, if its budget allows it."""


class ChaosWorld(Embedded):
    """One account and cluster, to be broken."""

    witness: Witness

    def __init__(self, seed: int, reaction: str = "tick") -> None:
        """Deploy into them, to see waiting pods by *reaction*; nothing is applied yet."""
        self.skews: dict[str, timedelta] = {}
        """How far a function's clock is ahead."""
        self.behind = timedelta()
        """How old a list may be at present."""
        self.seen: dict[str, list[tuple[datetime, bytes]]] = {}
        self._revisions: list[tuple[datetime, int]] = []
        self._who = ""
        self._busy: list[tuple[str, int]] = []
        self._containers: dict[tuple[str, int], dict[str, object]] = {}
        self._born = 0
        self.impaired: dict[str, tuple[datetime, datetime]] = {}
        """Machines that failed a status check, from when until when."""
        self.strangers: tuple[str, ...] = ()
        """Machines of another cluster in the same account."""
        super().__init__(seed, template=_deployed(reaction))
        self.cloud.types = {name: self.cloud.types[name] for name in TYPES}
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in TYPES)
        self.on_call: Callable[[Invocation], None] = lambda _: None
        """Hears of each call of a function that is over."""
        self.runtime.on_invocation = self._over

    def started(self) -> tuple[Instance, ...]:
        """Answer every machine of this cluster that EC2 remembers, however young, sorted by id."""
        return tuple(one for one in self.cloud.machines.known() if one.instance_id not in self.strangers)

    def living_machines(self) -> tuple[Instance, ...]:
        """Answer those that have not begun to end; `living` asks Describe, which lags."""
        return tuple(one for one in self.started() if one.state in ("pending", "running"))

    def furnish(self, setting: Setting) -> None:
        """Put into the account what *setting* wants there, and apply what people want in the cluster."""
        if setting.neighbour:
            self._house_stranger()
        if setting.reserved:
            reserved = CapacityReservation(
                reservation_id="",
                instance_type=RESERVED_TYPE,
                zone=self.cloud.zones[0],
                available_count=setting.reserved,
                total_count=setting.reserved,
            )
            self.cloud.reservations.add(reserved, (("purpose", "chaos"),))
        self.apply(set_up(setting))

    def _house_stranger(self) -> None:
        """Start a machine that another cluster has in the account; nobody here may touch it."""
        zone = self.cloud.zones[0]
        order = Order(
            instance_type=TYPES[0],
            vcpus=self.cloud.types[TYPES[0]].vcpus,
            capacity_type="spot",
            image_id="ami-0neighbour",
            template=LaunchTemplate(name="neighbour", image_id="ami-0neighbour", user_data=""),
            tags=(("eks:eks-cluster-name", "neighbour"), (NODEPOOL, "main")),
        )
        subnet = next(one for _, one in sorted(self.cloud.network.subnets.items()) if one.zone == zone)
        self.cloud.machines.fail_next_boot(TYPES[0])
        machine = self.cloud.machines.start(order, subnet, self.cloud.pools.pool(TYPES[0], zone, "spot"))
        self.strangers = (*self.strangers, machine.instance_id)

    def revision_shown(self) -> int:
        """Answer up to which change a server that lags has heard of them; at least the first it knows."""
        now = self.clock.now()
        self._revisions.append((now, self.live.api.revision))
        self._revisions = [one for one in self._revisions if now - one[0] <= OLDEST]
        return max((one[1] for one in self._revisions if now - one[0] >= self.behind), default=self._revisions[0][1])

    def _world(self, function: str, environment: dict[str, str]) -> World:
        """Answer what *function* is handed: with a clock of its own, and the memory of a container that is free."""
        self._born += 1
        self._who = f"{function}-{self._born:06d}"
        world = super()._world(function, environment | GATES)

        def clock() -> datetime:
            return self.clock.now() + self.skews.get(function, timedelta())

        return msgspec.structs.replace(world, clock=clock)

    def _kube(self) -> Kube:
        return _Kube(self, self._who)

    def _ec2(self) -> Ec2:
        return _Ec2(self, self._who)

    def _memory(self, function: str) -> dict[str, object]:
        number = 0
        while (function, number) in self._busy:
            number += 1
        self._busy.append((function, number))
        return self._containers.setdefault((function, number), {})

    def _over(self, invocation: Invocation) -> None:
        """Free the container; one that was killed comes back empty."""
        mine = next(one for one in reversed(self._busy) if one[0] == invocation.function)
        self._busy.remove(mine)
        if invocation.outcome == "killed":
            del self._containers[mine]
        self.on_call(invocation)


@cache
def _deployed(reaction: str) -> Mapping[str, Any]:
    return synthesised(context=ACTIVE | ({"joiner:reaction": reaction} if reaction != "tick" else {}))


class _Kube(InMemoryKube):
    def __init__(self, world: ChaosWorld, who: str) -> None:
        super().__init__(world.live.api)
        self._world, self._who = world, who

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """Answer what was answered a while ago, while lists may be old."""
        now, key = self._world.clock.now(), f"{path}?{label_selector}&{field_selector}&{limit}&{continue_token}"
        known = [one for one in self._world.seen.get(key, []) if now - one[0] <= self._world.behind]
        if known and self._world.behind:
            self._world.seen[key] = known
            return known[0][1]
        fresh = super().list(
            path,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        self._world.seen[key] = [(now, fresh)]
        return fresh

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        """Answer what a list would show, and it may be as old: a server that lags has the latest changes for nobody."""
        begun = super().watch(path, since=since, field_selector=field_selector)
        shown = self._world.revision_shown()
        if not self._world.behind:
            return begun
        changes = begun()
        known = tuple(one for one in changes.events if _revision_of(one) <= shown)
        return lambda: Changes(events=known, version=str(max(int(since), shown)))

    def create(self, path: str, body: bytes) -> bytes:
        """Create; an eviction is witnessed."""
        if path.endswith("/eviction"):
            *_, namespace, _, name, _ = path.split("/")
            self._world.witness.evicting(self._who, namespace, name, _wanted(body))
        return super().create(path, body)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete, witnessed."""
        self._world.witness.deleting(self._who, path, _wanted(body))
        super().delete(path, body)


def _wanted(body: bytes) -> str:
    """Answer the uid of the object that a deletion or an eviction is meant for; "": whoever has the name."""
    said = msgspec.json.decode(body) if body else {}
    uid = said.get("deleteOptions", said).get("preconditions", {}).get("uid", "")
    return str(uid)


def _revision_of(event: bytes) -> int:
    return int(msgspec.json.decode(event)["object"]["metadata"]["resourceVersion"])


class _Ec2(CloudEc2):
    def __init__(self, world: ChaosWorld, who: str) -> None:
        super().__init__(world.cloud)
        self._world, self._who = world, who

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Start instances, witnessed."""
        result = super().create_fleet(request)
        self._world.witness.fleet(self._who, request, result)
        return result

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """End instances, witnessed."""
        some = tuple(instance_ids)
        self._world.witness.ending(self._who, some)
        super().terminate_instances(some)
