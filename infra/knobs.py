"""What may be chosen for a deployment, and what is chosen when nobody says.

Each knob is a context value named `joiner:` and its field with hyphens:
``cdk deploy -c joiner:cluster=prod -c joiner:log-days=7``. cdk.json lists them all; the command line overrules it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from infra.checks import check, spelled
from infra.networks import MODES
from infra.scheduler_config import as_json
from infra.written import as_text, listed

CHOICES: Final = {
    "mode": ("active", "plan"),
    "disruption": ("plan", "active"),
    "preference_policy": ("Respect", "Ignore"),
    "min_values_policy": ("Strict", "BestEffort"),
    "hints": ("Given", "Withheld"),
    "reaction": ("tick", "watch", "logs"),
    "on_destroy": ("keep", "purge", "abandon"),
    "windows": ("true", "false"),
    "dashboard": ("true", "false"),
    "snapshots": ("on", "off"),
    "metrics": ("alarms", "all"),
    "network": MODES,
    "vpc_endpoints": ("true", "false"),
    "deployment": ("canary", "all-at-once"),
    "system_log_level": ("DEBUG", "INFO", "WARN"),
}


class Knobs(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """One deployment's choices; lists are comma-separated, as a command line has them."""

    cluster: str = "demo"
    """The EKS cluster's name; of several, ``a,b``, each gets a stack of its own."""
    account: str = ""
    """Where the stack may be deployed, and nowhere else: twelve digits; empty: wherever the credentials lead."""
    region: str = ""
    """The same: like ``eu-central-1``."""
    tags: str = ""
    """Of everything in the stack, like ``team=platform,cost-centre=42``. Nodes have those of their EC2NodeClass."""
    kube_endpoint: str = ""
    """Empty: asked from eks:DescribeCluster."""
    mode: str = "active"
    """`plan` decides and reports, and changes nothing."""
    preference_policy: str = "Respect"
    """Preferences of pods: ``Respect`` places by them where that is possible, ``Ignore`` does not."""
    min_values_policy: str = "Strict"
    """What `minValues` of a requirement asks for is held to, ``Strict``, or as far as possible, ``BestEffort``."""
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
    """The part of an instance type's memory that its machines lack, until one was seen."""
    reserved_enis: str = "0"
    """Network interfaces of each node that pods cannot use."""
    launch_nodes_per_minute: str = "2000"
    """How many nodes the cluster may start within a minute: beyond, the launch breaker holds them back; 0: any."""
    launch_usd_per_hour: str = "2000"
    """What it may start within an hour, at its price per hour; 0: any."""
    launch_pool_nodes_per_minute: str = "1000"
    """The same for each NodePool."""
    launch_pool_usd_per_hour: str = "1000"
    """What each NodePool may start within an hour, at its price per hour; 0: any."""
    disruption: str = "plan"
    """What becomes of nodes that need not be there, or not as they are: ``plan`` tells of them, in events, the journal
    and `explain`, and keeps them; ``active`` lets them go. Interruptions, expiry and repair ask for neither."""
    disruption_paused: str = ""
    """``true`` pauses all disruption by choice, ``Drifted,Underutilized`` that for these reasons; with all that the
    annotation `joiner.dev/disruption-paused` takes: ``Drifted in batch until 2026-11-22T09:00:00Z because audit``."""
    drift_pause_percent: str = "0"
    """Drift of a NodePool pauses where more of its nodes have drifted at once; 0: never."""
    disruption_budgets: str = ""
    """For all nodes together, beside the NodePools' own: ``[{"nodes": "5%"}]``, as spec.disruption.budgets has them."""
    disruption_time_zone: str = "UTC"
    """In which the schedules of these are read, like ``Europe/Berlin``."""
    reaction: str = "tick"
    """How soon pods that begin to wait are seen: by the ``tick`` of every minute, by ``watch`` within five seconds, or
    by ``logs``: pushed by the control plane's log of the scheduler, which must be on. docs/reaction.md has prices."""
    deployment: str = "canary"
    """How a new version takes over: after five minutes with half of the calls and no errors, or ``all-at-once``."""
    memory_mb: str = ""
    """Of single functions, like ``provision=3008``; 1,769 MB are one processor, and a plan can use no more."""
    every_minutes: str = ""
    """How often functions tick, like ``disrupt=4,catalog=10``: every minute, `catalog` every five, else."""
    reserved_concurrency: str = ""
    """What of the account's concurrency only they have, like ``provision=3,interrupt=5``. Nothing, else: Lambda refuses
    it to accounts that may run only ten functions at once, as new ones."""
    log_level: str = "INFO"
    """What functions tell in their logs: each cycle, with ``DEBUG`` also why each thing was decided, with ``WARNING``
    only what went wrong, with ``ERROR`` only what failed; of single ones ``INFO,provision=DEBUG``."""
    system_log_level: str = "WARN"
    """What Lambda tells there: what went wrong; ``INFO`` has of each call what it took in time and memory besides."""
    log_days: int = 30
    """How long logs are kept."""
    journal_days: int = 30
    """How long `explain` can look back."""
    snapshot_days: int = 7
    """How long `replay` can, if that is not longer: what decisions were made from is most of what the bucket holds."""
    snapshots: str = "on"
    """`on` keeps what decisions were made from beside the journal, for `replay`: what pods ask for, their labels,
    affinities and places, and the nodes; never containers, commands or variables. `off` keeps none of it."""
    on_destroy: str = "keep"
    """`keep` leaves what an operator wrote, and refuses while nodes of ours run: they would lose their role. `purge`
    ends all NodePools and their nodes first; `abandon` leaves the nodes to themselves."""
    windows: str = "false"
    """`true`: a second node role for Windows, with the access entry that such nodes need."""
    network: str = "public"
    """`public`: functions outside a VPC. `private`: in the cluster's subnets, with a NAT. `isolated`: without one, with
    VPC endpoints and a price list instead. docs/networking.md has what each needs and costs."""
    subnets: str = ""
    """Where the functions get network interfaces."""
    security_groups: str = ""
    """Of those interfaces; empty: the stack makes one."""
    vpc: str = ""
    """Where that group and endpoints are made."""
    vpc_cidrs: str = ""
    """The VPC's address blocks: who may use endpoints that are made."""
    cluster_security_group: str = ""
    """The API server's: it lets in the group that is made."""
    vpc_endpoints: str = "false"
    """`true`: the stack makes the endpoints; one subnet of each zone, then."""
    route_tables: str = ""
    """Of those subnets: where the ways to S3 and DynamoDB are entered."""
    prefix_lists: str = ""
    """Of S3 and DynamoDB: then the group that is made lets out to these and the VPC only."""
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
    report_topic: str = ""
    """ARN of an SNS topic, in the same region, that is told each day what nodes cost; it may be the same one. A key
    that encrypts it must let the role of `catalog` in: docs/cost.md."""
    dashboard: str = "true"
    """A CloudWatch dashboard for the cluster; the first three of an account cost nothing, each further $3 a month."""
    metrics: str = "alarms"
    """What is published as CloudWatch metrics: what ``alarms`` need, when they do; or ``all`` the time, $0.30 a month
    each. The dashboard needs neither."""
    cost_label: str = ""
    """A label of nodes, like ``billing-team``, by which the daily cost report adds up besides NodePool and type."""
    price_age_alarm_hours: int = 48
    """Alarm when prices are so old: they are asked for twice a day, so 13 at the least; 0: never."""

    def __post_init__(self) -> None:
        """Refuse what would fail only while deploying.

        Raises:
            ValueError: a value cannot be deployed.
        """
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{spelled(field)} is {getattr(self, field)!r}: want {' or '.join(choices)}")
        check(self)

    @classmethod
    def from_context(cls, value_of: Callable[[str], object]) -> "Knobs":
        """Read a context, *value_of* a key, None if it is missing; the knob then has its default.

        Raises:
            ValueError: a value cannot be deployed.
        """
        names = cls.__struct_encode_fields__
        context = {name: value for name in names if (value := value_of(f"joiner:{name}")) is not None}
        if config := context.get("scheduler-config"):
            context["scheduler-config"] = as_json(config)
        if isinstance(tags := context.get("tags"), dict):
            context["tags"] = ",".join(f"{key}={value}" for key, value in tags.items())
        if isinstance(budgets := context.get("disruption-budgets"), list):
            context["disruption-budgets"] = msgspec.json.encode(budgets).decode()
        text = {name: as_text(value) for name, value in context.items()}
        for field in msgspec.structs.fields(cls):
            _check_kind(field, text.get(field.encode_name, field.default))
        return msgspec.convert(text, cls, strict=False)

    def of_each_cluster(self) -> tuple["Knobs", ...]:
        """Answer those of each stack: one serves one cluster."""
        return tuple(msgspec.structs.replace(self, cluster=name) for name in listed(self.cluster))


def _check_kind(field: msgspec.structs.FieldInfo, value: object) -> None:
    """Refuse what is no text, or where a number is wanted none.

    Raises:
        ValueError: the message names the knob of *field*.
    """
    try:
        msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError:
        want = "a whole number" if field.type is int else "text"
        raise ValueError(f"joiner:{field.encode_name} is {value!r}: want {want}") from None
