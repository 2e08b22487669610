"""All ports of an invocation, with its settings, clock and memory."""

from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

import msgspec

from shared.ports.aws import (
    Ec2,
    Eks,
    ParameterStore,
    PayerAccount,
    PricingService,
    SavingsPlansService,
    ZonalShiftService,
)
from shared.ports.kubernetes import Kube
from shared.ports.messaging import EventBus, MessageQueue, Topic
from shared.ports.remote_write import RemoteWrite
from shared.ports.storage import Bucket, Table
from shared.ports.tracing import OpenSegment, open_no_segment
from shared.settings import Settings


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything outside, as one value that a handler passes on."""

    settings: Settings
    kube: Kube
    ec2: Ec2
    parameters: ParameterStore
    prices: PricingService
    eks: Eks
    mailbox: MessageQueue
    table: Table
    bucket: Bucket
    clock: Callable[[], datetime]
    """Current time, timezone-aware UTC; the trigger provides it."""
    group_table: Table | None = None
    """The table that the clusters of a group share; None: the cluster has no group."""
    savings_plans: SavingsPlansService | None = None
    """None: the Savings Plans of the account are not read."""
    zonal_shifts: ZonalShiftService | None = None
    """None: the zonal shifts of the cluster are not read."""
    payer: PayerAccount | None = None
    """None: no role of a payer account is configured."""
    topic: Topic | None = None
    """None: no topic is configured."""
    event_bus: EventBus | None = None
    """None: no event bus is configured."""
    remote_write: RemoteWrite | None = None
    """None: no endpoint for metrics is configured."""
    emit: Callable[[str], None]
    """Writes one line of JSON to the log: journal lines and EMF metrics."""
    name: str = ""
    """The invocation's request id: the owner of a lease."""
    is_cold_start: bool = False
    """Whether this is the first invocation of its container."""
    memory: MutableMapping[str, object] | None = None
    """Cache of this container across invocations, by key of the writer; None: there is none."""
    time_left: Callable[[], timedelta] | None = None
    """Remaining time of the invocation; None: unknown."""
    calls: Callable[[], Mapping[str, int]] | None = None
    """Number of calls to AWS by operation since the container started; None: not counted."""
    read_packaged_file: Callable[[str], bytes] | None = None
    """Reads a file that was packaged with the functions, OSError if there is none; None: no files are packaged."""
    max_parallel_calls: int = 1
    """How many calls to Kubernetes may run at once; 1: one after the other, as simulations need it to be repeatable."""
    open_segment: OpenSegment = open_no_segment
    """Opens a segment of the invocation's trace."""

    def trace(self, name: str, /, **annotations: str) -> AbstractContextManager[object]:
        """Measure a block as the segment *name* of the trace, if tracing is on."""
        return self.open_segment(name, annotations)
