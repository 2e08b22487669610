"""What must come true once nothing goes wrong any more, and what must be gone once nobody wants anything."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared.launch.templates import unused
from shared.model.cluster import LaunchGroup
from shared.model.commands import Standing
from shared.model.labels import DISRUPTED_TAINT, NODEPOOL
from sim.chaos.allowed import limits
from sim.chaos.events import DeadBoot
from sim.chaos.known import CLAIMS, is_on_every_node
from sim.chaos.manifests import TYPES
from sim.chaos.script import Script
from sim.chaos.world import ChaosWorld
from sim.measure import is_over, is_running

Json = dict[str, Any]
SETTLED_WITHIN: Final = timedelta(minutes=10)
"""After the last fault: a message that was hidden comes back after five and a half minutes, a lease ends after one."""
GIVEN_UP_AFTER: Final = timedelta(minutes=16)
"""A machine that never joins is waited for so long, and what should run on it with it."""
SCALED: Final = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps"}
LEFT_WITHIN: Final = timedelta(minutes=25)
"""After the last wish: nodes go one after the other, as the budget says."""
TIDIED_WITHIN: Final = timedelta(minutes=13)
"""After everything is gone: who tidies looks every ten minutes."""


def settles_within(script: Script) -> timedelta:
    """Answer how long it may take until all pods run."""
    dead = any(isinstance(one, DeadBoot) for one in script.events)
    return SETTLED_WITHIN + (GIVEN_UP_AFTER if dead else timedelta())


def unplaced(world: ChaosWorld, script: Script) -> list[str]:
    """Answer the pods that do not run though there could be a machine for them; sorted."""
    pods = [pod for pod in world.live.pods("default") if not is_over(pod) and not is_on_every_node(pod)]
    waiting = sorted(pod["metadata"]["name"] for pod in pods if not is_running(pod))
    wanted = sum(one["spec"]["replicas"] for kind in SCALED.values() for one in world.live.api.list(kind, "default"))
    if len(pods) < wanted:
        waiting.append(f"{wanted - len(pods)} that were not made yet")
    if not waiting or _is_full(world, script):
        return []
    return waiting


def _is_full(world: ChaosWorld, script: Script) -> bool:
    """Whether all limits may refuse one more machine; a plan reckons with the largest that it may become."""
    machines = world.living_machines()
    if len(machines) < len(world.live.api.list(CLAIMS)):
        return False
    largest = max(world.cloud.types[name].vcpus for name in TYPES)
    used: Counter[str] = Counter()
    for one in machines:
        used[one.tag(NODEPOOL)] += world.cloud.types[one.instance_type].vcpus
    return all(limit - used[pool] < largest for pool, limit in limits(script.setting).items())


def left_over(world: ChaosWorld) -> list[str]:
    """Answer what is there although nobody wants anything any more."""
    found = [f"claim {one['metadata']['name']}" for one in world.live.api.list(CLAIMS)]
    found += [f"node {one['metadata']['name']}" for one in world.live.api.list("nodes")]
    found += [f"instance {one.instance_id}" for one in world.started() if one.state != "terminated"]
    return sorted(found)


def untidy(world: ChaosWorld) -> list[str]:
    """Answer what should have been swept up behind all that."""
    return sorted([*_queued(world), *_unfinished(world), *_templates(world)])


def _queued(world: ChaosWorld) -> Iterator[str]:
    for queue in world.wiring.queues:
        stale = world.runtime.queue(queue.name).visible()
        if stale and any(one.queue == queue.name for one in world.wiring.mappings):
            yield f"{stale} messages in {queue.name}"


def _unfinished(world: ChaosWorld) -> Iterator[str]:
    for row in world.table.rows("command"):
        if msgspec.json.decode(row.body, type=Standing).is_open:
            yield f"command {row.name} has no end"


def _templates(world: ChaosWorld) -> Iterator[str]:
    groups = [msgspec.json.decode(row.body, type=LaunchGroup) for row in world.table.rows("launch-group")]
    old = world.clock.now() - TIDIED_WITHIN / 2
    for one in unused(
        world.cloud.templates.tagged("eks:eks-cluster-name", world.cluster_name), groups, world.cluster_name, old
    ):
        yield f"launch template {one.name}"


def marked(world: ChaosWorld) -> list[str]:
    """Answer the nodes that bear our mark although nobody is taking them away; sorted."""
    going = {
        (one.get("status") or {}).get("nodeName")
        for one in world.live.api.list(CLAIMS)
        if "deletionTimestamp" in one["metadata"]
    }
    targets = {
        target.node
        for row in world.table.rows("command")
        if (standing := msgspec.json.decode(row.body, type=Standing)).is_open
        for target in standing.command.targets
    }
    return sorted(
        node["metadata"]["name"]
        for node in world.live.api.list("nodes")
        if any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints") or [])
        and node["metadata"]["name"] not in going | targets
        and "deletionTimestamp" not in node["metadata"]
    )


def wish_nothing(world: ChaosWorld) -> None:
    """Scale everything to zero."""
    api = world.live.api
    for kind, resource in SCALED.items():
        for one in api.list(resource, "default"):
            world.live.scale(kind, "default", one["metadata"]["name"], 0)
    for one in api.list("jobs.batch", "default"):
        api.delete("jobs.batch", one["metadata"]["name"], "default")
    for one in api.list("nodepools.karpenter.sh"):
        if one["spec"].get("replicas"):
            api.patch("nodepools.karpenter.sh", one["metadata"]["name"], {"spec": {"replicas": 0}})
