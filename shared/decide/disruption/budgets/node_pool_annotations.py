"""Disruption annotations of a NodePool: Joiner's own settings for which Karpenter has no field.

* joiner.dev/minimum-savings-usd-per-hour: "0.05"
* joiner.dev/minimum-savings-percent: "10"
* joiner.dev/eviction-price-usd: "0.02": the price of evicting a pod from a node of the NodePool
* joiner.dev/budget-time-zone: Europe/Berlin: time zone of the NodePool's budget schedules
* joiner.dev/disruption-windows: "0 22 * * mon-fri 8h; 0 0 * * sat 48h": disruption only in these windows; same time
  zone
* joiner.dev/expiry-jitter-percent: "10": nodes that were created together expire one after the other
* joiner.dev/image-soak: 24h: how long one node runs a new image before the others follow
* joiner.dev/surge-drain: "true": new pods of Deployments start before the node drains
* joiner.dev/consolidation-mode: delete-only: consolidation launches no replacements
* joiner.dev/utilization-threshold: "50": only nodes that use less of their CPU and memory are consolidated
* joiner.dev/graceful-expiration: 24h: how long after expireAfter nodes are replaced as drifted before they are deleted

An invalid annotation allows no disruption.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from shared.decide.scheduling.templates.expiration_jitter import MAX_JITTER_PERCENT, parse_jitter_percent
from shared.model.core.calendar.cron_schedule import is_schedule_active
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.labels import (
    BUDGET_TIME_ZONE,
    CONSOLIDATION_MODE,
    DISRUPTION_WINDOWS,
    EVICTION_PRICE,
    EXPIRY_JITTER,
    GRACEFUL_EXPIRATION,
    IMAGE_SOAK,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    SURGE_DRAIN,
    UTILIZATION_THRESHOLD,
)
from shared.model.core.metadata import Pairs
from shared.model.core.units import parse_duration
from shared.model.karpenter.expiration import parse_graceful_period
from shared.model.karpenter.node_pool import NodePool

_CRON_FIELD_COUNT: Final = 5
_MAX_PERCENT: Final = 100
DELETE_ONLY: Final = "delete-only"
_CONSOLIDATION_MODES: Final = ("delete-and-replace", DELETE_ONLY)


class DisruptionWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A time window in which disruption is allowed."""

    schedule: str
    duration: timedelta


