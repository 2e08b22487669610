"""A node that may be launched in place of others, or why there is none."""

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.model.core.requirements import Requirements
from shared.model.decisions.placement import CheapestOffering


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be launched as a replacement."""

    open_node_claim: OpenNodeClaim
    requirements: Requirements
    type_mask: Mask
    cheapest: CheapestOffering
    worst_price_usd_per_hour: float
