"""A script as a value: the initial objects, and the events by time. A seed always gives the same script.

Nothing is random: every choice is derived from the words that identify it.
"""

from typing import Literal

import msgspec

from sim.fault_simulation.events.script_events import USER_ACTION_TYPES, AnyEvent
from sim.fault_simulation.features.feature_setup import FeatureSetup


class ScriptSetup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The objects that exist before the first event."""

    limit_cpu: int = 64
    budget: int = 1
    consolidate_after: str = "30s"
    policy: str = "WhenEmptyOrUnderutilized"
    termination_grace_period: str = msgspec.field(default="", name="grace")
    """terminationGracePeriod of the nodes; empty: none."""
    expire_after: str = "Never"
    graceful_expiration: str = msgspec.field(default="", name="graceful")
    """How long expired nodes of the main NodePool are replaced gracefully before they are deleted; empty: not."""
    allows_spot: bool = msgspec.field(default=True, name="spot")
    replicas: tuple[tuple[str, int], ...] = ()
    """By name of the Deployment or StatefulSet; see `sim.fault_simulation.events.script_manifests`."""
    budget_percent: str = msgspec.field(default="", name="percent")
    """A second budget of the NodePool, such as ``30%``."""
    closed_after_minutes: int = msgspec.field(default=0, name="closed")
    """Minutes until a budget schedule forbids disruptions of its nodes for five minutes; 0: no such budget."""
    rebalance_policy: Literal["", "ignore", "cordon", "drain"] = msgspec.field(default="", name="rebalance")
    """The NodePool's policy for rebalance recommendations."""
    second_pool_cpu: int = msgspec.field(default=0, name="second_cpu")
    """CPU limit of a second NodePool, which is preferred; 0: no second NodePool."""
    static_replicas: int = msgspec.field(default=0, name="static")
    """Initial replicas of the static NodePool."""
    has_static: bool = False
    reserved_count: int = msgspec.field(default=0, name="reserved")
    """Reserved m5.xlarge instances in the first zone."""
    has_agent: bool = msgspec.field(default=False, name="agent")
    """Whether every node runs a DaemonSet pod."""
    reaction: Literal["tick", "watch", "logs"] = "tick"
    has_neighbor: bool = msgspec.field(default=False, name="neighbour")
    """Whether another cluster has an instance in the account."""
    has_open_answers: bool = msgspec.field(default=False, name="open")
    """Whether the seed selects the answers that AWS's documentation leaves open."""
    has_surge_drain: bool = msgspec.field(default=False, name="surge")
    """Whether the main NodePool requests surge drains, and moved pods are checked."""
    zonal_shift: Literal["off", "on", "drain"] = "off"
    """The setting `zonal-shift`; if it is not `off`, zonal shift is enabled for the cluster."""
    spot_share_percent: str = msgspec.field(default="", name="share")
    """Spot share of the main NodePool, above one on-demand node; empty: none."""
    scheduled_values: str = msgspec.field(default="", name="window")
    """Values of the main NodePool in a window of its schedule, such as ``paused=Underutilized``; empty: no schedule."""
    features: FeatureSetup = FeatureSetup()


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The initial objects and the events of one run."""

    seed: int
    """Seed of the world: boot times, prices, order of messages."""
    setup: ScriptSetup = msgspec.field(name="setting")
    length_seconds: int = msgspec.field(name="length")
    """Seconds until the last event has ended, faults included."""
    events: tuple[AnyEvent, ...]
    """By time."""

    def list_faults(self) -> tuple[AnyEvent, ...]:
        """Return the events that are not normal user actions."""
        return tuple(event for event in self.events if not isinstance(event, USER_ACTION_TYPES))


def encode_script(script: Script) -> str:
    """Return *script* as one line of JSON, for storage."""
    return msgspec.json.encode(script).decode()


def decode_script(line: str) -> Script:
    """Decode what `encode_script` returned.

    Raises:
        msgspec.ValidationError: the line is not a script.
    """
    return msgspec.json.decode(line, type=Script)
