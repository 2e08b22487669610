"""What is refused of single knobs, and of several together, before anything is deployed."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from infra import by_function
from infra.budgets import check_budgets, check_time_zone
from infra.networks import check_network
from infra.scheduler_config import check_scheduler_config
from infra.written import listed, tags_from
from shared.settings import aws_gates_from, gates_from, paused_from

if TYPE_CHECKING:
    from infra.knobs import Knobs

CLUSTER_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,59}")
"""EKS allows 100 characters; SQS gives a queue 80, of which ours need 20."""
CLUSTER_SAID: Final = "names of clusters, of letters, digits, - and _, of 60 at the most"
WHOLE: Final = re.compile("[0-9]+")
"""Dollars, nodes."""
PRICE: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
TOPIC: Final = re.compile(r"(arn:aws[a-z-]*:sns:(?P<region>[a-z0-9-]+):[0-9]{12}:[0-9A-Za-z_-]{1,256})?")
LABEL: Final = re.compile(r"(([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[0-9A-Za-z]([\w.-]{0,61}[0-9A-Za-z])?)?", re.ASCII)
TOPIC_SAID: Final = "the ARN of a standard SNS topic"
PRICES_OLD_HOURS: Final = 13
"""They are asked for twice a day, and their age is published only beyond (`shared.report.metrics`)."""
LOG_DAYS: Final = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)
"""What CloudWatch knows."""
PATTERNS: Final = {
    "account": (re.compile("([0-9]{12})?"), "twelve digits"),
    "region": (re.compile("([a-z]{2}(-[a-z]+)+-[0-9])?"), "one like eu-central-1"),
    "permissions_boundary": (re.compile(r"(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+)?"), "the ARN of a policy"),
    "drift_pause_percent": (re.compile("100|[0-9]{1,2}"), "0 to 100"),
    "launch_nodes_per_minute": (WHOLE, "a number, 0 for any"),
    "launch_usd_per_hour": (WHOLE, "a number, 0 for any"),
    "launch_pool_nodes_per_minute": (WHOLE, "a number, 0 for any"),
    "launch_pool_usd_per_hour": (WHOLE, "a number, 0 for any"),
    "node_cost_usd_per_hour": (PRICE, "dollars, like 0.08"),
    "volume_usd_per_gib_month": (PRICE, "dollars, like 0.08"),
    "alarm_topic": (TOPIC, TOPIC_SAID),
    "report_topic": (TOPIC, TOPIC_SAID),
    "disable_dry_run": (re.compile("true|false"), "true or false"),
    "kube_endpoint": (re.compile(r"(https://[^\s/]+/?)?"), "a URL like https://HOST, or nothing"),
    "vm_memory_overhead_percent": (re.compile(r"0|0?\.[0-9]+"), "a part of one, like 0.075"),
    "reserved_enis": (WHOLE, "a number"),
    "cost_label": (LABEL, "the key of a label, like billing-team or example.com/team"),
}
"""What the text of a knob must be, and how that is said."""
LISTS: Final = {
    "node_roles": (re.compile(r"[\w+=.@/-]{1,512}", re.ASCII), "names of roles, without wildcards"),
    "ssm_parameters": (
        re.compile(r"[\w./-]{1,1011}", re.ASCII),
        "names of parameters like /images/golden, without wildcards",
    ),
}
"""The same of each item: rights are given on what it names, and on nothing else."""
READ: Final[Mapping[str, Callable[[str], object]]] = {
    "feature_gates": gates_from,
    "aws_feature_gates": aws_gates_from,
    "disruption_paused": paused_from,
}
"""What functions read by a grammar of their own."""
OF_ONE_CLUSTER: Final = ("kube_endpoint", "cluster_security_group")


def check(knobs: "Knobs") -> None:
    """Refuse what would fail only while deploying.

    Raises:
        ValueError: the message names the knob.
    """
    for field, (pattern, want) in PATTERNS.items():
        if not pattern.fullmatch(getattr(knobs, field)):
            raise ValueError(f"{spelled(field)} is {getattr(knobs, field)!r}: want {want}")
    for field, (pattern, want) in LISTS.items():
        if wrong := [one for one in listed(getattr(knobs, field)) if not pattern.fullmatch(one)]:
            raise ValueError(f"{spelled(field)} has {wrong[0]!r}: want {want}")
    for field, read in READ.items():
        _check_read(field, getattr(knobs, field), read)
    _check_clusters(knobs)
    _check_topics(knobs)
    _check_times(knobs)
    check_scheduler_config(knobs.scheduler_config)
    check_budgets(knobs.disruption_budgets)
    check_time_zone(knobs.disruption_time_zone)
    check_network(knobs)
    tags_from(knobs.tags)
    by_function.numbers("memory-mb", knobs.memory_mb, by_function.MEMORY_MB)
    by_function.numbers("every-minutes", knobs.every_minutes, by_function.EVERY_MINUTES)
    by_function.numbers("reserved-concurrency", knobs.reserved_concurrency, by_function.RESERVED)
    by_function.levels("log-level", knobs.log_level)


def spelled(field: str) -> str:
    """Answer how the knob of *field* is written."""
    return f"joiner:{field.replace('_', '-')}"


def _check_read(field: str, text: str, read: Callable[[str], object]) -> None:
    try:
        read(text)
    except ValueError as error:
        raise ValueError(f"{spelled(field)}: {error}") from None


def _check_clusters(knobs: "Knobs") -> None:
    names = listed(knobs.cluster)
    for name in names or [""]:
        if not CLUSTER_NAME.fullmatch(name) or names.count(name) > 1:
            raise ValueError(f"joiner:cluster is {knobs.cluster!r}: want {CLUSTER_SAID}, each once")
    for field in OF_ONE_CLUSTER if len(names) > 1 else ():
        if getattr(knobs, field):
            raise ValueError(f"{spelled(field)} is that of one cluster, and joiner:cluster is {knobs.cluster!r}")


def _check_topics(knobs: "Knobs") -> None:
    found = TOPIC.fullmatch(knobs.report_topic)
    region = found["region"] if found is not None else None
    if region and knobs.region and region != knobs.region:
        raise ValueError(f"joiner:report-topic is in {region}, and joiner:region is {knobs.region}: want one there")


def _check_times(knobs: "Knobs") -> None:
    hours = knobs.price_age_alarm_hours
    if hours != 0 and hours < PRICES_OLD_HOURS:
        why = "prices are asked for twice a day, and are that old on a good day"
        raise ValueError(f"joiner:price-age-alarm-hours is {hours}: want {PRICES_OLD_HOURS} or more, or 0: {why}")
    if knobs.log_days not in LOG_DAYS:
        raise ValueError(f"joiner:log-days is {knobs.log_days}: want one of {', '.join(map(str, LOG_DAYS))}")
    for field in ("journal_days", "snapshot_days"):
        if getattr(knobs, field) < 1:
            raise ValueError(f"{spelled(field)} is {getattr(knobs, field)}: want 1 or more")
