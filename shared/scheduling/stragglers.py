"""Claims of a planner that was overtaken: it may have made them when others had planned for the same pods already.

Nothing fences a write to the API server: who stands still between its look at the lease and the write makes a claim
of a snapshot that is long over. Each claim bears the version of the lease that it was decided under. One of a lease
that was never given back is not counted on as long as it has no instance: pods are planned for as if it were not
there. If it was needed the same claim is decided on again, for its name comes from the decision, and it stays;
else it goes before it is launched. docs/adr/0003 has the rest.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from shared.model.action import Action, CreateNodeClaim, DeleteObject
from shared.model.cluster import Cluster
from shared.model.labels import COMMAND, PLANNED_UNDER
from shared.model.nodes import NodeClaim


def stragglers(cluster: Cluster, overtaken: Collection[int]) -> tuple[NodeClaim, ...]:
    """Answer the claims that may have come late, in their order: decided under one of the leases *overtaken*.

    Replacements are what their command says of them, and what a launch was written down for has its instance soon.
    """
    versions = {str(one) for one in overtaken}
    return tuple(
        claim
        for claim in (cluster.node_claims if versions else ())
        if claim.meta.annotation(PLANNED_UNDER) in versions
        and not claim.is_launched()
        and not claim.is_deleting()
        and not claim.meta.annotation(COMMAND)
        and not any(group.is_for(claim) for group in cluster.launch_groups)
    )


def without(cluster: Cluster, late: Iterable[NodeClaim]) -> Cluster:
    """Answer *cluster* as if the claims *late* were not there."""
    names = {one.name for one in late}
    left = tuple(one for one in cluster.node_claims if one.name not in names)
    return msgspec.structs.replace(cluster, node_claims=left) if names else cluster


def given_up(late: Iterable[NodeClaim], decided: Iterable[Action]) -> Iterator[Action]:
    """Take back those of *late* that were not *decided* on again."""
    wanted = {one.claim.name for one in decided if isinstance(one, CreateNodeClaim)}
    why = "its planner was overtaken, and its pods have other places"
    for one in late:
        if one.name not in wanted:
            yield DeleteObject(kind="NodeClaim", name=one.name, uid=one.meta.uid, why=why)
