"""What must eventually happen with the optional features: which pods and requests may wait, and how long."""

from datetime import timedelta
from typing import Any, Final

from shared.errors import NotFound
from sim.cloud.catalog.synthetic_prices import compute_on_demand_prices
from sim.cluster.controller_runtime.object_conditions import is_true
from sim.fault_simulation.checks.account_checks import MICRO_USD, VOLUME_USD_PER_HOUR, compute_group_usage
from sim.fault_simulation.checks.ground_truth import CLAIMS, GroundTruth
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import INSTANCE_TYPES
from sim.fault_simulation.features.feature_manifests import BLOCKED, GANG_NAME, POOL_TAINT, REQUESTS
from sim.fault_simulation.features.feature_setup import FeatureSetup

Json = dict[str, Any]
GANG_TIMEOUT: Final = timedelta(minutes=26)
"""A gang keeps a part of its nodes for 15 minutes; then it waits before it is planned again, at first 2 minutes."""
END_CONDITIONS: Final = ("Provisioned", "Failed", "BookingExpired")


def compute_feature_timeout(setup: ScriptSetup) -> timedelta:
    """Return how much longer it may take until all pods run."""
    return GANG_TIMEOUT if setup.features.has_gangs else timedelta()


def is_for_feature(pod: Json) -> bool:
    """Return whether the pod runs only on the NodePool of a feature, whose limit allows all its pods."""
    return any(toleration.get("key") == POOL_TAINT for toleration in pod["spec"].get("tolerations") or [])


def is_remnant(world: FaultWorld, pod: Json) -> bool:
    """Return whether the pod is of a gang of which other pods have completed.

    Joiner does not read completed pods. If the others are evicted before they have been running for 5 minutes, their
    gang waits for the completed ones: docs/guide/gangs.md.
    """
    if GANG_NAME not in pod["metadata"].get("annotations", {}):
        return False
    jobs = world.cluster.api.list("jobs.batch", "default")
    app = pod["metadata"].get("labels", {}).get("app")
    return any(job["metadata"]["name"] == app and (job.get("status") or {}).get("succeeded", 0) for job in jobs)


def find_waiting_requests(world: FaultWorld, features: FeatureSetup) -> list[str]:
    """Return the ProvisioningRequests that wait for nodes, without the one whose pods never get all their nodes."""
    if not features.has_requests:
        return []
    names = [
        request["metadata"]["name"]
        for request in world.cluster.api.list(REQUESTS, "default")
        if not any(is_true(request, condition) for condition in END_CONDITIONS)
    ]
    return sorted(f"request {name}" for name in names if name != BLOCKED)


def is_group_full(world: FaultWorld, features: FeatureSetup, waiting_count: int) -> bool:
    """Return whether the limit of the group may refuse a node for each of *waiting_count* pods and requests."""
    if not features.group_limit_usd_per_hour or not waiting_count:
        return False
    if len(world.list_living()) < len(world.cluster.api.list(CLAIMS)):
        return False
    prices = compute_on_demand_prices()
    largest_price = max(prices[name] for name in INSTANCE_TYPES) + VOLUME_USD_PER_HOUR
    free = features.group_limit_usd_per_hour * MICRO_USD - compute_group_usage(world, GroundTruth(world))
    return free < largest_price * MICRO_USD * waiting_count


def delete_requests(world: FaultWorld) -> None:
    """Delete all ProvisioningRequests, if the kind exists."""
    try:
        requests = world.cluster.api.list(REQUESTS, "default")
    except NotFound:
        return
    for request in requests:
        world.cluster.api.delete(REQUESTS, request["metadata"]["name"], "default")
