"""The embedded cloud and the deployed handlers around a cluster that is not ours, in real time.

The cluster is an API server behind two `Kube` ports: one for the functions, with the rights that a deployment has, and
one for everything that a cluster has besides (kubelets, the cloud's controllers, a person). The cloud, the queues, the
table and the bucket live in this process; the functions are wired by the synthesised template.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from shared.ports import Kube
from sim.cluster.controllers.cloud_node import DELETING
from sim.deployed import Deployed
from sim.playground_grounds import Grounds
from sim.realtime import RealTimeClock

SCHEDULED: Final = '{"detail-type": "Scheduled Event", "source": "aws.scheduler"}'


class Playground(Deployed, Grounds):
    """Everything around one API server, wired; `drive` lets it live."""

    def __init__(
        self,
        clock: RealTimeClock,
        *,
        functions: Kube,
        people: Kube,
        endpoint: str = "",
        certificate_authority: str = "",
        seed: int = 0,
        template: Mapping[str, Any] | None = None,
        node_deletion: timedelta = DELETING,
        haste: float = 1.0,
    ) -> None:
        """Deploy the stack of *template* (what the app synthesises, unless given) beside the cluster of `Grounds`."""
        Deployed.__init__(self, clock, seed, template)
        Grounds.__init__(
            self,
            clock,
            self.cloud,
            people,
            endpoint=endpoint,
            certificate_authority=certificate_authority,
            seed=seed,
            node_deletion=node_deletion,
            haste=haste,
        )
        self._functions = functions
        self.switch_on(clock, seed)

    def ring_every(self, period: timedelta) -> None:
        """Ring all schedules every *period* besides: for those who cannot wait for the minute."""
        for schedule in self.wiring.schedules:
            if schedule.target.kind == "function":
                self.runtime.invoke(schedule.target.name, json.loads(schedule.target.input or SCHEDULED))
        self.clock.call_after(period, partial(self.ring_every, period), "ring all schedules")

    def _kube(self) -> Kube:
        return self._functions
