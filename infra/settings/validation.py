"""Validation of stack settings that their types do not express, alone and in combination, before a deployment."""

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit

from infra.settings.budget_validation import check_budgets, check_time_zone
from infra.settings.network_validation import find_network_errors
from infra.settings.partition_validation import check_partition
from infra.settings.scheduler_config import check_scheduler_config
from infra.settings.settings import StackOptions
from shared.settings_text import WORKSPACE_URL

CLUSTER_NAME_PATTERN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,59}")
"""EKS allows 100 characters; an SQS queue name has 80, of which Joiner needs 20."""
CLUSTER_NAME_RULE: Final = "a name of at most 60 letters, digits, - and _"
MIN_PRICE_AGE_ALARM_HOURS: Final = 13
"""Prices are queried twice a day, and their age is published only above this limit (`shared.report.metrics.emf`)."""


def find_option_errors(options: StackOptions) -> Iterator[str]:
    """Yield the errors in *options* that would otherwise appear only during the deployment.

    Each message names the option.
    """
    checks: tuple[Callable[[], None], ...] = (
        lambda: _check_cluster(options.cluster),
        lambda: _check_topics(options),
        lambda: _check_event_bus(options),
        lambda: _check_remote_write(options),
        lambda: _check_price_age(options),
        lambda: _check_windows(options),
        lambda: _check_keys(options),
        lambda: _check_commitments_role(options),
        lambda: _check_group(options),
        lambda: check_scheduler_config(options.scheduler_config),
        lambda: check_budgets(options.disruption_budgets),
        lambda: check_time_zone(options.disruption_time_zone),
        lambda: check_partition(options),
    )
    for check in checks:
        try:
            check()
        except ValueError as error:
            yield str(error)
    yield from find_network_errors(options)


def _check_cluster(name: str) -> None:
    if not CLUSTER_NAME_PATTERN.fullmatch(name):
        raise ValueError(f"cluster is {name!r}: must be {CLUSTER_NAME_RULE}")


def _check_topics(options: StackOptions) -> None:
    region = options.report_topic.partition(":sns:")[2].partition(":")[0]
    if region and options.region and region != options.region:
        raise ValueError(
            f"report-topic is in {region}, but region is {options.region}: use a topic in {options.region}"
        )


def _check_event_bus(options: StackOptions) -> None:
    region = options.event_bus.partition(":events:")[2].partition(":")[0]
    if region and options.region and region != options.region:
        raise ValueError(
            f"event-bus is in {region}, but region is {options.region}: use a bus in {options.region}; "
            "its rules can forward events to other regions"
        )


def _check_remote_write(options: StackOptions) -> None:
    url, detail = options.remote_write_url, options.remote_write_metrics
    if not url and detail != "summary":
        raise ValueError(f"remote-write-metrics is {detail}, but remote-write-url is not set: set remote-write-url")
    workspace = WORKSPACE_URL.fullmatch(url)
    if workspace is None:
        if (urlsplit(url).hostname or "").startswith("aps-workspaces"):
            raise ValueError(
                f"remote-write-url is {url}: the URL of a workspace is "
                "https://aps-workspaces.REGION.amazonaws.com/workspaces/ws-ID/api/v1/remote_write"
            )
        return
    if options.network == "isolated" and options.region and workspace["region"] != options.region:
        raise ValueError(
            f"remote-write-url is in {workspace['region']}, but region is {options.region}, and network is isolated: "
            f"use a workspace in {options.region}"
        )


def _check_windows(options: StackOptions) -> None:
    if options.windows and options.ip_family == "ipv6":
        raise ValueError("windows is true: EKS has no Windows nodes on clusters with ip-family: ipv6")


def _check_keys(options: StackOptions) -> None:
    for key in options.kms_keys:
        region = key.split(":")[3]
        if options.region and region != options.region:
            raise ValueError(f"kms-keys has a key in {region}, but region is {options.region}: use keys of that region")


def _check_commitments_role(options: StackOptions) -> None:
    if options.commitments_role and options.commitments != "account":
        raise ValueError(f"commitments-role is set, but commitments is {options.commitments}: set commitments: account")
    if options.commitments_external_id and not options.commitments_role:
        raise ValueError(
            "commitments-external-id is set, but commitments-role is not: set commitments-role, or neither"
        )


def _check_group(options: StackOptions) -> None:
    values = {
        "group": options.group,
        "group-limit-usd-per-hour": options.group_limit_usd_per_hour,
        "group-table": options.group_table,
    }
    missing_names = [name for name, value in values.items() if not value]
    if 0 < len(missing_names) < len(values):
        given_names = [name for name in values if name not in missing_names]
        text = f"{' and '.join(given_names)} without {' and '.join(missing_names)}"
        raise ValueError(f"{text}: set all three, or none")
    if not options.group or options.network != "isolated" or not options.region:
        return
    region = options.group_table.split(":")[3]
    if region != options.region:
        reason = f"functions in an isolated network reach only tables in {options.region}"
        raise ValueError(f"group-table is in {region}: {reason}")


def _check_price_age(options: StackOptions) -> None:
    hours = options.price_age_alarm_hours
    if hours != 0 and hours < MIN_PRICE_AGE_ALARM_HOURS:
        reason = "prices are read every 12 hours, so they are normally up to 12 hours old"
        raise ValueError(
            f"price-age-alarm-hours is {hours}: must be {MIN_PRICE_AGE_ALARM_HOURS} or more, or 0: {reason}"
        )