class NodePoolDisruptionAnnotations(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed disruption annotations of a NodePool."""

    minimum_usd_per_hour: float = 0.0
    minimum_percent: float = 0.0
    eviction_price_usd: float | None = None
    """None: the price of the deployment."""
    zone: str = "UTC"
    windows: tuple[DisruptionWindow, ...] = ()
    """Empty: disruption is allowed at any time."""
    image_soak: timedelta = timedelta()
    """How long one node runs a new image before the others drift because of it; 0: all drift at once."""
    expiry_jitter_percent: int = 0
    """Used by `shared.decide.scheduling.templates.expiration_jitter`."""
    surge_drain: bool = False
    """Used by `shared.state.surge_drain`."""
    is_delete_only: bool = False
    """Consolidation launches no replacements for the nodes."""
    utilization_percent: float | None = None
    """Nodes with this utilization or more are not consolidated; None: any node may be."""
    graceful_expiration: timedelta = timedelta()
    """How long after expireAfter nodes are replaced as drifted before they expire forcefully; 0: not at all."""
    problems: tuple[str, ...] = ()
    """Invalid annotations: the name and the error."""

    def is_window_open(self, now: datetime) -> bool:
        """Return whether *now* is in a disruption window, or there are no windows."""
        zone = get_time_zone(self.zone)
        return not self.windows or any(
            is_schedule_active(window.schedule, window.duration, now, zone) for window in self.windows
        )


def parse_disruption_annotations(pool: NodePool) -> NodePoolDisruptionAnnotations:
    """Return the parsed disruption annotations of *pool*."""
    return _parse_annotations(tuple(pair for pair in pool.meta.annotations if pair[0] in _PARSERS))


@lru_cache(maxsize=256)
def _parse_annotations(annotations: Pairs) -> NodePoolDisruptionAnnotations:
    values: dict[str, object] = {}
    problems: list[str] = []
    for key, text in annotations:
        field_name, parser = _PARSERS[key]
        try:
            values[field_name] = parser(text)
        except ValueError as error:
            problems.append(f"{key}: {error}")
    parsed_annotations = msgspec.convert(values, NodePoolDisruptionAnnotations, from_attributes=True)
    return msgspec.structs.replace(parsed_annotations, problems=tuple(problems))


def _parse_eviction_price(text: str) -> float:
    return _parse_amount(text, "USD per eviction")


def _parse_amount(text: str, unit: str = "USD per hour") -> float:
    try:
        amount = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an amount in {unit}: write a number like 0.05") from None
    if not 0 <= amount < float("inf"):
        raise ValueError(f"{text!r} is below zero")
    return amount


def _parse_percent(text: str) -> float:
    percent = _parse_amount(text.removesuffix("%"))
    if percent > _MAX_PERCENT:
        raise ValueError(f"{text!r} is more than 100%")
    return percent


def _parse_share(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"{text!r} is not a percentage: write a number from 1 to {_MAX_PERCENT}, like 50") from None
    if not 0 < percent <= _MAX_PERCENT:
        raise ValueError(f"{text!r} is not a percentage from 1 to {_MAX_PERCENT}: write a number like 50")
    return percent


def _parse_delete_only(text: str) -> bool:
    if text not in _CONSOLIDATION_MODES:
        raise ValueError(f"{text!r} is not a consolidation mode: write {' or '.join(_CONSOLIDATION_MODES)}")
    return text == DELETE_ONLY


def _parse_time_zone(text: str) -> str:
    get_time_zone(text)
    return text


def _parse_windows(text: str) -> tuple[DisruptionWindow, ...]:
    return tuple(_parse_window(part) for part in text.split(";") if part.strip())


def _parse_window(text: str) -> DisruptionWindow:
    parts = text.split()
    count = 1 if parts[0].startswith("@") else _CRON_FIELD_COUNT
    if len(parts) != count + 1:
        raise ValueError(f"{text.strip()!r} is not a schedule and a duration, like 0 22 * * mon-fri 8h")
    window = DisruptionWindow(schedule=" ".join(parts[:count]), duration=parse_duration(parts[count]))
    if window.duration <= timedelta():
        raise ValueError(f"{text.strip()!r} has no duration")
    is_schedule_active(window.schedule, window.duration, datetime(2026, 1, 1, tzinfo=UTC))
    return window


def _parse_soak_time(text: str) -> timedelta:
    soak_time = parse_duration(text)
    if soak_time < timedelta():
        raise ValueError(f"{text!r} is negative: write a duration like 24h")
    return soak_time


def _parse_jitter(text: str) -> int:
    percent = parse_jitter_percent(text)
    if not percent and text not in ("0", "0%"):
        raise ValueError(f"{text!r} is not a percentage of the lifetime: write a number from 0 to {MAX_JITTER_PERCENT}")
    return percent


def _parse_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


_PARSERS: Final = {
    SURGE_DRAIN: ("surge_drain", _parse_switch),
    EXPIRY_JITTER: ("expiry_jitter_percent", _parse_jitter),
    IMAGE_SOAK: ("image_soak", _parse_soak_time),
    MINIMUM_SAVINGS_USD: ("minimum_usd_per_hour", _parse_amount),
    MINIMUM_SAVINGS_PERCENT: ("minimum_percent", _parse_percent),
    EVICTION_PRICE: ("eviction_price_usd", _parse_eviction_price),
    CONSOLIDATION_MODE: ("is_delete_only", _parse_delete_only),
    UTILIZATION_THRESHOLD: ("utilization_percent", _parse_share),
    GRACEFUL_EXPIRATION: ("graceful_expiration", parse_graceful_period),
    BUDGET_TIME_ZONE: ("zone", _parse_time_zone),
    DISRUPTION_WINDOWS: ("windows", _parse_windows),
}
