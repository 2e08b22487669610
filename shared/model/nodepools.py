"""NodePools: what may be made, in what number, and when it may be taken away."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.model.nodes import NodeClassRef
from shared.model.objects import Condition, Meta, Pairs
from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import NONE, Resources
from shared.model.taints import Taint

EXPIRE_AFTER: Final = timedelta(hours=720)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes of a pool may be disrupted at a time, and when that holds."""

    nodes: str = "10%"
    """A count, or a percentage of the pool's nodes, rounded up."""
    reasons: tuple[str, ...] | None = None
    """None: every reason; empty: none."""
    schedule: str = ""
    """Cron, UTC; empty: always."""
    duration: timedelta | None = None


class NodePool(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.sh/v1 NodePool; the template's parts stand here without it."""

    meta: Meta
    node_class: NodeClassRef
    labels: Pairs = ()
    annotations: Pairs = ()
    requirements: Requirements = ANYTHING
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: timedelta | None = EXPIRE_AFTER
    """None: never."""
    termination_grace_period: timedelta | None = None
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: timedelta | None = timedelta()
    """None: never."""
    budgets: tuple[Budget, ...] = (Budget(),)
    limits: Resources | None = None
    """Zeros are kept: a limit of zero says that there may be none, a name that is missing is not limited."""
    weight: int = 0
    replicas: int | None = None
    """None: dynamic; a number: static."""
    usage: Resources = NONE
    """status.resources, as it was last written."""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name
