"""Requests of the functions to Kubernetes and AWS, counted in a cluster of one node: recorded numbers for each cycle.

`python -m tests.scenario.request_counts` writes `tests/golden/requests-per-cycle.json`, after a change that is meant.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Final

from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.gang_manifests import make_definition
from tests.scenario.worlds import (
    CLASSES,
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
)

GOLDEN_FILE: Final = Path(__file__).parents[1] / "golden" / "requests-per-cycle.json"
STARTUP_TIME: Final = timedelta(minutes=12)
"""The same with all settings, so that all of them count the same runs."""
QUIET_TIME: Final = timedelta(minutes=10)
"""Two runs of `catalog`, ten of the other functions."""
LAUNCH_TIME: Final = timedelta(minutes=3)
"""In which a second node is launched."""
INTERRUPTION_TIME: Final = timedelta(seconds=30)
"""In which `interrupt` handles one message."""
_NAMES: Final = re.compile(r"(default|web)-[^/]*|i-[0-9a-f]+|ip-[^/]*|l-[0-9a-f]+")
_OBJECT_KEY: Final = re.compile(r"/.*")

RequestCounts = dict[str, dict[str, int]]
"""Number of requests by function and request; the request `runs` is the number of invocations."""


@cache
def count_phases(settings: tuple[tuple[str, str], ...] = (), canary: str = "") -> Mapping[str, RequestCounts]:
    """Return the requests of a quiet time, then of a launch, with *settings* and the annotations *canary*."""
    template = synthesize_template(settings=ACTIVE_SETTINGS | dict(settings))
    definition = make_definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest")
    world = World(definition, make_node_class(), make_node_pool(types=("m5.xlarge",)), template=template)
    if canary:
        annotations = {"joiner.dev/canary": canary}
        world.cluster.api.patch(CLASSES, "default", {"metadata": {"annotations": annotations}})
    world.apply([make_deployment(1, cpu="3")])
    world.advance_time(STARTUP_TIME)
    assert len(world.list_running_pods()) == 1
    quiet = _count(world, QUIET_TIME)
    world.scale(2)
    launch = _count(world, LAUNCH_TIME)
    assert len(world.list_active_instances()) == 2
    [instance, _] = world.list_active_instances()
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", instance.instance_id))
    interruption = _count(world, INTERRUPTION_TIME)
    assert not world.list_errors()
    return {"quiet": quiet, "launch": launch, "interruption": interruption}


def find_additional_requests(counts: RequestCounts, plain_counts: RequestCounts) -> RequestCounts:
    """Return how many more requests of each kind there are in *counts*, without what is equal; fewer are negative."""
    differences: RequestCounts = {}
    for function in sorted({*counts, *plain_counts}):
        requests, plain_requests = counts.get(function, {}), plain_counts.get(function, {})
        changed = {
            request: requests.get(request, 0) - plain_requests.get(request, 0)
            for request in sorted({*requests, *plain_requests})
            if requests.get(request, 0) != plain_requests.get(request, 0)
        }
        if changed:
            differences[function] = changed
    return differences


def read_recorded_counts() -> Mapping[str, RequestCounts]:
    """Return the recorded requests of a cluster without optional features."""
    recorded: Mapping[str, RequestCounts] = json.loads(GOLDEN_FILE.read_text())
    return recorded


def _count(world: World, duration: timedelta) -> RequestCounts:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def record_call(call: PortCall) -> None:
        if call.phase == "before":
            counts[call.world_name.rpartition("-")[0]][_describe(call)] += 1

    with world.use_tap(record_call):
        before = Counter(invocation.function for invocation in world.runtime.invocations)
        world.advance_time(duration)
        runs = Counter(invocation.function for invocation in world.runtime.invocations) - before
    return {name: {"runs": runs[name], **dict(sorted(counts[name].items()))} for name in sorted(runs)}


def _describe(call: PortCall) -> str:
    """Return the request without the names of new objects: ``kube.list /api/v1/pods``."""
    detail = call.detail
    if call.port == "bucket":
        detail = _OBJECT_KEY.sub("", detail)
    elif call.port not in ("kube", "table", "mailbox"):
        detail = ""
    return f"{call.port}.{call.method} {_NAMES.sub('*', detail.partition('?')[0])}".strip()


if __name__ == "__main__":
    GOLDEN_FILE.write_text(json.dumps(count_phases(), indent=1) + "\n")
