"""The embedded world as a play has it: few types, containers, skewed clocks, lists that may be old, and a witness."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from shared.model.ec2 import FleetRequest, FleetResult, Instance
from shared.ports import Changes, Ec2, Kube, World
from sim.chaos.manifests import TYPES
from sim.cloud.ports import CloudEc2
from sim.cluster.kube import InMemoryKube
from sim.embedded import Embedded
from sim.lambdas.invocation import Invocation


class Witness(Protocol):
    """Sees what functions do, at the very moment, past every fault that is only theirs to see."""

    def fleet(self, who: str, request: FleetRequest, result: FleetResult) -> None:
        """Instances were asked for."""

    def ending(self, who: str, instance_ids: tuple[str, ...]) -> None:
        """Instances are about to be ended."""

    def deleting(self, who: str, path: str) -> None:
        """An object is about to be deleted."""

    def evicting(self, who: str, namespace: str, name: str) -> None:
        """A pod is about to be evicted, if its budget allows it."""


class ChaosWorld(Embedded):
    """One account and cluster, to be broken."""

    witness: Witness

    def __init__(self, seed: int) -> None:
        """Deploy into them; nothing is applied yet."""
        self.skews: dict[str, timedelta] = {}
        """How far a function's clock is ahead."""
        self.behind = timedelta()
        """How old a list may be at present."""
        self.seen: dict[str, list[tuple[datetime, bytes]]] = {}
        self._who = ""
        self._busy: list[tuple[str, int]] = []
        self._containers: dict[tuple[str, int], dict[str, object]] = {}
        self._born = 0
        super().__init__(seed)
        self.cloud.types = {name: self.cloud.types[name] for name in TYPES}
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in TYPES)
        self.on_call: Callable[[Invocation], None] = lambda _: None
        """Hears of each call of a function that is over."""
        self.runtime.on_invocation = self._over

    def started(self) -> tuple[Instance, ...]:
        """Answer every machine that EC2 remembers, however young, sorted by id."""
        return self.cloud.machines.known()

    def living_machines(self) -> tuple[Instance, ...]:
        """Answer those that have not begun to end; `living` asks Describe, which lags."""
        return tuple(one for one in self.started() if one.state in ("pending", "running"))

    def _world(self, function: str, environment: dict[str, str]) -> World:
        """Answer what *function* is handed: with a clock of its own, and the memory of a container that is free."""
        self._born += 1
        self._who = f"{function}-{self._born:06d}"
        world = super()._world(function, environment)

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
        """Answer that nothing has changed, while lists may be old."""
        if self._world.behind:
            return lambda: Changes(version=since)
        return super().watch(path, since=since, field_selector=field_selector)

    def create(self, path: str, body: bytes) -> bytes:
        """Create; an eviction is witnessed."""
        if path.endswith("/eviction"):
            *_, namespace, _, name, _ = path.split("/")
            self._world.witness.evicting(self._who, namespace, name)
        return super().create(path, body)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete, witnessed."""
        self._world.witness.deleting(self._who, path)
        super().delete(path, body)


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
