"""A play as a value: what stands before it, and what happens, by time. A seed names one script, for ever the same.

Nothing here is random: every choice is drawn from the words that name it.
"""

from typing import Literal

import msgspec

from sim.chaos.events import WORK, AnyEvent


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
    """Of each Deployment and StatefulSet, by name; see `sim.chaos.manifests`."""
    percent: str = ""
    """A second budget of the NodePool, such as ``30%``."""
    closed: int = 0
    """For five minutes after so many, none of its nodes may be disrupted: a budget by schedule; 0: there is none."""
    rebalance: Literal["", "ignore", "cordon", "drain"] = ""
    """What the NodePool wants done about a rebalance recommendation."""
    second_cpu: int = 0
    """The limit of a second NodePool, which is preferred; 0: there is none."""
    static: int = 0
    """Replicas of a static NodePool, at first."""
    has_static: bool = False
    reserved: int = 0
    """How many m5.xlarge are reserved in the first zone."""
    agent: bool = False
    """Whether every node runs a DaemonSet's pod."""
    reaction: Literal["tick", "watch", "logs"] = "tick"
    neighbour: bool = False
    """Whether another cluster has a machine in the account."""


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
