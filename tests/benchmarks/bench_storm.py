"""EC2 takes all machines back within a minute: are they drained within their two minutes, and what does that cost?

``python -m tests.benchmarks.bench_storm 1000``; one pod on each machine. Seconds of this process are those of the
functions and of the embedded world together; nobody's share is counted apart.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from time import process_time
from typing import Any, Final

import msgspec

from sim.embedded import Embedded
from sim.measure import is_running
from tests.scenario.worlds import deployment, node_class, pool

MINUTE: Final = 60
GRACE: Final = 30


class Storm(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    late: tuple[str, ...]
    """Pods that were still on a machine when EC2 ended it."""
    running_at_least: int
    invocations: Mapping[str, int]
    processor_seconds: float


def storm(count: int, seed: int = 0) -> Storm:
    """Let *count* machines be taken back evenly over a minute, and two minutes pass."""
    world = settled(count, seed)
    began, before = process_time(), len(world.runtime.records)
    ends: dict[str, datetime] = {}
    late: set[str] = set()
    least = count
    machines = [one.instance_id for one in world.living()]
    for second in range(3 * MINUTE):
        for instance_id in machines[count * second // MINUTE : count * (second + 1) // MINUTE]:
            world.cloud.interrupt_spot(instance_id)
            ends[instance_id] = world.clock.now() + timedelta(minutes=2)
        world.run(timedelta(seconds=1))
        least = min(least, len(running(world)))
        late |= on_ended(world, ends)
    calls = Counter(one.function for one in world.runtime.records[before:])
    seconds = process_time() - began
    return Storm(late=tuple(sorted(late)), running_at_least=least, invocations=calls, processor_seconds=seconds)


def settled(count: int, seed: int) -> Embedded:
    """Answer a world with a pod on each of *count* spot instances."""
    world = Embedded(seed)
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


def on_ended(world: Embedded, ends: Mapping[str, datetime]) -> set[str]:
    """Answer the pods that run on machines whose time is over."""
    now = world.clock.now()
    over = {instance_id for instance_id, end in ends.items() if end <= now}
    names = {
        node["metadata"]["name"]
        for node in world.live.api.list("nodes")
        if node["spec"].get("providerID", "").rpartition("/")[2] in over
    }
    return {one["metadata"]["name"] for one in running(world) if one["spec"].get("nodeName") in names}


if __name__ == "__main__":
    told = storm(int(sys.argv[1]))
    sys.stdout.write(f"{len(told.late)} pods late, {told.running_at_least} ran at least, {dict(told.invocations)}, ")
    sys.stdout.write(f"{told.processor_seconds:.1f} s of a processor\n")
