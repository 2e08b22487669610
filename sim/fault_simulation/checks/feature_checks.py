"""The invariants of the optional features that a script uses."""

from collections.abc import Iterator

from sim.fault_simulation.checks.account_checks import EventBusCheck, GroupCheck, ImageCheck
from sim.fault_simulation.checks.feature_check import FeatureCheck, ViolationHandler
from sim.fault_simulation.checks.gang_checks import BlockedCheck, GangCheck, RequestCheck
from sim.fault_simulation.checks.ground_truth import GroundTruth
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.features.feature_manifests import list_pools
from sim.fault_simulation.features.feature_setup import FeatureSetup


def build_feature_checks(
    world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
) -> tuple[FeatureCheck, ...]:
    """Return the checks of the features of *setup*."""
    check_types = _list_check_types(setup.features)
    return tuple(check_type(world, setup, ground_truth, on_violation) for check_type in check_types)


def _list_check_types(features: FeatureSetup) -> Iterator[type[FeatureCheck]]:
    if list_pools(features):
        yield BlockedCheck
    if features.has_gangs:
        yield GangCheck
    if features.has_requests:
        yield RequestCheck
    if features.canary or features.image_minimum_age:
        yield ImageCheck
    if features.group_limit_usd_per_hour:
        yield GroupCheck
    if features.has_event_bus:
        yield EventBusCheck
