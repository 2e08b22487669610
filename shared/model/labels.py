"""The exact strings of Karpenter, Kubernetes and EC2 that decisions read and write, and how keys are classed."""

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
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
DO_NOT_CONSOLIDATE: Final = "karpenter.sh/do-not-consolidate"
"""These two are older spellings, on pods and on nodes: they still hold."""
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
NODECLASS_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
NODECLASS_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"
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
"""Ours: claims that share it are launched by one CreateFleet; also an EC2 tag."""
NOMINATED_UNTIL: Final = "joiner.dev/nominated-until"
"""Ours, on a Node or NodeClaim: RFC 3339; pods are expected there, so it is not disrupted before."""
POD_DIGEST: Final = "joiner.dev/pod-digest"
"""Ours, on a NodeClaim: digest of the pods bound to its node, to notice pod events without a watch."""
NOMINATED_PODS: Final = "joiner.dev/nominated-pods"
"""Ours, on a NodeClaim: marks of the pods that it was made for, so that none of them is planned for twice."""
COMMAND: Final = "joiner.dev/command"
"""Ours, on a NodeClaim: id of the disruption that it is a replacement for."""
PLANNED_UNDER: Final = "joiner.dev/planned-under"
"""Ours, on a NodeClaim: version of the planner's lease under which it was made."""
ENDS_AT: Final = "joiner.dev/ends-at"
"""Ours, on a Node: RFC 3339; when EC2 takes its machine back, as an interruption said."""
REBALANCE_POLICY: Final = "joiner.dev/rebalance-policy"
"""Ours, on a NodePool: what a rebalance recommendation does to a node: ``ignore`` (else), ``cordon`` or ``drain``."""
AT_RISK: Final = "joiner.dev/rebalance-recommended"
"""Ours, a taint on a Node that is cordoned because EC2 recommends so: nobody new goes there."""
REGISTRATION_HEALTH: Final = "joiner.dev/registration-health"
"""Ours, on a NodePool: which of its claims did not join lately, as JSON."""
DISRUPTION_PAUSED: Final = "joiner.dev/disruption-paused"
"""Ours, on a NodePool or the Namespace kube-system: what is not to be disrupted; `shared.model.holds` reads it."""
LAUNCHES_PAUSED: Final = "joiner.dev/launches-paused"
"""Ours, at the same places: no node is made."""
DISRUPTION_RESUMED: Final = "joiner.dev/disruption-resumed"
"""Ours, on a NodePool: RFC 3339; what went wrong before that instant pauses nothing any more."""

MINIMUM_SAVINGS_USD: Final = "joiner.dev/minimum-savings-usd-per-hour"
MINIMUM_SAVINGS_PERCENT: Final = "joiner.dev/minimum-savings-percent"
"""Ours, on a NodePool, both: its nodes are consolidated only for so much, or such a part of what they cost."""
BUDGET_TIME_ZONE: Final = "joiner.dev/budget-time-zone"
"""Ours, on a NodePool: in which the schedules of its budgets and windows are read; UTC else."""
DISRUPTION_WINDOWS: Final = "joiner.dev/disruption-windows"
"""Ours, on a NodePool: ``0 22 * * mon-fri 8h; …``: its nodes are disrupted only then."""
IMAGE_SOAK: Final = "joiner.dev/image-soak"
"""Ours, on a NodePool: a duration; so long one node runs a new image before the others follow."""
EXPIRY_JITTER: Final = "joiner.dev/expiry-jitter-percent"
"""Ours, on a NodePool: by so much of expireAfter, at most, its nodes expire sooner, each by another part."""
VOLUNTARY_DISRUPTION: Final = "karpenter.sh/voluntary-disruption"
"""On a Node or NodeClaim, ``drifted``: it is to be replaced as if it had drifted; older Karpenters had it."""

TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
NODECLASS_FINALIZER: Final = "karpenter.k8s.aws/termination"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"

HASH_VERSION: Final = "v3-joiner1"
NODECLASS_HASH_VERSION_VALUE: Final = "v6-joiner1"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"

_AWS = "karpenter.k8s.aws/"
AWS_WELL_KNOWN: Final = frozenset(
    _AWS + name
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
"""Keys that a template may leave undefined and a pod may still ask for."""

_ALIASES: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "topology.ebs.csi.aws.com/zone": ZONE,
}


def normalised(key: str) -> str:
    """Answer today's spelling of *key*.

    >>> normalised("beta.kubernetes.io/arch")
    'kubernetes.io/arch'
    """
    return _ALIASES.get(key, key)


def is_restricted(key: str) -> bool:
    """Whether nobody may require *key*: the hostname, and Karpenter's own domain but for its well-known keys.

    >>> is_restricted("karpenter.sh/registered"), is_restricted("karpenter.sh/capacity-type"), is_restricted("a/b")
    (True, False, False)
    """
    if key == HOSTNAME:
        return True
    domain = key.rpartition("/")[0]
    ours = domain in ("karpenter.sh", "karpenter.k8s.aws") or domain.endswith((".karpenter.sh", ".karpenter.k8s.aws"))
    return ours and key not in WELL_KNOWN
