"""Settings of voluntary disruption and interruptions."""

from datetime import timedelta
from typing import Annotated, Literal

import msgspec

from shared import settings_text
from shared.model.core.units import parse_duration
from shared.model.karpenter.pause import parse_disruption_pauses
from shared.settings_by_topic.launch import LaunchSettings
from shared.settings_text import Mode, TextForm


class VoluntaryDisruptionSettings(LaunchSettings, frozen=True, kw_only=True):
    """Settings of voluntary disruption and interruptions."""

    disruption: Mode = "active"
    """Voluntary disruption: consolidation, emptiness and drift. `active`: Joiner disrupts nodes. `plan`: Joiner reports
    the nodes that it would disrupt, in events, in the journal and in `joiner explain`, and keeps them. Interruption,
    expiration and repair act in both."""
    disruption_paused: Annotated[str, TextForm(parse=parse_disruption_pauses)] = ""
    """Pauses disruption: `true` for all reasons, or reasons such as `Drifted,Underutilized`. The grammar is that of the
    annotation `joiner.dev/disruption-paused`: `Drifted in batch until 2026-11-22T09:00:00Z because audit`."""
    drift_pause_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    """Percentage of a NodePool's nodes. If more of its nodes have drifted at once, drift is paused in this NodePool.
    0: never."""
    disruption_budgets: str = ""
    """Disruption budgets for the nodes of all NodePools together, in addition to the budgets of each NodePool: a JSON
    list as in spec.disruption.budgets, for example `[{"nodes": "5%"}]`."""
    disruption_time_zone: Annotated[str, TextForm(allowed="a time zone like Europe/Berlin")] = "UTC"
    """Time zone of the schedules in `disruption-budgets`."""
    eviction_price_usd: Annotated[float, msgspec.Meta(ge=0, lt=1e6), TextForm(allowed="USD, like 0.02")] = 0
    """Price of evicting one pod, in USD. Consolidation acts only if its expected savings exceed the price of its
    evictions and launches. The deletion cost and the priority of a pod multiply its price. The annotation
    `joiner.dev/eviction-price-usd` of a NodePool overrides it."""
    workload_cooldown: settings_text.CooldownText = "0"
    """Minimum time between two voluntary disruptions (consolidation, drift) that evict pods of the same workload: a
    Deployment, a StatefulSet, a Job, or a pod without an owner. It is counted from the end of the first disruption.
    0: off."""
    honor_cluster_autoscaler_annotations: Literal["off", "on"] = "off"
    """`on`: Joiner respects the annotations of Cluster Autoscaler. `cluster-autoscaler.kubernetes.io/safe-to-evict:
    "false"` protects a pod as `karpenter.sh/do-not-disrupt: "true"` does, except pods of DaemonSets.
    `cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"` protects a node from consolidation and emptiness, but
    not from drift. `off`: Joiner ignores both."""
    pod_deletion_cost: Literal["off", "on"] = "off"
    """`on`: Joiner sets the annotation `controller.kubernetes.io/pod-deletion-cost` on pods, with lower values on newer
    nodes. When ReplicaSets scale down, they delete the pods on the newest nodes first, so nodes become empty without
    evictions. Deletion costs that users set are kept. Requires `disruption: active`; otherwise nothing is changed. The
    functions get the permission to patch pods: docs/guide/security.md."""
    workload_history: Literal["off", "on"] = "off"
    """`on`: Joiner records the replicas of workloads by hour of the week, and expects the savings of a disruption to
    end when the removed capacity is needed again. It also records how long pods of Jobs run, and keeps nodes whose
    pods are expected to end before moving them pays. `off`, or without a forecast: savings are expected to last for as
    long as the pods of a node have not changed. `joiner history build` fills the history from earlier decisions."""
    spot_history: Literal["off", "on"] = "off"
    """`on`: Joiner counts spot interruptions, rebalance recommendations and capacity errors of each instance type and
    zone, and forgets them gradually. The expected cost of interruptions is added to the spot prices that plans compare:
    set `eviction-price-usd` too. Offerings with repeated capacity errors are avoided for longer, up to an hour."""
    zonal_shift: Literal["off", "on", "drain"] = "off"
    """`on`: during an ARC zonal shift, Joiner launches no nodes in the zone and holds voluntary disruption there.
    `drain`: it also replaces these nodes, if `disruption` is `active`. Zonal shift must be enabled for the EKS cluster.
    The functions get the permission arc-zonal-shift:GetManagedResource: docs/guide/zonal-shift.md."""
    surge_drain: Literal["off", "on"] = "off"
    """`on`: a voluntary disruption can start the new pod of a Deployment before the old pod is evicted, where the
    annotation `joiner.dev/surge-drain` of the Deployment or NodePool is `true`. The functions get the Kubernetes
    permission to patch Deployments. `off`: without this permission, pods are only evicted."""
    scheduled_scaling: Literal["off", "on"] = "off"
    """`on`: schedules of NodePools can scale Deployments and StatefulSets that they list, for example to zero outside
    working hours, and scale them back. The functions get the Kubernetes permission to patch both kinds and their scale:
    docs/guide/schedules.md. `off`: `scale=` in a schedule has no effect."""
    outcome_check_minutes: Annotated[int, msgspec.Meta(ge=0, le=30), TextForm(allowed="0 to 30, 0 for no check")] = 0
    """How long after a disruption the new pods are compared with the pods that they replace. If more of them fail,
    disruption of their NodePool is paused. 0: not checked."""

    @property
    def workload_cooldown_period(self) -> timedelta:
        """How long voluntary disruption leaves a workload alone after a disruption."""
        return parse_duration(self.workload_cooldown)
