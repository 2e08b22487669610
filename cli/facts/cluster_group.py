"""A group of clusters: what is used of its limit, read from the shared table and described in one line."""

from datetime import datetime
from typing import TYPE_CHECKING

from shared.model.cloud_provider.cluster_group import GroupUsage, describe_different_settings
from shared.model.core.formatting import format_count
from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.settings import ChosenSettings, Settings

if TYPE_CHECKING:
    from shared.aws.clients import Clients


def read_group_of(clients: "Clients | None", settings: Settings | None) -> GroupUsage | None:
    """Return what the group of an installation uses; None without a group. *clients* are used in their own region."""
    return None if settings is None else read_group(settings, settings.group_member, clients)


def read_group(settings: ChosenSettings, member: str, clients: "Clients | None" = None) -> GroupUsage | None:
    """Return what the group in *settings* uses, as its cluster *member* sees it; None without a group."""
    if not (settings.group and settings.group_table):
        return None
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second
    from shared.aws.dynamodb import DynamoTable, get_table_region  # noqa: PLC0415
    from shared.store.limits.cluster_group import read_usage  # noqa: PLC0415

    region = get_table_region(settings.group_table)
    is_own_region = clients is not None and clients.region == region
    table_clients = clients if clients is not None and is_own_region else Clients(region)
    return read_usage(DynamoTable(table_clients, settings.group_table), settings, member)


def describe_read_error(usage: GroupUsage) -> str:
    """Return why the command could not read the group, which does not say whether the functions can."""
    table = usage.table.rpartition("/")[2]
    return (
        f"group {usage.group}: you cannot read table {table}: {usage.read_error}. "
        "If `provision` cannot read it either, no nodes are launched"
    )


def describe_group(usage: GroupUsage, now: datetime) -> tuple[str, str]:
    """Return the color and the text about the group of the cluster."""
    if usage.read_error:
        fix = "; to fix: allow dynamodb:GetItem on the table for your role" if usage.is_denied else ""
        return "yellow" if usage.is_denied else "red", f"{describe_read_error(usage)}{fix}"
    own_entry = usage.get_entry()
    amounts = (usage.used, usage.limit, own_entry.used if own_entry is not None else 0)
    used, limit, own_amount = (format_amount(USD_PER_HOUR, amount) for amount in amounts)
    silent = [member for member, entry in usage.entries if entry.is_silent(now)]
    remarks = [
        f"{used} of {limit} is used by {format_count(len(usage.entries), 'cluster')}, {own_amount} by this cluster",
        *([f"silent: {', '.join(silent)}"] if silent else []),
        *filter(None, (describe_different_settings(usage.entries), usage.find_waiting_reason(now))),
    ]
    is_warning = len(remarks) > 1 or usage.used >= usage.limit
    return "yellow" if is_warning else "", f"group {usage.group}: {'; '.join(remarks)}"
