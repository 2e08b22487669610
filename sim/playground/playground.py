"""The embedded cloud and the deployed handlers around an external cluster, in real time.

The cluster is an API server behind two `Kube` ports: one for the functions, with the permissions of a deployment, and
one for everything else in a cluster (kubelets, the cloud's controllers, a person). The cloud, the queues, the table and
the bucket are in this process; the synthesized template defines what invokes the functions.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from shared.ports.kubernetes import Kube
from sim.cluster.controllers.nodes.cloud_node import NODE_DELETION_DELAY
from sim.playground.external_cluster import ExternalCluster
from sim.time.real_clock import RealTimeClock
from sim.world.deployed_stack import DeployedStack

SCHEDULED_EVENT: Final = '{"detail-type": "Scheduled Event", "source": "aws.scheduler"}'


class Playground(DeployedStack, ExternalCluster):
    """The embedded cloud and stack around one API server; `drive` runs it."""

    def __init__(
        self,
        clock: RealTimeClock,
        *,
        functions_kube: Kube,
        admin_kube: Kube,
        endpoint: str = "",
        certificate_authority: str = "",
        seed: int = 0,
        template: Mapping[str, Any] | None = None,
        node_deletion_delay: timedelta = NODE_DELETION_DELAY,
        node_speed: float = 1.0,
    ) -> None:
        """Deploy the stack of *template* (None.

        The template that the CDK app synthesizes) beside an `ExternalCluster`.
        """
        DeployedStack.__init__(self, clock, seed, template)
        ExternalCluster.__init__(
            self,
            clock,
            self.cloud,
            admin_kube,
            endpoint=endpoint,
            certificate_authority=certificate_authority,
            seed=seed,
            node_deletion_delay=node_deletion_delay,
            node_speed=node_speed,
        )
        self.instance_booter.can_assign_ipv6_addresses = self.access_control.can_assign_ipv6_addresses
        self._functions_kube = functions_kube
        self.start_functions(clock, seed)

    def invoke_schedules_every(self, period: timedelta) -> None:
        """Invoke all scheduled functions every *period*, in addition to their schedules, for shorter waiting times."""
        self.invoke_schedules()
        self.clock.call_after(period, partial(self.invoke_schedules_every, period), "ring all schedules")

    def invoke_schedules(self) -> None:
        """Invoke all scheduled functions now, so that the first run is not a minute away."""
        for schedule in self.wiring.schedules:
            if schedule.target.kind == "function":
                self.runtime.invoke(schedule.target.name, json.loads(schedule.target.input or SCHEDULED_EVENT))

    def _build_kube(self) -> Kube:
        return self._functions_kube
