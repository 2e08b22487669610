"""What happens in a play: values, in the order of their time. A seed names one script, for ever the same.

Seconds count from the moment at which the stack has resolved its node classes and made its catalogue. What lasts ends
by itself. Nothing here is random: every choice is drawn from the words that name it.
"""

from typing import Final, Literal, TypeAlias

import msgspec

FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""Those that the stack has; interrupt is woken by messages only."""
When = Literal["before", "after"]
Port = Literal["kube", "ec2", "table", "bucket", "mailbox"]
Failing = Literal["conflict", "expired", "throttled", "unreachable", "lost", "refused"]
How = Literal["die", "stop", "spot", "rebalance", "maintenance"]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Something that happens *at* so many seconds, and *lasts* so many more, if it is something that lasts."""

    at: int
    lasts: int = 0

    @property
    def until(self) -> int:
        """When it is over."""
        return self.at + self.lasts


class Scale(Event, frozen=True, kw_only=True, tag="scale"):
    """Somebody scales a Deployment."""

    name: str
    replicas: int


class Recreate(Event, frozen=True, kw_only=True, tag="recreate"):
    """Somebody deletes a Deployment's pods; its controller makes others."""

    name: str


class Drift(Event, frozen=True, kw_only=True, tag="drift"):
    """Somebody changes the NodePool's template, so that all of its nodes are drifted."""

    release: str


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
    | Kill
    | Pause
    | Repeat
    | Messages
    | Trouble
    | Stale
    | Shortage
    | Lag
    | DeadBoot
    | Doom
    | Flap
    | ZoneDown
    | Skew
)
WORK: Final = (Scale, Recreate, Drift)


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands before anything happens."""

    limit_cpu: int = 64
    budget: int = 1
    consolidate_after: str = "30s"
    policy: str = "WhenEmptyOrUnderutilized"
    grace: str = ""
    """terminationGracePeriod of the machines, if they have one."""
    expire_after: str = "Never"
    spot: bool = True
    replicas: tuple[tuple[str, int], ...] = ()
    """Of each Deployment, by name; see `sim.chaos.manifests`."""


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A play."""

    seed: int
    """Of the world: boots, prices, order of messages."""
    setting: Setting
    length: int
    """Seconds until nothing happens any more, faults included."""
    events: tuple[AnyEvent, ...]
    """By time."""

    def faults(self) -> tuple[AnyEvent, ...]:
        """Answer the events that are nobody's wish."""
        return tuple(one for one in self.events if not isinstance(one, WORK))


def encoded(script: Script) -> str:
    """Answer *script* in one line of JSON, to be kept."""
    return msgspec.json.encode(script).decode()


def decoded(line: str) -> Script:
    """Read what `encoded` wrote.

    Raises:
        msgspec.ValidationError: it did not.
    """
    return msgspec.json.decode(line, type=Script)
