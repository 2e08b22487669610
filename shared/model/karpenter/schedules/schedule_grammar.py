"""The grammar of the annotation joiner.dev/schedule.

    night: 0 20 * * mon-fri 11h replicas=0 paused=Launches
    weekend: 0 7 * * sat 48h replicas=0

Each line, or part between semicolons, is a window: a name (optional), the cron schedule of its starts, its duration on
the clock of the time zone, and the values that are in force in the window.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec.structs import replace

from shared.model.core.calendar.calendar_windows import CalendarWindow, validate_calendar_window
from shared.model.core.labels import SCHEDULE, SCHEDULE_TIME_ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import CPU, USD_PER_HOUR, Resources, format_quantities
from shared.model.core.units import parse_duration, parse_nillable_duration, parse_quantity
from shared.model.karpenter.node_pool import CONSOLIDATION_POLICIES
from shared.model.karpenter.pause import DISRUPTION_REASONS, VOLUNTARY_REASONS, parse_reason
from shared.model.karpenter.schedule import (
    ScaledWorkload,
    Schedule,
    ScheduledBudget,
    ScheduledValues,
    ScheduleWindow,
    merge_values,
)

LAUNCHES: Final = "Launches"
PAUSABLE: Final = (LAUNCHES, *DISRUPTION_REASONS)
WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet")
"""The kinds that a schedule can scale."""
_LIMITS_PREFIX: Final = "limits."
_CRON_FIELD_COUNT: Final = 5
_NAME_PATTERN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NODES_PATTERN: Final = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]{1,9}")
_NUMBER_PATTERN: Final = re.compile(r"[0-9]{1,9}")
_WORKLOAD_PATTERN: Final = re.compile(
    r"(?P<kind>[A-Za-z]+)/(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)(?::(?P<replicas>.*))?"
)
_MAX_USD_PER_HOUR: Final = 1e6
ValueParser: TypeAlias = Callable[[str], ScheduledValues]


def parse_schedule(meta: ObjectMeta, keys: tuple[str, ...]) -> Schedule | None:
    """Parse the schedule of an object whose windows can set *keys*; None without a schedule.

    Raises:
        ValueError: an annotation is invalid; the message has the field and the fix.
    """
    text, zone = meta.get_annotation(SCHEDULE), meta.get_annotation(SCHEDULE_TIME_ZONE)
    if not text:
        return None
    parts = [part.strip() for line in text.splitlines() for part in line.split(";")]
    windows: list[ScheduleWindow] = []
    for part in filter(None, parts):
        try:
            windows.append(_parse_window(part, zone or "UTC", keys))
        except ValueError as error:
            field = SCHEDULE_TIME_ZONE if "is not a time zone" in str(error) else SCHEDULE
            raise ValueError(f"metadata.annotations[{field}]: {part.split()[0]} …: {error}") from None
    names = [window.name for window in windows]
    repeated_name = next((name for name in names if names.count(name) > 1), "")
    if repeated_name:
        raise ValueError(f"metadata.annotations[{SCHEDULE}]: two windows {repeated_name!r}: give each its own name")
    return Schedule(windows=tuple(windows)) if windows else None


def _parse_window(text: str, zone: str, keys: tuple[str, ...]) -> ScheduleWindow:
    words = text.split()
    name = words.pop(0)[:-1] if words[0].endswith(":") else ""
    if name and not _NAME_PATTERN.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: write lower-case letters, digits and '-', like night:")
    schedule_words = [word for word in words if "=" not in word]
    value_words = words[len(schedule_words) :]
    count = 1 if schedule_words and schedule_words[0].startswith("@") else _CRON_FIELD_COUNT
    if len(schedule_words) != count + 1 or any("=" not in word for word in value_words):
        raise ValueError(
            "is not a schedule, a duration and values: write them like 0 20 * * mon-fri 11h replicas=0, without spaces "
            "around '='"
        )
    if not value_words:
        raise ValueError(f"sets no value: add one or more of {', '.join(_list_key_texts(keys))}")
    calendar = CalendarWindow(
        schedule=" ".join(schedule_words[:count]), duration=parse_duration(schedule_words[count]), zone=zone
    )
    validate_calendar_window(calendar)
    values = ScheduledValues()
    for word in value_words:
        key, _, value = word.partition("=")
        values = _join_values(values, _parse_value(key, value, keys))
    return ScheduleWindow(name=name or " ".join(schedule_words), calendar=calendar, values=values)


def _join_values(values: ScheduledValues, added: ScheduledValues) -> ScheduledValues:
    """Return the values of one window together: budgets, limits and workloads are lists, other values occur once."""
    for field in ("replicas", "limit_usd_per_hour", "consolidation_policy", "consolidate_after", "paused"):
        if getattr(values, field) not in (None, "", ()) and getattr(added, field) not in (None, "", ()):
            raise ValueError(f"{field.replace('_', '-')} is set twice: remove one")
    return replace(
        merge_values((values, added)),
        budgets=(*values.budgets, *added.budgets),
        replicas=values.replicas if added.replicas is None else added.replicas,
        percentage=values.percentage if added.percentage is None else added.percentage,
    )


def _parse_value(key: str, text: str, keys: tuple[str, ...]) -> ScheduledValues:
    name = _LIMITS_PREFIX if key.startswith(_LIMITS_PREFIX) else key
    if name not in keys:
        raise ValueError(f"{key!r} is not a value of this kind: write one of {', '.join(_list_key_texts(keys))}")
    if not text:
        raise ValueError(f"{key} has no value: write {_EXAMPLES[name]}")
    try:
        if name == _LIMITS_PREFIX:
            return _parse_limit(key.removeprefix(_LIMITS_PREFIX), text)
        return _PARSERS[name](text)
    except ValueError as error:
        raise ValueError(f"{key}={text}: {error}: write {_EXAMPLES[name]}") from None


def _list_key_texts(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("limits.RESOURCE" if key == _LIMITS_PREFIX else key for key in keys)


def _parse_number(text: str) -> int:
    if not _NUMBER_PATTERN.fullmatch(text):
        raise ValueError("is not zero or a positive number")
    return int(text)


def _parse_limit(resource: str, text: str) -> ScheduledValues:
    if resource == USD_PER_HOUR:
        amount = float(text)
        if not 0 <= amount < _MAX_USD_PER_HOUR:
            raise ValueError("is not between 0 and 1,000,000 USD per hour")
        return ScheduledValues(limit_usd_per_hour=text)
    amount_of_resource = parse_quantity(text, per_unit=1000 if resource == CPU else 1)
    if not resource or amount_of_resource < 0:
        raise ValueError("is not a limit of zero or more")
    return ScheduledValues(limits=((resource, amount_of_resource),))


def _parse_policy(text: str) -> ScheduledValues:
    if text not in CONSOLIDATION_POLICIES:
        raise ValueError("is not a consolidation policy")
    return ScheduledValues(consolidation_policy=text)


def _parse_consolidate_after(text: str) -> ScheduledValues:
    parse_nillable_duration(text)
    return ScheduledValues(consolidate_after=text)


def _parse_budget(text: str) -> ScheduledValues:
    nodes, colon, reasons_text = text.partition(":")
    if not _NODES_PATTERN.fullmatch(nodes):
        raise ValueError("is neither a number of nodes nor a percentage up to 100%")
    reasons = _parse_words(reasons_text, VOLUNTARY_REASONS) if colon else None
    return ScheduledValues(budgets=(ScheduledBudget(nodes=nodes, reasons=reasons),))


def _parse_paused(text: str) -> ScheduledValues:
    return ScheduledValues(paused=PAUSABLE if text == "true" else _parse_words(text, PAUSABLE))


def _parse_words(text: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({parse_reason(word, words) for word in text.split(",")}))


def _parse_workload(text: str) -> ScheduledValues:
    match = _WORKLOAD_PATTERN.fullmatch(text)
    kind = next((kind for kind in WORKLOAD_KINDS if match and kind.lower() == match["kind"].lower()), "")
    if match is None or not kind:
        raise ValueError(f"is not a {' or '.join(WORKLOAD_KINDS)}")
    replicas = _parse_number(match["replicas"]) if match["replicas"] is not None else 0
    workload = ScaledWorkload(kind=kind, namespace=match["namespace"], name=match["name"], replicas=replicas)
    return ScheduledValues(workloads=(workload,))


def format_values(values: ScheduledValues) -> str:
    """Return *values* as in a schedule; "" for none.

    >>> format_values(ScheduledValues(replicas=0, limits=(("cpu", 1500),), paused=("Launches",)))
    'replicas=0 limits.cpu=1500m paused=Launches'
    """
    limits = format_quantities(Resources(amounts=values.limits))
    parts = (
        *(() if values.replicas is None else (f"replicas={values.replicas}",)),
        *(() if values.percentage is None else (f"percentage={values.percentage}",)),
        *(f"{_LIMITS_PREFIX}{name}={amount}" for name, amount in limits.items()),
        *((f"{_LIMITS_PREFIX}{USD_PER_HOUR}={values.limit_usd_per_hour}",) if values.limit_usd_per_hour else ()),
        *((f"consolidation-policy={values.consolidation_policy}",) if values.consolidation_policy else ()),
        *((f"consolidate-after={values.consolidate_after}",) if values.consolidate_after else ()),
        *(f"budget={_format_budget(budget)}" for budget in values.budgets),
        *((f"paused={_format_paused(values.paused)}",) if values.paused else ()),
        *(f"scale={_format_workload(workload)}" for workload in values.workloads),
    )
    return " ".join(parts)


def _format_budget(budget: ScheduledBudget) -> str:
    return budget.nodes if budget.reasons is None else f"{budget.nodes}:{','.join(budget.reasons)}"


def _format_paused(words: tuple[str, ...]) -> str:
    return "true" if set(words) == set(PAUSABLE) else ",".join(words)


def _format_workload(workload: ScaledWorkload) -> str:
    return f"{workload.kind}/{workload.namespace}/{workload.name}:{workload.replicas}"


_EXAMPLES: Final = {
    "replicas": "replicas=0",
    "percentage": "percentage=10",
    _LIMITS_PREFIX: "limits.cpu=100, limits.memory=400Gi, limits.nodes=0 or limits.usd-per-hour=12.50",
    "consolidation-policy": f"consolidation-policy={'|'.join(CONSOLIDATION_POLICIES)}",
    "consolidate-after": "consolidate-after=30s or consolidate-after=Never",
    "budget": "budget=10% or budget=0:Drifted,Underutilized",
    "paused": f"paused=true, or paused= with one or more of {','.join(PAUSABLE)}",
    "scale": "scale=Deployment/NAMESPACE/NAME or scale=StatefulSet/NAMESPACE/NAME:1",
}
_PARSERS: Final[dict[str, ValueParser]] = {
    "replicas": lambda text: ScheduledValues(replicas=_parse_number(text)),
    "percentage": lambda text: ScheduledValues(percentage=_parse_number(text)),
    "consolidation-policy": _parse_policy,
    "consolidate-after": _parse_consolidate_after,
    "budget": _parse_budget,
    "paused": _parse_paused,
    "scale": _parse_workload,
}
NODE_POOL_KEYS: Final = (
    "replicas", _LIMITS_PREFIX, "consolidation-policy", "consolidate-after", "budget", "paused", "scale"
)  # fmt: skip
BUFFER_KEYS: Final = ("replicas", "percentage", _LIMITS_PREFIX)
