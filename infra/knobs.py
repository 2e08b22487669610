"""What may be chosen for a deployment, and what is chosen when nobody says.

Each knob is a context value named `joiner:` and its field with hyphens:
``cdk deploy -c joiner:cluster=prod -c joiner:log-days=7``. cdk.json lists them all; the command line overrules it.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from infra.budgets import check_budgets, check_time_zone
from shared.settings import aws_gates_from, gates_from

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
PRICES: Final = ("node_cost_usd_per_hour", "volume_usd_per_gib_month")
CHOICES: Final = {
    "mode": ("active", "plan"),
    "hints": ("Given", "Withheld"),
    "reaction": ("tick", "watch", "logs"),
    "on_destroy": ("keep", "purge", "abandon"),
    "windows": ("true", "false"),
    "dashboard": ("true", "false"),
}
REASONS: Final = "Drifted,Empty,Unhealthy,Underutilized or some of them"
_REASON: Final = "(Drifted|Empty|Unhealthy|Underutilized)"
PAUSED: Final = re.compile(rf"(true|false|{_REASON}(, ?{_REASON})*)?")
PERCENT: Final = re.compile(r"100|[0-9]{1,2}")
BOUNDARY: Final = re.compile(r"(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+)?")
PRICE: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


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
    hints: str = "Given"
    """`Given` tells kube-scheduler which node was made for which pod; `Withheld`, where nobody may write pods' status:
    plans are then chosen that need no telling."""
    node_cost_usd_per_hour: str = "0"
    """What each node costs besides its instance and its volumes, like an agent's licence: the dearer, the fewer."""
    volume_usd_per_gib_month: str = "0.08"
    """What volumes of nodes cost where you are; counted when plans are compared."""
    feature_gates: str = ""
    """Like ``NodeOverlay=true,StaticCapacity=true``."""
    aws_feature_gates: str = ""
    """Like ``NodeClassCEL=true``: amounts in an EC2NodeClass' kubelet block may be expressions."""
    disable_dry_run: str = "false"
    """`true`: EC2 is not asked beforehand what it would refuse, so node classes do not tell which right is missing."""
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
    disruption_paused: str = ""
    """``true`` pauses all disruption by choice, ``Drifted,Underutilized`` that for these reasons."""
    drift_pause_percent: str = "0"
    """Drift of a NodePool pauses where more of its nodes have drifted at once; 0: never."""
    disruption_budgets: str = ""
    """For all nodes together, beside the NodePools' own: ``[{"nodes": "5%"}]``, as spec.disruption.budgets has them."""
    disruption_time_zone: str = "UTC"
    """In which the schedules of these are read, like ``Europe/Berlin``."""
    reaction: str = "tick"
    """How soon pods that begin to wait are seen: by the ``tick`` of every minute, by ``watch`` within five seconds, or
    by ``logs``: pushed by the control plane's log of the scheduler, which must be on. docs/reaction.md has prices."""
    log_days: int = 30
    journal_days: int = 30
    """How long `explain` and replay can look back."""
    on_destroy: str = "keep"
    """`keep` leaves what an operator wrote, and refuses while nodes of ours run: they would lose their role. `purge`
    ends all NodePools and their nodes first; `abandon` leaves the nodes to themselves."""
    windows: str = "false"
    """`true`: a second node role for Windows, with the access entry that such nodes need."""
    subnets: str = ""
    """Where the functions get network interfaces; needed only if the API server has no public endpoint."""
    security_groups: str = ""
    """Of those interfaces."""
    node_roles: str = ""
    """Names of further roles that nodes may have: those of the instance profiles that an EC2NodeClass names itself."""
    permissions_boundary: str = ""
    """ARN of a managed policy that no role of the stack may exceed, nodes' included."""
    ssm_parameters: str = ""
    """Names of private image parameters; the public ones under /aws/service may always be read."""
    price_list: str = ""
    """A file of `joiner catalog prices`, shipped for where the functions reach no pricing service."""
    alarm_topic: str = ""
    """ARN of an SNS topic that hears of alarms."""
    dashboard: str = "true"
    """A CloudWatch dashboard for the cluster; the first three of an account cost nothing, each further $3 a month."""
    price_age_alarm_hours: int = 48
    """Alarm when prices are so old: they are asked for twice a day; 0: never."""

    def __post_init__(self) -> None:
        """Refuse what would fail only while deploying.

        Raises:
            ValueError: a value cannot be deployed.
        """
        _check_pattern("cluster", self.cluster, CLUSTER_NAME)
        _check_pattern("permissions_boundary", self.permissions_boundary, BOUNDARY)
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                named = field.replace("_", "-")
                raise ValueError(f"joiner:{named} is {getattr(self, field)!r}: want {' or '.join(choices)}")
        gates_from(self.feature_gates)
        aws_gates_from(self.aws_feature_gates)
        if self.disable_dry_run not in ("true", "false"):
            raise ValueError(f"joiner:disable-dry-run is {self.disable_dry_run!r}: want true or false")
        for fuse in FUSES:
            _check_number(fuse, getattr(self, fuse))
        for price in PRICES:
            _check_price(price, getattr(self, price))
        if not PAUSED.fullmatch(self.disruption_paused):
            raise ValueError(f"joiner:disruption-paused is {self.disruption_paused!r}: want true, or {REASONS}")
        if not PERCENT.fullmatch(self.drift_pause_percent):
            raise ValueError(f"joiner:drift-pause-percent is {self.drift_pause_percent!r}: want 0 to 100")
        check_budgets(self.disruption_budgets)
        check_time_zone(self.disruption_time_zone)
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
        if isinstance(budgets := context.get("disruption-budgets"), list):
            context["disruption-budgets"] = msgspec.json.encode(budgets).decode()
        return msgspec.convert(context, cls, strict=False)


def _check_pattern(field: str, text: str, pattern: re.Pattern[str]) -> None:
    """Refuse a text that is not what *pattern* describes.

    Raises:
        ValueError: the message names the knob.
    """
    if not pattern.fullmatch(text):
        raise ValueError(f"joiner:{field.replace('_', '-')} is {text!r}: want {pattern.pattern}")


def _check_number(field: str, text: str) -> None:
    """Refuse a fuse that is no number, or below 0.

    Raises:
        ValueError: the message names the knob.
    """
    if not NUMBER.fullmatch(text):
        raise ValueError(f"joiner:{field.replace('_', '-')} is {text!r}: want a number, 0 for any")


def _check_price(field: str, text: str) -> None:
    """Refuse a price that is no number, or below 0.

    Raises:
        ValueError: the message names the knob.
    """
    if not PRICE.fullmatch(text):
        raise ValueError(f"joiner:{field.replace('_', '-')} is {text!r}: want dollars, like 0.08")


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
