"""Superseded NodeClaims: created by a planner that had lost its lease.

The pods of such a NodeClaim may have been planned again since. Writes to the API server are not fenced: a planner that
stalls between its lease check and the write creates a NodeClaim from an outdated snapshot. Each NodeClaim has the
version of the lease under which it was decided. A NodeClaim of a lease that was never released does not count as long
as it has no instance: pods are scheduled as if it did not exist. If it is needed, the same NodeClaim is decided again,
because its name is derived from the decision, and it stays; otherwise it is deleted before it is launched. See
docs/adr/0003.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import COMMAND, PLANNED_UNDER
from shared.model.decisions.action import Action, CreateNodeClaim, DeleteObject
from shared.model.karpenter.node_claim import NodeClaim


def find_superseded_claims(cluster: ClusterSnapshot, lost_leases: Collection[int]) -> tuple[NodeClaim, ...]:
    """Return the NodeClaims that may have been created too late, in order: decided under one of *lost_leases*.

    Replacements are excluded because their command decides about them, and so are NodeClaims with a recorded launch,
    because their instance exists soon.
    """
    versions = {str(version) for version in lost_leases}
    return tuple(
        claim
        for claim in (cluster.node_claims if versions else ())
        if claim.meta.get_annotation(PLANNED_UNDER) in versions
        and not claim.is_launched()
        and not claim.is_deleting()
        and not claim.meta.get_annotation(COMMAND)
        and not any(group.is_for(claim) for group in cluster.launch_groups)
    )


def without_claims(cluster: ClusterSnapshot, superseded_claims: Iterable[NodeClaim]) -> ClusterSnapshot:
    """Return *cluster* without the NodeClaims *superseded_claims*."""
    names = {claim.name for claim in superseded_claims}
    remaining_claims = tuple(claim for claim in cluster.node_claims if claim.name not in names)
    return msgspec.structs.replace(cluster, node_claims=remaining_claims) if names else cluster


def delete_superseded_claims(
    superseded_claims: Iterable[NodeClaim], decided_actions: Iterable[Action]
) -> Iterator[Action]:
    """Delete those of *superseded_claims* that *decided_actions* do not create again."""
    confirmed_names = {action.claim.name for action in decided_actions if isinstance(action, CreateNodeClaim)}
    reason = "its planner lost its lease, and its pods were scheduled elsewhere"
    for claim in superseded_claims:
        if claim.name not in confirmed_names:
            yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=reason)
