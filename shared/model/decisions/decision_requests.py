"""Requests of a decision: what it needs done or must know before it can decide the next step.

A decision is a generator. It yields a request, is sent the answer, and returns its result. It has no other access to
the outside, so the same answers give the same requests: a cycle answers from AWS and Kubernetes, a replay from the
record.
"""

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from shared.model.cloud_provider.cluster_group import GroupAmount
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.decisions.action import Action, LaunchInstances
from shared.model.decisions.command import CommandState
from shared.model.karpenter.node_class import EC2NodeClass

ResultT = TypeVar("ResultT")


class PerformActions(msgspec.Struct, frozen=True, kw_only=True):
    """Perform *actions*; the answer is the outcome of each."""

    actions: tuple[Action, ...]
    is_guarded: bool = False
    """Perform them only while the cycle holds its lease."""
    is_last: bool = False
    """Perform them only until the time limit of the invocation."""


class WriteCommandState(msgspec.Struct, frozen=True, kw_only=True):
    """Write the row of a command under the lease.

    The answer is the written CommandState, the Problem of a refused row, or None if another controller has the lease.
    """

    command_state: CommandState


class ObserveLaunches(msgspec.Struct, frozen=True, kw_only=True):
    """Read what may have changed before a launch; the answer is a `LaunchObservation`."""


class ReserveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Reserve the limits of NodePools, and of the group, for *launches*; the answer is `LimitConflicts`."""

    limit_reservations: tuple[LimitReservations, ...]
    launches: tuple[LaunchInstances, ...]
    group_amount: GroupAmount | None = None
    """What the cluster then uses of the limit of its group; None: it is not written."""


class FindSparedInstances(msgspec.Struct, frozen=True, kw_only=True):
    """Find instances that *actions* terminate as orphans but that may have a claim; the answer is `SparedInstances`."""

    actions: tuple[Action, ...]


class ListLaunchTemplates(msgspec.Struct, frozen=True, kw_only=True):
    """List the launch templates of the cluster; the answer is `ExistingTemplates`."""


class CheckCleanupDue(msgspec.Struct, frozen=True, kw_only=True):
    """Check whether launch templates are searched now, which counts as done then; the answer is `CleanupDue`."""


class ApplyOverlays(msgspec.Struct, frozen=True, kw_only=True):
    """Read NodeOverlays if they are enabled; the answer is the ClusterSnapshot with them and with its catalog."""


class QueryAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Query what the account has for *node_classes*; the answer is an `AccountAnswersRecord`."""

    node_classes: tuple[EC2NodeClass, ...]


DecisionRequest: TypeAlias = (
    PerformActions
    | WriteCommandState
    | ObserveLaunches
    | ReserveLimits
    | FindSparedInstances
    | ListLaunchTemplates
    | CheckCleanupDue
    | ApplyOverlays
    | QueryAccount
)
DecisionProcess: TypeAlias = Generator[DecisionRequest, Any, ResultT]
"""A decision: the type of each answer depends on the request, as its docstring says."""
