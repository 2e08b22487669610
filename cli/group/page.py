"""The page and the document of `joiner group`."""

from collections.abc import Iterator
from typing import Any

from cli.group.session import GroupView
from shared.model.cloud_provider.cluster_group import describe_different_settings
from shared.model.core.formatting import format_count, format_elapsed
from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.model.core.units import format_instant
from shared.model.karpenter.money_limit import MICRO_USD


def build_group_document(view: GroupView) -> dict[str, Any]:
    """Return the JSON document of a group."""
    return {
        "group": view.group,
        "at": format_instant(view.at),
        "usedUsdPerHour": view.used / MICRO_USD,
        "limitUsdPerHour": None if view.limit is None else view.limit / MICRO_USD,
        "clusters": [
            {
                "cluster": member,
                "usedUsdPerHour": entry.used / MICRO_USD,
                "limitUsdPerHour": entry.limit / MICRO_USD,
                "prices": entry.prices,
                "writtenAt": format_instant(entry.written_at),
                "silent": entry.is_silent(view.at),
            }
            for member, entry in view.entries
        ],
    }


def render_group(view: GroupView) -> Iterator[str]:
    """Yield the lines of the page."""
    if view.limit is None:
        yield f"group {view.group} has no clusters"
        return
    used, limit = (format_amount(USD_PER_HOUR, amount) for amount in (view.used, view.limit))
    yield f"group {view.group}: {format_count(len(view.entries), 'cluster')}, {used} of {limit} is used"
    width = max(len(member) for member, _ in view.entries)
    for member, entry in view.entries:
        age = format_elapsed(max(view.at - entry.written_at, view.at - view.at))
        silent = "; silent: `joiner group forget` removes it" if entry.is_silent(view.at) else ""
        yield f"  {member:{width}}  {format_amount(USD_PER_HOUR, entry.used)}, written {age} ago{silent}"
    difference = describe_different_settings(view.entries)
    if difference:
        yield difference
