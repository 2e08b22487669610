"""The base of the invariants of optional features: what each of them can observe."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from shared.model.decisions.command import CommandState
from shared.model.ec2.fleet import FleetResult
from sim.fault_simulation.checks.ground_truth import GroundTruth
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.lambda_runtime.invocation import Invocation

Json = dict[str, Any]
ViolationHandler: TypeAlias = Callable[[str, str], None]
"""Receives the code of the invariant, and what violates it: ``gang-partial``."""


class FeatureCheck:
    """Checks one feature; a method without an implementation checks nothing."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch *world* from now on."""
        self.world, self.setup, self.features = world, setup, setup.features
        self.ground_truth, self.report = ground_truth, on_violation

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check the state of the account and the cluster, with its NodeClaims *claims*."""

    def observe_fleet(self, caller: str, result: FleetResult) -> None:
        """Check what *caller* has just launched."""

    def observe_disruption(self, caller: str, claim: str, command_state: CommandState) -> None:
        """Check the NodeClaim that *caller* is about to delete for a command."""

    def observe_invocation(self, invocation: Invocation) -> None:
        """Check an invocation that has ended."""
