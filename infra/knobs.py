"""What may be chosen for a deployment, and what is chosen when nobody says.

Each knob is a context value named `joiner:` and its field with hyphens:
``cdk deploy -c joiner:cluster=prod -c joiner:log-days=7``. cdk.json lists them all; the command line overrules it.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from shared.settings import gates_from

CLUSTER_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,59}")
"""EKS allows 100 characters; SQS gives a queue 80, of which ours need 20."""

FUSES: Final = (
    "launch_nodes_per_minute",
    "launch_usd_per_hour",
    "launch_pool_nodes_per_minute",
    "launch_pool_usd_per_hour",
)
NUMBER: Final = re.compile(r"[0-9]+")
"""Whole dollars, whole nodes."""


class Knobs(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """One deployment's choices; lists are comma-separated, as a command line has them."""

    cluster: str = "demo"
    """The EKS cluster's name; one stack serves one cluster."""
    kube_endpoint: str = ""
    """Empty: asked from eks:DescribeCluster."""
    mode: str = "active"
    """`plan` decides and reports, and changes nothing."""
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    feature_gates: str = ""
    """Like ``NodeOverlay=true,StaticCapacity=true``."""
    scheduler_config: str = ""
    """Karpenter's own: ``podTopologySpread.defaultConstraints``, as JSON or YAML."""
    vm_memory_overhead_percent: str = "0.075"
    reserved_enis: str = "0"
    launch_nodes_per_minute: str = "2000"
    """How many nodes the cluster may start within a minute: beyond, the launch breaker holds them back; 0: any."""
    launch_usd_per_hour: str = "2000"
    """What it may start within an hour, at its price per hour; 0: any."""
    launch_pool_nodes_per_minute: str = "1000"
    """The same for each NodePool."""
    launch_pool_usd_per_hour: str = "1000"
    log_days: int = 30
    journal_days: int = 30
    """How long `explain` and replay can look back."""
    subnets: str = ""
    """Where the functions get network interfaces; needed only if the API server has no public endpoint."""
    security_groups: str = ""
    """Of those interfaces."""
    node_roles: str = ""
    """Names of further roles that nodes may have: those of the instance profiles that an EC2NodeClass names itself."""
    ssm_parameters: str = ""
    """Names of private image parameters; the public ones under /aws/service may always be read."""
    alarm_topic: str = ""
    """ARN of an SNS topic that hears of alarms."""

    def __post_init__(self) -> None:
        """Refuse what would fail only while deploying.

        Raises:
            ValueError: a value cannot be deployed.
        """
        if not CLUSTER_NAME.fullmatch(self.cluster):
            raise ValueError(f"joiner:cluster is {self.cluster!r}: want {CLUSTER_NAME.pattern}")
        if self.mode not in ("active", "plan"):
            raise ValueError(f"joiner:mode is {self.mode!r}: want active or plan")
        gates_from(self.feature_gates)
        for fuse in FUSES:
            _check_number(fuse, getattr(self, fuse))
        if bool(self.subnets) != bool(self.security_groups):
            raise ValueError("joiner:subnets and joiner:security-groups go together")

    @classmethod
    def from_context(cls, value_of: Callable[[str], object]) -> "Knobs":
        """Read a context, *value_of* a key, None if it is missing; the knob then has its default.

        Raises:
            msgspec.ValidationError: a number is none.
            ValueError: a value cannot be deployed.
        """
        names = cls.__struct_encode_fields__
        context = {name: value for name in names if (value := value_of(f"joiner:{name}")) is not None}
        if config := context.get("scheduler-config"):
            context["scheduler-config"] = as_json(config)
        return msgspec.convert(context, cls, strict=False)


def _check_number(field: str, text: str) -> None:
    """Refuse a fuse that is no number, or below 0.

    Raises:
        ValueError: the message names the knob.
    """
    if not NUMBER.fullmatch(text):
        raise ValueError(f"joiner:{field.replace('_', '-')} is {text!r}: want a number, 0 for any")


def as_json(config: object) -> str:
    """Answer the scheduler's configuration as one line of JSON: the functions have no reader of YAML.

    >>> as_json("podTopologySpread: {defaultConstraints: []}")
    '{"podTopologySpread":{"defaultConstraints":[]}}'

    Raises:
        ValueError: it is neither JSON nor YAML, or no map.
    """
    try:
        read = msgspec.convert(_decoded(config) if isinstance(config, str) else config, dict[str, object])
    except msgspec.ValidationError:
        raise ValueError("joiner:scheduler-config is no map: want podTopologySpread: {...}") from None
    except (msgspec.DecodeError, ImportError) as error:
        raise ValueError(f"joiner:scheduler-config is neither JSON nor YAML: {error}") from None
    return msgspec.json.encode(read).decode()


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.yaml.decode(text)


def listed(value: str) -> list[str]:
    """Answer the items of a comma-separated *value*.

    >>> listed("a, b,"), listed("")
    (['a', 'b'], [])
    """
    return [item.strip() for item in value.split(",") if item.strip()]
