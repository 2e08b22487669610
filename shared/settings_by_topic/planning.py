"""Settings of the cluster, and of plans for pending pods."""

from typing import Annotated, Literal

import msgspec

from shared import settings_text
from shared.settings_text import MinValuesPolicy, Mode, PodNominations, PreferencePolicy, TextForm


class PlanningSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the cluster, and of plans for pending pods."""

    kube_endpoint: Annotated[
        str, msgspec.Meta(pattern=r"^(https://[^\s/]+/?)?\Z"), TextForm(allowed="a URL like https://HOST, or empty")
    ] = ""
    """URL of the cluster's API server. If empty, the functions read it from eks:DescribeCluster."""
    mode: Mode = "active"
    """`active`: Joiner acts on its decisions. `plan` (dry-run mode): Joiner decides and reports, but changes nothing:
    it also stops drains in progress, and does not handle Spot interruptions."""
    preference_policy: Annotated[PreferencePolicy, TextForm(variable="PREFERENCE_POLICY")] = "Respect"
    """Whether preferred affinities and `ScheduleAnyway` spread constraints of pods are applied where possible
    (`Respect`) or not at all (`Ignore`). With `Respect`, consolidation keeps preferred pod
    anti-affinity that holds on the current node of a pod."""
    min_values_policy: Annotated[MinValuesPolicy, TextForm(variable="MIN_VALUES_POLICY")] = "Strict"
    """Whether `minValues` of a requirement must be satisfied (`Strict`) or is relaxed if it cannot be
    (`BestEffort`)."""
    pod_nominations: PodNominations = "Enabled"
    """`Enabled`: Joiner nominates pods for the nodes that it creates for them, in `status.nominatedNodeName`.
    `Disabled`: Joiner does not write the status of pods, and prefers plans that do not depend on nominations."""
    gangs: Literal["off", "on"] = "off"
    """`on`: the pods of a gang get all their nodes or none. A gang is a PodGroup, a pod group of Kueue, a JobSet, a
    group of a LeaderWorkerSet, or pods with the annotation `joiner.dev/gang`. The functions get the Kubernetes
    permission to list PodGroups. `off`: each pod is planned alone. Before you switch it on: each JobSet and each group
    of a LeaderWorkerSet becomes a gang. If their pods start after each other (`InOrder`, `LeaderReady`), they wait
    forever, unless the pods have the annotation `joiner.dev/gang-size: "1"`: docs/guide/gangs.md."""
    provisioning_requests: Literal["off", "on"] = "off"
    """`on`: Joiner answers ProvisioningRequests of the classes `check-capacity.autoscaling.x-k8s.io` and
    `best-effort-atomic-scale-up.autoscaling.x-k8s.io`, as Kueue creates them: docs/guide/gangs.md. The functions get
    the Kubernetes permissions to list them and to patch their status. `off`: Joiner does not read them."""
    node_cost_usd_per_hour: settings_text.Usd = 0
    """Cost of each node in USD per hour in addition to its instance and volumes, for example the license of an agent.
    The higher it is, the fewer and larger the planned nodes are."""
    volume_usd_per_gib_month: settings_text.Usd = 0.08
    """Price of the nodes' volumes in USD per GiB and month, used when plans are compared."""
    dynamic_resource_allocation: Literal["off", "on"] = "off"
    """`on`: Joiner plans pods with ResourceClaims, on the devices of ResourceSlices and on those that new nodes are
    expected to publish. The functions get the Kubernetes permission to list the kinds of `resource.k8s.io`:
    docs/guide/dynamic-resources.md. `off`: such pods get an event, and no node."""
