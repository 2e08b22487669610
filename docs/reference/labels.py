"""The reference page of labels, annotations, taints and finalizers, by who writes them.

Each constant of `shared.model.core.labels` has a row.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from docs.reference.markdown import format_code, render_page, render_table
from shared.model.core import labels as names

USER_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    names.DO_NOT_DISRUPT: (
        "pod, Node",
        '`"true"`, or on a pod a duration from its start like `"2h"`: no voluntary disruption. Expiration continues.',
    ),
    names.DO_NOT_EVICT: ("pod", "Old name of do-not-disrupt."),
    names.DO_NOT_CONSOLIDATE: ("Node, NodeClaim", "Old name of do-not-disrupt."),
    names.SAFE_TO_EVICT: (
        "pod",
        '`"false"`, with `honor-cluster-autoscaler-annotations: on`: as do-not-disrupt, except on pods of DaemonSets.',
    ),
    names.SCALE_DOWN_DISABLED: (
        "Node, NodeClaim",
        '`"true"`, with `honor-cluster-autoscaler-annotations: on`: no consolidation or emptiness. Drift continues.',
    ),
    names.POD_DELETION_COST: ("pod", "A number. Nodes whose pods have a high deletion cost are disrupted last."),
    names.VOLUNTARY_DISRUPTION: ("Node, NodeClaim", "`drifted`: the node is replaced as drifted, within the budgets."),
    names.DISRUPTION_PAUSED: (
        "NodePool, Namespace kube-system",
        "`true`, or reasons like `Drifted,Underutilized` that are paused. Written by `joiner pause`.",
    ),
    names.LAUNCHES_PAUSED: (
        "NodePool, Namespace kube-system",
        "`true`: no nodes are launched. Written by `joiner pause --launches`.",
    ),
    names.DISRUPTION_RESUMED: (
        "NodePool",
        "A time. Failures before this time no longer pause disruption. `joiner resume --nodepool` writes it.",
    ),
    names.DISRUPTION_WINDOWS: (
        "NodePool",
        "Windows of voluntary disruption: schedules and durations, like `0 22 * * mon-fri 8h; 0 0 * * sat 48h`.",
    ),
    names.BUDGET_TIME_ZONE: ("NodePool", "Time zone of the schedules of its budgets and windows. Default: UTC."),
    names.MINIMUM_SAVINGS_USD: ("NodePool", "Minimum savings of a consolidation, in USD per hour."),
    names.MINIMUM_SAVINGS_PERCENT: (
        "NodePool",
        "Minimum savings of a consolidation, in percent of the cost of its nodes.",
    ),
    names.EVICTION_PRICE: (
        "NodePool",
        "Price of evicting a pod from a node of the NodePool, in USD. Default: `eviction-price-usd`.",
    ),
    names.LIMIT_USD: (
        "NodePool",
        "Limit of the price of its nodes in USD per hour, with volumes. Nodes that would exceed it are not launched.",
    ),
    names.DEVICES: (
        "NodeOverlay",
        "Devices that nodes of its instance types publish, as JSON: docs/guide/dynamic-resources.md.",
    ),
    names.IMAGE_MINIMUM_AGE: (
        "EC2NodeClass",
        "How long Joiner must know a new image before it is used, like `72h`: docs/guide/images.md.",
    ),
    names.CANARY: (
        "EC2NodeClass",
        "How many nodes test a new image or launch configuration, and how long: `nodes=2 soak=1h`.",
    ),
    names.CANARY_APPROVED: (
        "EC2NodeClass",
        "Images and hashes that are used with any result of the canary. Set by `joiner nodeclass approve`, or by you.",
    ),
    names.CANARY_REJECTED: (
        "EC2NodeClass",
        "Images and hashes that are not used. Set by `joiner nodeclass reject`, or by you.",
    ),
    names.PAUSE_AFTER_FAILURES: (
        "EC2NodeClass",
        "Launches pause after this number of nodes that did not register: docs/guide/images.md.",
    ),
    names.SCHEDULE: (
        "NodePool, CapacityBuffer",
        "Windows with other values, like `night: 0 20 * * mon-fri 11h replicas=0`: docs/guide/schedules.md.",
    ),
    names.SCHEDULE_TIME_ZONE: ("NodePool, CapacityBuffer", "Time zone of its schedule. Default: UTC."),
    names.CONSOLIDATION_MODE: (
        "NodePool",
        "`delete-only`: consolidation launches no replacements. Default: `delete-and-replace`.",
    ),
    names.UTILIZATION_THRESHOLD: (
        "NodePool",
        "Percentage of the allocatable CPU and memory. Nodes that use this share or more are not consolidated.",
    ),
    names.GRACEFUL_EXPIRATION: (
        "NodePool",
        "A duration after `expireAfter` in which nodes are replaced as drifted, within budgets, before they expire.",
    ),
    names.IMAGE_SOAK: ("NodePool", "A duration for which one node runs a new image before the other nodes get it."),
    names.EXPIRY_JITTER: (
        "NodePool",
        "Each node expires sooner by a different part of `expireAfter`, at most this percentage.",
    ),
    names.SURGE_DRAIN: (
        "NodePool, Deployment",
        "`true`: a rollout starts new pods before the node drains; `false`: not. Needs `surge-drain`.",
    ),
    names.REBALANCE_POLICY: (
        "NodePool",
        "Reaction to a rebalance recommendation of EC2: `ignore` (default), `cordon`, `replace` or `drain`.",
    ),
    names.ZONE_BALANCE: (
        "NodePool",
        "How many percent more a new node may cost for an even number of nodes in each zone: a whole number.",
    ),
    names.SPOT_SHARE: (
        "NodePool, pod",
        "How many percent of its nodes, or of the pods of an owner, may be Spot above the base. Default: 100.",
    ),
    names.ON_DEMAND_BASE: (
        "NodePool, pod",
        "How many nodes, vCPU or pods are on-demand before the Spot share counts. Default: 0.",
    ),
    names.SPOT_SHARE_UNIT: (
        "NodePool",
        "What its Spot share counts: `nodes` (default) or `vcpu`. On pods, only pods are counted.",
    ),
    names.GANG: (
        "pod",
        "Name of its gang: with the setting `gangs`, the pods of a gang get all their nodes or none.",
    ),
    names.GANG_SIZE: (
        "pod",
        "Number of pods that its gang needs, for gangs of every tool. `1`: the pods are no gang.",
    ),
    names.GANG_TOPOLOGY: ("pod", "`zone`: all pods of its gang are planned in one zone."),
    names.DO_NOT_SYNC_TAINTS: ("Node label", "`true`: Joiner does not change the taints when it registers the Node."),
}
JOINER_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    names.NODEPOOL: ("Node, NodeClaim, EC2 tag", "Label: name of the NodePool."),
    names.CAPACITY_TYPE: ("Node, NodeClaim", "Label: `spot`, `on-demand` or `reserved`."),
    names.NODECLASS: ("Node, NodeClaim, EC2 tag", "Label: name of the EC2NodeClass."),
    names.REGISTERED: ("Node", "Label: `true` after the Node got its labels and taints."),
    names.INITIALIZED: ("Node", "Label: `true` after the Node was Ready with all its resources."),
    names.OWN_DELETION_COST: (
        "pod",
        "The deletion cost that Joiner has set. If that of Kubernetes differs, a user has set it, and Joiner keeps it.",
    ),
    names.NODEPOOL_HASH: ("NodePool, NodeClaim", "Hash of the NodePool's template. A different value causes drift."),
    names.NODEPOOL_HASH_VERSION: ("NodePool, NodeClaim", "Version of the algorithm of this hash."),
    names.CANARY_STATE: (
        "EC2NodeClass",
        "State of the canary: the last good image, the image under test and its nodes: docs/guide/images.md.",
    ),
    names.LAUNCH_FAILURES: (
        "EC2NodeClass",
        "Its nodes that did not register since the last node that did. Remove it to resume launches now.",
    ),
    names.NODECLASS_HASH: ("EC2NodeClass, NodeClaim", "Hash of the EC2NodeClass. A different value causes drift."),
    names.NODECLASS_HASH_VERSION: ("EC2NodeClass, NodeClaim", "Version of the algorithm of this hash."),
    names.INSTANCE_PROFILE: ("NodeClaim", "Instance profile with which the instance was launched."),
    names.TAGGED: ("NodeClaim", "The instance has the tags with the names of its Node and NodeClaim."),
    names.CLUSTER_NAME_TAGGED: ("NodeClaim", "The instance has the tag with the name of the cluster."),
    names.TERMINATION_TIMESTAMP: (
        "NodeClaim, Node",
        "End of the `terminationGracePeriod`: when the remaining pods are deleted.",
    ),
    names.MIN_VALUES_RELAXED: ("NodeClaim", "Whether `minValues` were relaxed for this NodeClaim."),
    names.PRICE_OVERLAY: ("NodeClaim", "A NodeOverlay changed its price."),
    names.CAPACITY_OVERLAY: ("NodeClaim", "A NodeOverlay changed its resources."),
    names.FAKE_POD: ("simulated pod", "A pod of a CapacityBuffer, which exists only in plans."),
    names.BUFFER: ("simulated pod", "Name of the CapacityBuffer."),
    names.BUFFER_NAMESPACE: ("simulated pod", "Namespace of the CapacityBuffer."),
    names.LAUNCH_GROUP: ("NodeClaim, EC2 tag", "NodeClaims with the same value are launched by one CreateFleet call."),
    names.NOMINATED_UNTIL: ("NodeClaim, Node", "Pods are expected on the node; it is not disrupted before this time."),
    names.NOMINATED_PODS: ("NodeClaim", "Digests of the pods for which it was created."),
    names.PLANNED_UNDER: ("NodeClaim", "Version of the planner lease under which it was created."),
    names.POD_DIGEST: ("NodeClaim", "Digest of the pods on the node, to detect changes."),
    names.COMMAND: (
        "NodeClaim",
        "The disruption command whose nodes it replaces: `joiner explain command COMMAND` shows it.",
    ),
    names.SCHEDULED_SCALE: (
        "Deployment, StatefulSet",
        "Its replicas before and while a schedule scales it. Removed when it is scaled back.",
    ),
    names.SURGE_DRAIN_RESTART: (
        "pod template of a Deployment, pod",
        "The disruption command that restarted the Deployment, and the time of its proposal.",
    ),
    names.ENDS_AT: ("Node", "When EC2 reclaims the instance."),
    names.GANG_RETRIES: ("NodePool", "Gangs whose nodes were returned, and when they may be launched again, as JSON."),
    names.PLANNED_GANGS: ("NodeClaim", "Incomplete gangs that it was created for, with their sizes, as JSON."),
    names.EARLY_ENDS: ("NodePool", "Instances that EC2 ended before their nodes registered, with the times."),
    names.REGISTRATION_HEALTH: ("NodePool", "Which of its last four NodeClaims failed to register."),
    names.AT_RISK: ("Node", "Taint after a rebalance recommendation, with the rebalance policy `cordon` or `replace`."),
    names.DISRUPTED_TAINT: ("Node", "Taint: the node is being removed, so no new pods are scheduled on it."),
    names.UNREGISTERED_TAINT: ("Node", "Taint until the node is registered."),
    names.TERMINATION_FINALIZER: ("NodeClaim, Node", "Finalizer, removed after the instance is terminated."),
    names.NODECLASS_FINALIZER: ("EC2NodeClass", "Finalizer, removed after the last NodeClaim is deleted."),
    names.EXCLUDE_BALANCERS: ("Node", "Label: load balancers send no new traffic to a node that is being removed."),
}
_TABLE_HEADS = ("Key", "On", "Meaning")
_WELL_KNOWN_INTRODUCTION: Final = (
    "Pods can select these keys although their NodePool does not define them. Pods can also use the older spellings."
)


def render_label_pages() -> dict[str, str]:
    """Render the page of all keys, by file name."""
    well_known_table = render_table(
        ("Key", "Older spellings"),
        ((format_code(key), _format_older_spellings(key)) for key in sorted(names.WELL_KNOWN)),
    )
    return {
        "labels.md": render_page(
            "Labels, annotations, taints",
            f"## What you write\n\nWrite numbers and `true` in quotes.\n\n{_render_table(USER_KEYS)}",
            f"## What Joiner writes\n\nDo not change these.\n\n{_render_table(JOINER_KEYS)}",
            f"## Well-known labels\n\n{_WELL_KNOWN_INTRODUCTION}\n\n{well_known_table}",
        )
    }


def _render_table(rows: Mapping[str, tuple[str, str]]) -> str:
    return render_table(_TABLE_HEADS, ((format_code(key), *cells) for key, cells in rows.items()))


def _format_older_spellings(key: str) -> str:
    return ", ".join(map(format_code, _list_older_spellings(key)))


def _list_older_spellings(key: str) -> Iterable[str]:
    return sorted(
        older_spelling for older_spelling in OLDER_SPELLINGS if names.normalize_label_key(older_spelling) == key
    )


OLDER_SPELLINGS: Final = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
)
