"""The label keys, annotations and other strings of Karpenter, Kubernetes and EC2; classification of keys."""

from typing import Final

NODEPOOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
NODECLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
RESERVATION_ID: Final = "karpenter.k8s.aws/capacity-reservation-id"
RESERVATION_TYPE: Final = "karpenter.k8s.aws/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE: Final = "karpenter.k8s.aws/capacity-reservation-interruptible"
TENANCY: Final = "karpenter.k8s.aws/instance-tenancy"
PLACEMENT_GROUP: Final = "karpenter.k8s.aws/placement-group-id"
PARTITION: Final = "karpenter.k8s.aws/placement-group-partition"
GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
ACCELERATOR_COUNT: Final = "karpenter.k8s.aws/instance-accelerator-count"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
DO_NOT_CONSOLIDATE: Final = "karpenter.sh/do-not-consolidate"
"""Both are older spellings, on pods and on nodes, that are still respected."""
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Cluster Autoscaler's, on a pod: ``false`` protects it, if the setting honor-cluster-autoscaler-annotations is on."""
SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""Cluster Autoscaler's, on a Node: ``true`` excludes it from consolidation and emptiness, with the same setting."""
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
NODECLASS_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
NODECLASS_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"
TAGGED: Final = "karpenter.k8s.aws/tagged"
CLUSTER_NAME_TAGGED: Final = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
INSTANCE_PROFILE: Final = "karpenter.k8s.aws/instance-profile-name"
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
FAKE_POD: Final = "karpenter.sh/capacity-buffer-fake-pod"
BUFFER: Final = "karpenter.sh/capacity-buffer-name"
BUFFER_NAMESPACE: Final = "karpenter.sh/capacity-buffer-namespace"
PRICE_OVERLAY: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY: Final = "karpenter.sh/capacity-overlay-applied"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LAUNCH_GROUP: Final = "joiner.dev/launch-group"
"""Joiner's: NodeClaims with the same value are launched by one CreateFleet; also an EC2 tag."""
NOMINATED_UNTIL: Final = "joiner.dev/nominated-until"
"""Joiner's, on a Node or NodeClaim: RFC 3339; pods are nominated there, so it is not disrupted before."""
POD_DIGEST: Final = "joiner.dev/pod-digest"
"""Joiner's, on a NodeClaim: digest of the pods bound to its node, to detect pod events without a watch."""
NOMINATED_PODS: Final = "joiner.dev/nominated-pods"
"""Joiner's, on a NodeClaim: marks of the pods it is launched for, so that no pod is planned for twice."""
COMMAND: Final = "joiner.dev/command"
"""Joiner's, on a NodeClaim: id of the disruption command that it is a replacement for."""
PLANNED_UNDER: Final = "joiner.dev/planned-under"
"""Joiner's, on a NodeClaim: version of the planner's lease under which it was created."""
ENDS_AT: Final = "joiner.dev/ends-at"
"""Joiner's, on a Node: RFC 3339; when EC2 reclaims its instance, according to an interruption message."""
REBALANCE_POLICY: Final = "joiner.dev/rebalance-policy"
"""Joiner's, on a NodePool: the reaction to a rebalance recommendation: ``ignore`` (default), ``cordon``, ``replace`` or
``drain``.
"""
REBALANCE_POLICIES: Final = ("ignore", "cordon", "replace", "drain")
ZONE_BALANCE: Final = "joiner.dev/zone-balance-percent"
"""Joiner's, on a NodePool: how many percent more a node may cost for an even number of nodes in each zone."""
SPOT_SHARE: Final = "joiner.dev/spot-share-percent"
"""Joiner's, on a NodePool or a pod: how much of it may be Spot, above the on-demand base; parsed by
`karpenter.spot_share`.
"""
ON_DEMAND_BASE: Final = "joiner.dev/on-demand-base"
"""Joiner's, on the same objects: how many nodes, vCPU or pods are on-demand before the share counts."""
SPOT_SHARE_UNIT: Final = "joiner.dev/spot-share-unit"
"""Joiner's, on a NodePool: what its share counts: ``nodes`` (default) or ``vcpu``."""
AT_RISK: Final = "joiner.dev/rebalance-recommended"
"""Joiner's, a taint on a Node that is cordoned after a rebalance recommendation: no new pods are scheduled there."""
OWN_DELETION_COST: Final = "joiner.dev/pod-deletion-cost"
"""Joiner's, on a pod: the deletion cost that Joiner set; if that of Kubernetes differs, a user has set it."""
REGISTRATION_HEALTH: Final = "joiner.dev/registration-health"
"""Joiner's, on a NodePool: its NodeClaims that recently failed to register, as JSON."""
EARLY_ENDS: Final = "joiner.dev/early-ends"
"""Joiner's, on a NodePool: when EC2 ended instances before their nodes registered, by instance id, as JSON."""
DISRUPTION_PAUSED: Final = "joiner.dev/disruption-paused"
"""Joiner's, on a NodePool or the Namespace kube-system: paused disruption reasons; parsed by `karpenter.pause`."""
LAUNCHES_PAUSED: Final = "joiner.dev/launches-paused"
"""Joiner's, on the same objects: no node is launched."""
DISRUPTION_RESUMED: Final = "joiner.dev/disruption-resumed"
"""Joiner's, on a NodePool: RFC 3339; failures before that instant do not pause disruption any more."""
SURGE_DRAIN: Final = "joiner.dev/surge-drain"
"""Joiner's, on a NodePool or Deployment: ``true`` or ``false``; whether a drain starts new pods first."""
SURGE_DRAIN_RESTART: Final = "joiner.dev/surge-drain-restart"
"""Joiner's, on the pod template of a Deployment: the disruption command that restarted it, and when it was proposed."""

