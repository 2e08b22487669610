"""EC2 takes all machines back within a minute: are they drained within their two minutes, and what does that cost?

``python -m tests.benchmarks.bench_storm 1000``; one pod on each machine. Virtual time passes in functions as well: what
this process works for one, and `REPLY` for each of its calls. What a function does happens at its beginning all the
same, so the times of drains are too good by what their last functions took.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from time import process_time
from typing import Any, Final

import msgspec

from shared.ports import World
from sim.clock import Clock
from sim.embedded import Embedded
from sim.faults import Call
from sim.lambdas.invocation import Event
from sim.lambdas.runtime import LambdaRuntime
from sim.measure import is_running
from tests.scenario.worlds import deployment, node_class, pool

MINUTE: Final = 60
GRACE: Final = 30
REPLY: Final = timedelta(milliseconds=10)
"""What a call to Kubernetes or AWS takes."""
NODES: Final = "/api/v1/nodes/"
DISRUPTED: Final = "karpenter.sh/disrupted"


class Work(msgspec.Struct):
    """What one function did altogether."""

    invocations: int = 0
    calls: int = 0
    processor: float = 0.0
    hardest: float = 0.0
    """Of one invocation, seconds of a processor."""
    longest: float = 0.0
    """Of one invocation, seconds with its calls."""


class Storm(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it; seconds sorted."""

    late: tuple[str, ...]
    """Pods that were still on a machine when EC2 ended it."""
    running_at_least: int
    until_tainted: tuple[float, ...]
    work_until_tainted: tuple[float, ...]
    """Of that, what passed since the function was called."""
    until_empty: tuple[float, ...]
    work: Mapping[str, Work]


class Measured(Embedded):
    """A world in which functions take their time."""

    def switch_on(self, clock: Clock, seed: int) -> None:
        """Let schedules ring and queues deliver from now on."""
        self.work: dict[str, Work] = defaultdict(Work)
        self.tainted: dict[str, tuple[datetime, float]] = {}
        """By Node: when the function was called that tainted it, and how long it took until then."""
        self._began, self._calls = 0.0, 0
        self.tap = self._see
        self.runtime = LambdaRuntime(clock, self.wiring, self._world, seed, duration=self._took)
        self.cloud.subscribe_events(self.runtime.put_event)

    def _world(self, function: str, environment: dict[str, str]) -> World:
        self._began, self._calls = process_time(), 0
        return super()._world(function, environment)

    def _took(self, function: str, event: Event) -> timedelta:
        del event
        spent, one = process_time() - self._began, self.work[function]
        one.invocations, one.calls, one.processor = one.invocations + 1, one.calls + self._calls, one.processor + spent
        took = timedelta(seconds=spent) + self._calls * REPLY
        one.hardest, one.longest = max(one.hardest, spent), max(one.longest, took.total_seconds())
        return took

    def _see(self, call: Call) -> None:
        if call.when == "before":
            self._calls += 1
        elif call.method == "patch" and call.detail.startswith(NODES):
            name = call.detail.removeprefix(NODES)
            taints = self.live.api.get("nodes", name)["spec"].get("taints", ())
            if name not in self.tainted and any(one["key"] == DISRUPTED for one in taints):
                took = process_time() - self._began + self._calls * REPLY.total_seconds()
                self.tainted[name] = (self.clock.now(), took)


def storm(count: int, seed: int = 0) -> Storm:
    """Let *count* machines be taken back evenly over a minute, and two minutes pass."""
    world = settled(count, seed)
    world.work.clear()
    noticed: dict[str, datetime] = {}
    emptied: dict[str, datetime] = {}
    late: set[str] = set()
    least = count
    names = {_instance(node): node["metadata"]["name"] for node in world.live.api.list("nodes")}
    machines = [one.instance_id for one in world.living()]
    for second in range(3 * MINUTE):
        for instance_id in machines[count * second // MINUTE : count * (second + 1) // MINUTE]:
            world.cloud.interrupt_spot(instance_id)
            noticed[names[instance_id]] = world.clock.now()
        world.run(timedelta(seconds=1))
        now, at_work = world.clock.now(), running(world)
        least = min(least, len(at_work))
        busy = {one["spec"]["nodeName"]: one["metadata"]["name"] for one in at_work}
        late |= {busy[name] for name, at in noticed.items() if name in busy and now - at >= timedelta(minutes=2)}
        emptied |= {name: now for name in noticed if name not in busy and name not in emptied}
    tainted = [(called - noticed[name], took) for name, (called, took) in world.tainted.items() if name in noticed]
    return Storm(
        late=tuple(sorted(late)),
        running_at_least=least,
        until_tainted=tuple(sorted(waited.total_seconds() + took for waited, took in tainted)),
        work_until_tainted=tuple(sorted(took for _, took in tainted)),
        until_empty=tuple(sorted((at - noticed[name]).total_seconds() for name, at in emptied.items())),
        work=dict(world.work),
    )


def settled(count: int, seed: int) -> Measured:
    """Answer a world with a pod on each of *count* spot instances."""
    world = Measured(seed)
    known = ("m5.large",)
    world.cloud.types = {name: world.cloud.types[name] for name in known}
    world.cloud.offerings = tuple((name, zone) for name, zone in world.cloud.offerings if name in known)
    spot = pool(capacity=("spot",), after="Never", types=known)
    world.apply([node_class(), spot, deployment(count, cpu="1500m", terminationGracePeriodSeconds=GRACE)])
    assert world.run_until(lambda: len(running(world)) == count, timedelta(minutes=20))
    world.run(timedelta(minutes=2))
    return world


def running(world: Embedded) -> list[dict[str, Any]]:
    """Answer the pods that run."""
    return [one for one in world.live.pods("default") if is_running(one)]


def told(one: Storm) -> Iterable[str]:
    """Say it in lines."""
    yield f"{len(one.late)} pods late, {one.running_at_least} ran at least"
    for what, seconds in (
        ("tainted after", one.until_tainted),
        ("of it in the function", one.work_until_tainted),
        ("empty after", one.until_empty),
    ):
        ranks = {f"p{part}": seconds[min(len(seconds) * part // 100, len(seconds) - 1)] for part in (50, 99)}
        yield f"{len(seconds)} {what}: " + ", ".join(f"{name} {value:.1f} s" for name, value in ranks.items())
    for function, work in sorted(one.work.items()):
        mean = work.processor / work.invocations
        yield (
            f"{function}: {work.invocations} invocations, {work.calls} calls, {work.processor:.1f} s of a processor, "
            f"{mean:.2f} each, {work.hardest:.2f} at most; with its calls one takes {work.longest:.1f} s at most"
        )


def _instance(node: Mapping[str, Any]) -> str:
    return str(node["spec"].get("providerID", "")).rpartition("/")[2]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in told(storm(int(sys.argv[1])))))
