"""NodePools: which nodes may be launched, how many, and when they may be disrupted."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, Pairs
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import NONE, Resources
from shared.model.core.taints import Taint
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.schedule import Schedule

DEFAULT_EXPIRE_AFTER: Final = timedelta(hours=720)
CONSOLIDATION_POLICIES: Final = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes of a NodePool may be disrupted at a time, and when the budget is active."""

    nodes: str = "10%"
    """A count, or a percentage of the NodePool's nodes, rounded up."""
    reasons: tuple[str, ...] | None = None
    """None: every reason; empty: no reason."""
    schedule: str = ""
    """Cron schedule in UTC; empty: always active."""
    duration: timedelta | None = None


class NodePool(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.sh/v1 NodePool; the fields of its template are direct fields here."""

    meta: ObjectMeta
    node_class: NodeClassRef
    labels: Pairs = ()
    annotations: Pairs = ()
    requirements: Requirements = ANYTHING
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: timedelta | None = DEFAULT_EXPIRE_AFTER
    """None: never."""
    termination_grace_period: timedelta | None = None
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: timedelta | None = timedelta()
    """None: never."""
    budgets: tuple[DisruptionBudget, ...] = (DisruptionBudget(),)
    limits: Resources | None = None
    """Zeros are kept: a limit of zero allows none, a resource without a limit is unlimited."""
    weight: int = 0
    replicas: int | None = None
    """None: dynamic; a number: static capacity."""
    usage: Resources = NONE
    """status.resources, as last written."""
    conditions: tuple[Condition, ...] = ()
    schedule: Schedule | None = None
    """The annotation joiner.dev/schedule; `state.schedules` applies it."""
    scheduled_pauses: tuple[str, ...] = ()
    """What the open windows of the schedule pause: `Launches`, and disruption reasons."""
    usual: "NodePool | None" = None
    """The NodePool without its schedule, while a window of the schedule is open."""

    @property
    def name(self) -> str:
        """The NodePool's name."""
        return self.meta.name
