"""What may happen in a play: what people do, and what goes wrong. What lasts ends by itself.

Seconds count from the moment at which the stack has resolved its node classes and made its catalogue.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from sim.cloud.machine import StatusCheck

FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""Those that the stack has; interrupt is woken by messages only."""
When = Literal["before", "after"]
Port = Literal["kube", "ec2", "table", "bucket", "mailbox"]
Failing = Literal["conflict", "expired", "throttled", "unreachable", "lost", "refused"]
How = Literal["die", "stop", "terminate", "spot", "rebalance", "maintenance", "called-off", "reservation"]
"""maintenance is announced; called-off: and taken back when it is over."""
Thing = Literal["nodes", "nodeclaims.karpenter.sh"]
Shape = Literal["unreadable", "unknown", "foreign", "gone", "again"]
"""again: one of the messages that came before comes once more."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Something that happens *at* so many seconds, and *lasts* so many more, if it is something that lasts."""

    at: int
    lasts: int = 0

    @property
    def until(self) -> int:
        """When it is over."""
        return self.at + self.lasts


class Scale(Event, frozen=True, kw_only=True, tag="scale"):
    """Somebody scales a Deployment or a StatefulSet."""

    name: str
    replicas: int


class Recreate(Event, frozen=True, kw_only=True, tag="recreate"):
    """Somebody deletes a Deployment's pods; its controller makes others."""

    name: str


class Drift(Event, frozen=True, kw_only=True, tag="drift"):
    """Somebody changes the NodePool's template, so that all of its nodes are drifted; or what types it may have."""

    release: str
    without: str = ""
    """A type that it may not have any more."""


class Retag(Event, frozen=True, kw_only=True, tag="retag"):
    """Somebody changes the tags of the EC2NodeClass, so that all of its nodes are drifted."""

    owner: str


class Release(Event, frozen=True, kw_only=True, tag="release"):
    """AWS publishes new images; nodes with the old ones are drifted."""


class Batch(Event, frozen=True, kw_only=True, tag="batch"):
    """Somebody starts a Job of so many pods that run for a while."""

    name: str
    pods: int
    seconds: int


class Restaff(Event, frozen=True, kw_only=True, tag="restaff"):
    """Somebody scales the static NodePool."""

    replicas: int


class Remove(Event, frozen=True, kw_only=True, tag="remove"):
    """Somebody deletes the second NodePool (its EC2NodeClass too, if *whole*), and applies it again afterwards."""

    whole: bool


class Erase(Event, frozen=True, kw_only=True, tag="erase"):
    """Somebody deletes a Node or a NodeClaim: the one at *which*, a share of all."""

    what: Thing
    which: float


class Kill(Event, frozen=True, kw_only=True, tag="kill"):
    """The *nth* call of *function* from then on is its last; only those at *site* count, if one is named."""

    function: str
    nth: int
    when: When
    site: str = ""


class Pause(Event, frozen=True, kw_only=True, tag="pause"):
    """Before or behind the *nth* call of *function* (at *site*) it stands still for *lasts* seconds, and it alone.

    *overtaker*: called the moment it stands still, by somebody who knows nothing of it.
    """

    function: str
    nth: int
    when: When
    site: str = ""
    overtaker: str = ""


class Repeat(Event, frozen=True, kw_only=True, tag="repeat"):
    """A function is called *times* in a row, as "at least once" allows."""

    function: str
    times: int


class Messages(Event, frozen=True, kw_only=True, tag="messages"):
    """Of the messages, shares are lost and doubled; the others are up to *late* seconds late, out of order."""

    lost: float
    doubled: float
    late: int


class Trouble(Event, frozen=True, kw_only=True, tag="trouble"):
    """A *share* of the calls of a port fails so; "lost": it is done, and the answer never comes."""

    port: Port
    fault: Failing
    share: float
    method: str = ""
    """Empty: all."""
    function: str = ""
    """Whose calls; empty: everybody's."""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A message comes to the interruption queue that is none, or nobody's, or too late, or was there before."""

    shape: Shape
    which: float
    """Of what there is to choose from."""


class Stale(Event, frozen=True, kw_only=True, tag="stale"):
    """Lists of the API server show what was true up to *behind* seconds ago."""

    behind: int


class Shortage(Event, frozen=True, kw_only=True, tag="shortage"):
    """EC2 has none left of a type (empty: of all) in a zone (empty: in all)."""

    instance_type: str
    zone: str
    capacity_type: Literal["", "on-demand", "spot"]


class Lag(Event, frozen=True, kw_only=True, tag="lag"):
    """DescribeInstances does not show an instance for so many *seconds* after its start."""

    seconds: int


class DeadBoot(Event, frozen=True, kw_only=True, tag="dead-boot"):
    """Machines of a type that are started then run, but never join."""

    instance_type: str


class Doom(Event, frozen=True, kw_only=True, tag="doom"):
    """Something happens to one living machine: the one at *which*, a share of all."""

    how: How
    which: float


class Flap(Event, frozen=True, kw_only=True, tag="flap"):
    """A node's kubelet hangs, and goes on afterwards."""

    which: float


class Impair(Event, frozen=True, kw_only=True, tag="impair"):
    """A machine's status check fails for a while; its kubelet knows nothing of it."""

    of: StatusCheck
    which: float


class SlowDetach(Event, frozen=True, kw_only=True, tag="slow-detach"):
    """Volumes take so many *seconds* to be detached."""

    seconds: int


class ZoneDown(Event, frozen=True, kw_only=True, tag="zone-down"):
    """All machines of a zone die, and no other can be had there."""

    zone: str


class Skew(Event, frozen=True, kw_only=True, tag="skew"):
    """The clock of *function* is so many *seconds* ahead of the others'."""

    function: str
    seconds: int


AnyEvent: TypeAlias = (
    Scale
    | Recreate
    | Drift
    | Retag
    | Release
    | Batch
    | Restaff
    | Remove
    | Erase
    | Kill
    | Pause
    | Repeat
    | Messages
    | Trouble
    | Notice
    | Stale
    | Shortage
    | Lag
    | DeadBoot
    | Doom
    | Flap
    | Impair
    | SlowDetach
    | ZoneDown
    | Skew
)
WORK: Final = (Scale, Recreate, Drift, Retag, Release, Batch, Restaff)
"""What people do and may do: nothing is excused by it."""


def name_of(event: AnyEvent) -> str:
    """Answer what kind of thing happens, as it is counted: ``Doom spot``, ``Trouble kube lost``."""
    words = [type(event).__name__]
    match event:
        case Doom():
            words += [event.how]
        case Trouble():
            words += [event.port, event.fault]
        case Notice():
            words += [event.shape]
        case Kill() | Pause():
            words += [event.when]
        case Impair():
            words += [event.of]
        case Erase():
            words += [event.what.partition(".")[0]]
        case _:
            pass
    return " ".join(words)
