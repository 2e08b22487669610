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
        '`"true"`: not disrupted by choice. On a pod also a duration from its start: `"2h"`. Expiry begins anyway.',
    ),
    names.DO_NOT_EVICT: ("pod", "Older spelling of do-not-disrupt."),
    names.DO_NOT_CONSOLIDATE: ("Node, NodeClaim", "Older spelling of do-not-disrupt."),
    names.POD_DELETION_COST: ("pod", "A number: the higher, the less gladly its node is disrupted."),
    names.VOLUNTARY_DISRUPTION: ("Node, NodeClaim", "`drifted`: replaced as if it had drifted, within budgets."),
    names.DISRUPTION_PAUSED: (
        "NodePool, Namespace kube-system",
        "`true`, or reasons like `Drifted,Underutilized`: not disrupted for these. `joiner pause` writes it.",
    ),
    names.LAUNCHES_PAUSED: (
        "NodePool, Namespace kube-system",
        "`true`: no new nodes. `joiner pause --launches` writes it.",
    ),
    names.DISRUPTION_RESUMED: ("NodePool", "An instant: what went wrong before it pauses nothing any more."),
    names.DISRUPTION_WINDOWS: (
        "NodePool",
        "Like `0 22 * * mon-fri 8h; 0 0 * * sat 48h`: disrupted by choice only then.",
    ),
    names.BUDGET_TIME_ZONE: ("NodePool", "In which schedules of its budgets and windows are read; else UTC."),
    names.MINIMUM_SAVINGS_USD: ("NodePool", "Consolidated only for so many dollars an hour."),
    names.MINIMUM_SAVINGS_PERCENT: ("NodePool", "Consolidated only for such a part of what the nodes cost."),
    names.IMAGE_SOAK: ("NodePool", "A duration: so long one node tries a new image before the others follow."),
    names.EXPIRY_JITTER: ("NodePool", "Nodes expire sooner by up to such a part of expireAfter, each by another."),
    names.REBALANCE_POLICY: ("NodePool", "`ignore` (default), `cordon` or `drain` where EC2 recommends a rebalance."),
    names.DO_NOT_SYNC_TAINTS: ("Node label", "`true`: taints are left as the node brought them."),
}
JOINER_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    names.NODEPOOL: ("Node, NodeClaim, EC2 tag", "Label: which NodePool."),
    names.CAPACITY_TYPE: ("Node, NodeClaim", "Label: `spot`, `on-demand` or `reserved`."),
    names.NODECLASS: ("Node, NodeClaim, EC2 tag", "Label: which EC2NodeClass."),
    names.REGISTERED: ("Node", "Label: `true` once labels and taints are on it."),
    names.INITIALIZED: ("Node", "Label: `true` once pods may rely on it."),
    names.NODEPOOL_HASH: ("NodePool, NodeClaim", "What nodes of the pool are made of; another value is drift."),
    names.NODEPOOL_HASH_VERSION: ("NodePool, NodeClaim", "How that was computed."),
    names.NODECLASS_HASH: ("EC2NodeClass, NodeClaim", "The same of the node class."),
    names.NODECLASS_HASH_VERSION: ("EC2NodeClass, NodeClaim", "How that was computed."),
    names.INSTANCE_PROFILE: ("NodeClaim", "What its machine was launched with."),
    names.TAGGED: ("NodeClaim", "Its machine has the tags of its node."),
    names.CLUSTER_NAME_TAGGED: ("NodeClaim", "The same of the tag of the cluster."),
    names.TERMINATION_TIMESTAMP: ("NodeClaim, Node", "When pods that are left are deleted: terminationGracePeriod."),
    names.MIN_VALUES_RELAXED: ("NodeClaim", "Whether minValues were given up for it."),
    names.PRICE_OVERLAY: ("NodeClaim", "A NodeOverlay changed its price."),
    names.CAPACITY_OVERLAY: ("NodeClaim", "A NodeOverlay changed its resources."),
    names.FAKE_POD: ("pod that there is not", "Headroom of a CapacityBuffer."),
    names.BUFFER: ("pod that there is not", "Whose headroom."),
    names.BUFFER_NAMESPACE: ("pod that there is not", "Whose headroom."),
    names.LAUNCH_GROUP: ("NodeClaim, EC2 tag", "Claims that share it are launched by one CreateFleet."),
    names.NOMINATED_UNTIL: ("NodeClaim, Node", "Pods are expected: not disrupted before."),
    names.NOMINATED_PODS: ("NodeClaim", "Marks of the pods it was made for."),
    names.PLANNED_UNDER: ("NodeClaim", "Version of the lease of planners under which it was decided."),
    names.POD_DIGEST: ("NodeClaim", "Digest of its pods, to notice that one came or went."),
    names.COMMAND: ("NodeClaim", "The disruption it replaces nodes for: `joiner explain command NAME`."),
    names.ENDS_AT: ("Node", "When EC2 takes the machine back."),
    names.EARLY_ENDS: ("NodePool", "When EC2 ended instances before their nodes registered, by instance id."),
    names.REGISTRATION_HEALTH: ("NodePool", "Which of its last claims did not join."),
    names.AT_RISK: ("Node", "Taint, where the rebalance policy is `cordon`."),
    names.DISRUPTED_TAINT: ("Node", "Taint: no new pods, it is going."),
    names.UNREGISTERED_TAINT: ("Node", "Taint until it is registered."),
    names.TERMINATION_FINALIZER: ("NodeClaim, Node", "Finalizer: gone once the machine is."),
    names.NODECLASS_FINALIZER: ("EC2NodeClass", "Finalizer: gone once its last NodeClaim is."),
    names.EXCLUDE_BALANCERS: ("Node", "Label: load balancers send nothing new to a node that goes."),
}
_TABLE_HEADS = ("Key", "On", "")
_WELL_KNOWN_INTRODUCTION: Final = (
    "Keys that a NodePool need not define for a pod to ask for them. Pods may use the older spellings too."
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
            f"## What you write\n\nA value is always a string: quote it.\n\n{_render_table(USER_KEYS)}",
            f"## What Joiner writes\n\nLeave these alone.\n\n{_render_table(JOINER_KEYS)}",
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
