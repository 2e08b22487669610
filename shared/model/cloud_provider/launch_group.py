"""The launch group: NodeClaims that share one CreateFleet request."""

from datetime import datetime

import msgspec

from shared.model.core.labels import NODEPOOL
from shared.model.ec2.fleet import FleetRequest, FleetResult
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim


class LaunchGroup(msgspec.Struct, frozen=True, kw_only=True):
    """NodeClaims launched by one CreateFleet, as recorded before it was sent."""

    name: str
    claims: tuple[str, ...]
    """Names of the NodeClaims, sorted."""
    uids: tuple[str, ...] = ()
    """UIDs of the NodeClaims in the same order, because a name can be used again; empty if they were not recorded."""
    request: FleetRequest
    """Sent again, it is the same idempotent call."""
    templates: tuple[LaunchTemplate, ...]
    created_at: datetime
    node_class_hash: str = ""
    """Hash of the node class at the time of the request; "" if it was not recorded."""
    unconfirmed_since: datetime | None = None
    """When EC2 first responded to a repeated request without saying what the original request launched."""
    result: FleetResult | None = None
    """The response of EC2, once recorded: instance number i belongs to NodeClaim number i."""

    def is_for(self, claim: NodeClaim) -> bool:
        """Return whether the group was recorded for *claim*, not for an earlier NodeClaim with the same name."""
        if claim.name not in self.claims:
            return False
        index = self.claims.index(claim.name)
        return index >= len(self.uids) or self.uids[index] == claim.meta.uid

    def list_served_claims(self) -> tuple[str, ...]:
        """Return the claims that got an instance from EC2: the first ones, one per instance."""
        return self.claims[: len(self.result.instances)] if self.result is not None else ()


def get_node_pool_name(request: FleetRequest) -> str:
    """Return the NodePool that *request* is for, from its tag."""
    return dict(request.tags).get(NODEPOOL, "")
