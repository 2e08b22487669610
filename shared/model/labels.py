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
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
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

TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
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