MINIMUM_SAVINGS_USD: Final = "joiner.dev/minimum-savings-usd-per-hour"
MINIMUM_SAVINGS_PERCENT: Final = "joiner.dev/minimum-savings-percent"
"""Joiner's, both on a NodePool: its nodes are consolidated only for so much savings, or such a share of their cost."""
EVICTION_PRICE: Final = "joiner.dev/eviction-price-usd"
"""Joiner's, on a NodePool: the price of evicting a pod from its nodes, in USD; default: that of the deployment."""
LIMIT_USD: Final = "joiner.dev/limit-usd-per-hour"
"""Joiner's, on a NodePool: the limit of its nodes in USD per hour; parsed by `karpenter.money_limit`."""
CONSOLIDATION_MODE: Final = "joiner.dev/consolidation-mode"
"""Joiner's, on a NodePool: ``delete-only``: consolidation launches no replacements; default ``delete-and-replace``."""
UTILIZATION_THRESHOLD: Final = "joiner.dev/utilization-threshold"
"""Joiner's, on a NodePool: a percentage; nodes that use more of their allocatable resources are not consolidated."""
GRACEFUL_EXPIRATION: Final = "joiner.dev/graceful-expiration"
"""Joiner's, on a NodePool: how long after expireAfter nodes are replaced as drifted before they expire forcefully."""
BUDGET_TIME_ZONE: Final = "joiner.dev/budget-time-zone"
"""Joiner's, on a NodePool: the time zone of the schedules of its budgets and windows; default UTC."""
DISRUPTION_WINDOWS: Final = "joiner.dev/disruption-windows"
"""Joiner's, on a NodePool: ``0 22 * * mon-fri 8h; …``: its nodes are disrupted only in these windows."""
IMAGE_SOAK: Final = "joiner.dev/image-soak"
"""Joiner's, on a NodePool: a duration; how long one node runs a new image before the other nodes follow."""
IMAGE_MINIMUM_AGE: Final = "joiner.dev/image-minimum-age"
"""Joiner's, on an EC2NodeClass: a duration; how long Joiner must know a new image before it launches nodes with it."""
CANARY: Final = "joiner.dev/canary"
"""Joiner's, on an EC2NodeClass: ``nodes=2 soak=1h``; how many nodes test a new image or launch configuration first."""
CANARY_STATE: Final = "joiner.dev/canary-state"
"""Joiner's, on an EC2NodeClass: its new images and launch configuration, and their results, as JSON."""
CANARY_APPROVED: Final = "joiner.dev/canary-approved"
CANARY_REJECTED: Final = "joiner.dev/canary-rejected"
"""Joiner's, both on an EC2NodeClass: images and hashes whose result an operator has set, separated by commas."""
PAUSE_AFTER_FAILURES: Final = "joiner.dev/pause-launches-after-failures"
"""Joiner's, on an EC2NodeClass: a number; after so many nodes that did not register, one node at a time is launched."""
LAUNCH_FAILURES: Final = "joiner.dev/launch-failures"
"""Joiner's, on an EC2NodeClass: its nodes that did not register since the last node that did, as JSON."""
EXPIRY_JITTER: Final = "joiner.dev/expiry-jitter-percent"
"""Joiner's, on a NodePool: nodes expire earlier by up to this percentage of expireAfter, each by a different part."""
DEVICES: Final = "joiner.dev/devices"
"""On a NodeOverlay: the devices that its nodes publish, as JSON."""
SCHEDULE: Final = "joiner.dev/schedule"
"""Joiner's, on a NodePool or CapacityBuffer: windows with other values; parsed by `karpenter.schedule_grammar`."""
SCHEDULE_TIME_ZONE: Final = "joiner.dev/schedule-time-zone"
"""Joiner's, on the same objects: the time zone of the schedule; default UTC."""
GANG: Final = "joiner.dev/gang"
"""Joiner's, on a pod: the name of its gang, whose pods get all their nodes or none; parsed by `gangs.gang`."""
GANG_SIZE: Final = "joiner.dev/gang-size"
"""Joiner's, on a pod of a gang: the number of pods that the gang needs; 1: the pod is planned alone."""
GANG_TOPOLOGY: Final = "joiner.dev/gang-topology"
"""Joiner's, on a pod of a gang: ``zone``: all pods of the gang are planned in one zone."""
PLANNED_GANGS: Final = "joiner.dev/planned-gangs"
"""Joiner's, on a NodeClaim: the incomplete gangs that it was created for, and their sizes, as JSON."""
GANG_RETRIES: Final = "joiner.dev/gang-retries"
"""Joiner's, on a NodePool: gangs whose nodes were returned, and when they may be launched again, as JSON."""
SCHEDULED_SCALE: Final = "joiner.dev/scheduled-scale"
"""Joiner's, on a Deployment or StatefulSet: its replicas before and while a schedule scales it."""
VOLUNTARY_DISRUPTION: Final = "karpenter.sh/voluntary-disruption"
"""On a Node or NodeClaim, ``drifted``: replace it as if it had drifted; set by older Karpenter versions."""

TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
NODECLASS_FINALIZER: Final = "karpenter.k8s.aws/termination"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"

HASH_VERSION: Final = "v3-joiner1"
NODECLASS_HASH_VERSION_VALUE: Final = "v6-joiner1"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"

AWS_PREFIX: Final = "karpenter.k8s.aws/"
AWS_WELL_KNOWN: Final = frozenset(
    AWS_PREFIX + name
    for name in (
        "capacity-reservation-id",
        "capacity-reservation-interruptible",
        "capacity-reservation-type",
        "ec2nodeclass",
        "instance-accelerator-count",
        "instance-accelerator-manufacturer",
        "instance-accelerator-name",
        "instance-capability-flex",
        "instance-category",
        "instance-cpu",
        "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-ebs-bandwidth",
        "instance-encryption-in-transit-supported",
        "instance-family",
        "instance-generation",
        "instance-gpu-count",
        "instance-gpu-manufacturer",
        "instance-gpu-memory",
        "instance-gpu-name",
        "instance-hypervisor",
        "instance-local-nvme",
        "instance-memory",
        "instance-network-bandwidth",
        "instance-size",
        "instance-tenancy",
        "nitro-sandbox",
        "placement-group-id",
        "placement-group-partition",
    )
)
WELL_KNOWN: Final = AWS_WELL_KNOWN | {
    NODEPOOL, CAPACITY_TYPE, ZONE, REGION, ZONE_ID, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD
}  # fmt: skip
"""Keys that a template may leave undefined and a pod may still require."""

_CURRENT_KEY_BY_ALIAS: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "topology.ebs.csi.aws.com/zone": ZONE,
}


def normalize_label_key(key: str) -> str:
    """Return the current spelling of *key*.

    >>> normalize_label_key("beta.kubernetes.io/arch")
    'kubernetes.io/arch'
    """
    return _CURRENT_KEY_BY_ALIAS.get(key, key)


def is_restricted(key: str) -> bool:
    """Return whether *key* must not be required: the hostname, and Karpenter's domains except their well-known keys.

    >>> is_restricted("karpenter.sh/registered"), is_restricted("karpenter.sh/capacity-type"), is_restricted("a/b")
    (True, False, False)
    """
    if key == HOSTNAME:
        return True
    domain = key.rpartition("/")[0]
    is_karpenter_domain = domain in ("karpenter.sh", "karpenter.k8s.aws") or domain.endswith(
        (".karpenter.sh", ".karpenter.k8s.aws")
    )
    return is_karpenter_domain and key not in WELL_KNOWN
