"""The life of instances over virtual time: pending, running, shutting-down, terminated, and forgotten an hour later.

    start ──▶ pending ──▶ running ──▶ stopping ──▶ stopped
                 │           │            │           │
                 └───────────┴──────┬─────┴───────────┘
                                    ▼
                              shutting-down ──▶ terminated

Describe does not know an instance for a while after it was started; ending one works at once.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Gone, Invalid
from shared.model.ec2 import Instance, InstanceState, InstanceStatus, LaunchTemplate, Tags
from sim.clock import Clock
from sim.cloud import chance
from sim.cloud.events import NOTICE, Events
from sim.cloud.machine import Machine, Order, StatusCheck
from sim.cloud.network import SubnetAddresses
from sim.cloud.pools import Pool

BOOT: Final = (timedelta(seconds=4), timedelta(seconds=10))
SHUT_DOWN: Final = (timedelta(seconds=20), timedelta(seconds=60))
STOP: Final = (timedelta(seconds=10), timedelta(seconds=30))
REMEMBERED: Final = timedelta(hours=1)
MAXIMUM_TAGS: Final = 50
ALIVE: Final = frozenset({"pending", "running", "stopping", "stopped"})


class Machines:
    """Every instance that EC2 still remembers."""

    def __init__(self, clock: Clock, events: Events, seed: int, region: str, describe_lag: timedelta) -> None:
        """Begin with none."""
        self.describe_lag = describe_lag
        self.haste = 1.0
        """How many times as fast as real ones machines stop and end; a boot outlasts the lag of DescribeInstances."""
        self.on_running: list[Callable[[Instance, LaunchTemplate], None]] = []
        self.on_halted: list[Callable[[Instance], None]] = []
        self.on_terminated: list[Callable[[Instance], None]] = []
        self._clock = clock
        self._events = events
        self._seed = seed
        self._region = region
        self._machines: dict[str, Machine] = {}
        self._ended: deque[tuple[datetime, str]] = deque()
        self._started = 0
        self._faulty_next: Counter[str] = Counter()
        self._faulty_types: set[str] = set()

    # What can be seen

    def find(self, instance_id: str) -> Machine:
        """Answer one, however young.

        Raises:
            Gone: EC2 never knew it, or forgot.
        """
        self._forget()
        if instance_id not in self._machines:
            raise Gone(f"InvalidInstanceID.NotFound: The instance ID '{instance_id}' does not exist")
        return self._machines[instance_id]

    def describe(self, instance_id: str) -> Instance:
        """Answer one that Describe knows already.

        Raises:
            Gone: it does not, or no longer.
        """
        machine = self.find(instance_id)
        if not self._is_visible(machine):
            raise Gone(f"InvalidInstanceID.NotFound: The instance ID '{instance_id}' does not exist")
        return machine.described(self._region)

    def described(self) -> tuple[Instance, ...]:
        """Answer all that Describe knows, `terminated` ones too, sorted by id."""
        self._forget()
        visible = sorted(name for name, machine in self._machines.items() if self._is_visible(machine))
        return tuple(self._machines[name].described(self._region) for name in visible)

    def known(self) -> tuple[Instance, ...]:
        """Answer all that is remembered, Describe's lag set aside, sorted by id."""
        self._forget()
        return tuple(machine.described(self._region) for _, machine in sorted(self._machines.items()))

    def alive(self) -> tuple[Machine, ...]:
        """Answer those that have not begun to end, in the order of their start."""
        return tuple(machine for machine in self._machines.values() if machine.state in ALIVE)

    def vcpus(self, *, spot: bool) -> int:
        """Answer how much of a quota is used."""
        used = (machine for machine in self.alive() if machine.state in {"pending", "running"})
        return sum(machine.order.vcpus for machine in used if (machine.order.capacity_type == "spot") is spot)

    # What is done to it

    def start(self, order: Order, subnet: SubnetAddresses, pool: Pool) -> Machine:
        """Start one; it is pending now and runs some seconds later."""
        self._started += 1
        instance_id = chance.identity("i", self._seed, self._region, self._started)
        machine = Machine(instance_id, order, subnet, pool, self._clock.now())
        machine.is_faulty = self._draws_fault(order.instance_type)
        self._machines[instance_id] = machine
        self._after(machine, BOOT, "boot", lambda: self._run(machine))
        self._events.state_changed(instance_id, "pending")
        return machine

    def terminate(self, instance_id: str) -> None:
        """Begin the end of one; where it has begun already nothing happens.

        Raises:
            Gone: EC2 does not know it.
        """
        machine = self.find(instance_id)
        if machine.state in ALIVE:
            self._halt(machine, "shutting-down")
            self._after(machine, SHUT_DOWN, "shut-down", lambda: self._end(machine))

    def kill(self, instance_id: str) -> None:
        """Let one die now, as hardware does: nobody asked, nothing is shut down.

        Raises:
            Gone: EC2 does not know it.
        """
        machine = self.find(instance_id)
        if machine.state in ALIVE:
            self._halt(machine, "shutting-down")
        if machine.state != "terminated":
            self._end(machine)

    def stop(self, instance_id: str) -> None:
        """Stop one that is pending or running; it keeps its address.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is in another state.
        """
        machine = self.find(instance_id)
        if machine.state not in {"pending", "running"}:
            text = f"This instance '{instance_id}' is not in a state from which it can be stopped."
            raise Invalid(text, code="IncorrectInstanceState")
        self._halt(machine, "stopping")
        self._after(machine, STOP, "stop", lambda: self._change(machine, "stopped"))

    def interrupt(self, instance_id: str) -> None:
        """Warn that EC2 wants a spot instance back, and take it two minutes later.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is no spot instance, or it has ended.
        """
        machine = self._spot(instance_id)
        machine.is_reclaimed = True
        self._events.spot_interruption(instance_id, machine.subnet.zone)
        self._clock.call_after(NOTICE, lambda: self.terminate(instance_id), f"reclaim {instance_id}")

    def reclaim(self, instance_id: str) -> None:
        """Warn that reserved capacity is wanted back, and take the instance two minutes later.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is of no reservation, or it has ended.
        """
        machine = self.find(instance_id)
        if machine.order.capacity_type != "reserved" or machine.state not in ALIVE:
            raise Invalid(f"{instance_id} is of no reservation", code="IncorrectInstanceState")
        self._events.reservation_interruption(instance_id, machine.subnet.zone)
        self._clock.call_after(NOTICE, lambda: self.terminate(instance_id), f"reclaim {instance_id}")

    def impair(self, instance_id: str, check: StatusCheck, *, failing: bool = True) -> None:
        """Let a status check of one fail from now on, or no longer.

        Raises:
            Gone: EC2 does not know it.
        """
        machine = self.find(instance_id)
        if failing:
            machine.impaired.setdefault(check, self._clock.now())
        else:
            machine.impaired.pop(check, None)

    def statuses(self) -> tuple[InstanceStatus, ...]:
        """Answer those of running instances that say that something is wrong, sorted by id."""
        running = (one for _, one in sorted(self._machines.items()) if one.state == "running")
        return tuple(one.status() for one in running if one.impaired or one.ahead)

    def recommend_rebalance(self, instance_id: str) -> None:
        """Say that a spot instance is in danger; nothing else comes of it.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is no spot instance, or it has ended.
        """
        machine = self._spot(instance_id)
        self._events.rebalance_recommendation(instance_id, machine.subnet.zone)

    def tag(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite.

        Raises:
            Gone: Describe does not know it.
            Invalid: a key is EC2's own, or there are too many.
        """
        self.describe(instance_id)
        machine = self.find(instance_id)
        check_tags(tags)
        merged = machine.tags | dict(tags)
        if len(_ours(merged)) > MAXIMUM_TAGS:
            raise Invalid(f"More than {MAXIMUM_TAGS} tags specified", code="TagLimitExceeded")
        machine.tags = merged

    def fail_next_boot(self, instance_type: str) -> None:
        """Let the next of *instance_type* (or of any, if empty) run without ever telling `on_running`."""
        self._faulty_next[instance_type] += 1

    def fail_boots(self, instance_type: str, *, failing: bool) -> None:
        """Let all of *instance_type* from now on run so, or no longer."""
        (self._faulty_types.add if failing else self._faulty_types.discard)(instance_type)

    # How it goes on

    def _run(self, machine: Machine) -> None:
        self._change(machine, "running")
        if not machine.is_faulty:
            for callback in self.on_running:
                callback(machine.described(self._region), machine.order.template)

    def _halt(self, machine: Machine, state: InstanceState) -> None:
        machine.timer.cancel()
        was_on = machine.state in {"pending", "running"}
        self._change(machine, state)
        if was_on:
            for callback in self.on_halted:
                callback(machine.described(self._region))

    def _end(self, machine: Machine) -> None:
        machine.timer.cancel()
        machine.release()
        self._ended.append((self._clock.now(), machine.instance_id))
        self._change(machine, "terminated")
        for callback in self.on_terminated:
            callback(machine.described(self._region))

    def _change(self, machine: Machine, state: InstanceState) -> None:
        machine.state = state
        self._events.state_changed(machine.instance_id, state)

    def _after(
        self, machine: Machine, bounds: tuple[timedelta, timedelta], what: str, callback: Callable[[], None]
    ) -> None:
        delay = chance.between(*bounds, self._seed, what, machine.instance_id)
        if bounds != BOOT:
            delay /= self.haste
        machine.timer = self._clock.call_after(delay, callback, f"{what} {machine.instance_id}")

    def _spot(self, instance_id: str) -> Machine:
        machine = self.find(instance_id)
        if machine.order.capacity_type != "spot" or machine.state not in ALIVE:
            raise Invalid(f"{instance_id} is no living spot instance", code="IncorrectInstanceState")
        return machine

    def _draws_fault(self, instance_type: str) -> bool:
        for rule in (instance_type, ""):
            if self._faulty_next[rule] > 0:
                self._faulty_next[rule] -= 1
                return True
        return instance_type in self._faulty_types

    def _is_visible(self, machine: Machine) -> bool:
        return self._clock.now() >= machine.launched_at + self.describe_lag

    def _forget(self) -> None:
        while self._ended and self._ended[0][0] + REMEMBERED <= self._clock.now():
            del self._machines[self._ended.popleft()[1]]


def check_tags(tags: Iterable[tuple[str, str]]) -> None:
    """Let *tags* pass, or not.

    Raises:
        Invalid: a key is empty or EC2's own.
    """
    for key, _ in tags:
        if not key or key.startswith("aws:"):
            text = "Tag keys starting with 'aws:' are reserved for internal use" if key else "Tag key cannot be empty"
            raise Invalid(text, code="InvalidParameterValue")


def _ours(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(key for key in tags if not key.startswith("aws:"))
