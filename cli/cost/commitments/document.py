"""The commitments document: the Savings Plans and Reserved Instances of an account, as users write them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from cli.inputs.documents import parse_documents
from cli.inputs.files import read_utf8
from cli.terminal.errors import InputError
from shared.model.core.units import parse_instant

_EXPECTED: Final = "a commitments document (docs/guide/money.md)"
_FIELD_PATTERN: Final = re.compile(r" - at `\$\.(?P<path>[^`]+)`$")
_NAMED_FIELD_PATTERN: Final = re.compile(r"(?:required|unknown) field `(?P<name>[^`]+)`")
_FIXES: Final = {
    "id": "write the id that AWS shows",
    "type": "write Compute or EC2Instance",
    "usdPerHour": "write an amount in USD like 2.50",
    "discountPercent": "write a percentage below 100 like 27.5",
    "start": "write a time like 2026-11-01T00:00:00Z",
    "end": "write a time like 2027-11-01T00:00:00Z",
    "count": "write a whole number like 4",
    "instanceType": "write an instance type like m5.large",
    "instanceFamily": "write an instance family like m5",
    "region": "write a region like us-east-1",
    "zone": "write a zone like us-east-1a",
    "rates": "write a list like [{instanceFamily: m5, discountPercent: 27}]",
}

Usd = Annotated[float, msgspec.Meta(gt=0)]
Percent = Annotated[float, msgspec.Meta(gt=0, lt=100)]
InstanceTypeName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")]
InstanceFamilyName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+$")]
RegionName = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+(-[a-z]+)+-\d+$")]
ZoneName = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+(-[a-z]+)+-\d+(-[a-z]+-\d+)?[a-z]$")]


class RateEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The rate of a Savings Plan for an instance type, or its discount for an instance type or family."""

    instance_type: InstanceTypeName | None = None
    instance_family: InstanceFamilyName | None = None
    usd_per_hour: Usd | None = None
    discount_percent: Percent | None = None


class SavingsPlanEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A Savings Plan."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    type: Literal["Compute", "EC2Instance"]
    usd_per_hour: Usd
    """The commitment."""
    start: str | None = None
    end: str
    region: RegionName | None = None
    instance_family: InstanceFamilyName | None = None
    rates: Annotated[tuple[RateEntry, ...], msgspec.Meta(min_length=1)]


class ReservedInstancesEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Reserved Instances of one purchase: regional with *region*, zonal with *zone*."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    instance_type: InstanceTypeName
    count: Annotated[int, msgspec.Meta(ge=1)]
    usd_per_hour: Usd
    """Effective price of one instance: its share of the payment in advance is included."""
    start: str | None = None
    end: str
    region: RegionName | None = None
    zone: ZoneName | None = None


class CommitmentsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The valid content of a commitments document."""

    savings_plans: tuple[SavingsPlanEntry, ...] = ()
    reserved_instances: tuple[ReservedInstancesEntry, ...] = ()


EntryT = TypeVar("EntryT", bound=SavingsPlanEntry | ReservedInstancesEntry)


def read_commitments(file: str) -> CommitmentsDocument:
    """Read the commitments document *file*, JSON or YAML.

    Raises:
        InputError: The file cannot be read, or has errors; the message has one line for each.
    """
    errors: list[str] = []
    name = f"--commitments {file}"
    values = [
        document.value for document in parse_documents(name, read_utf8(name, Path(file), _EXPECTED), errors.append)
    ]
    if errors:
        raise InputError("\n".join(errors))
    if len(values) != 1:
        raise InputError(f"{name}: {len(values)} documents: write one document")
    return parse_commitments(name, values[0])


def parse_commitments(name: str, content: Any) -> CommitmentsDocument:  # noqa: ANN401 - JSON
    """Validate *content*, the JSON value of the document *name*.

    Raises:
        InputError: *content* has errors; the message has one line for each.
    """
    lists = content if isinstance(content, dict) else {}
    unknown_keys = [key for key in lists if key not in ("savingsPlans", "reservedInstances")]
    if not lists or unknown_keys:
        reason = f"unknown field {unknown_keys[0]}" if unknown_keys else "no commitments"
        raise InputError(f"{name}: {reason}: write the lists savingsPlans and reservedInstances")
    errors: list[str] = []
    plans = _parse_list(f"{name}: savingsPlans", lists.get("savingsPlans"), SavingsPlanEntry, errors)
    reserved = _parse_list(f"{name}: reservedInstances", lists.get("reservedInstances"), ReservedInstancesEntry, errors)
    ids = [*(plan.id for plan in plans), *(reservation.id for reservation in reserved)]
    errors.extend(
        f"{name}: id: {identifier} is used twice: give each commitment its own id"
        for identifier in sorted(set(ids))
        if ids.count(identifier) > 1
    )
    if errors:
        raise InputError("\n".join(errors))
    return CommitmentsDocument(savings_plans=plans, reserved_instances=reserved)


def _parse_list(name: str, items: Any, entry_type: type[EntryT], errors: list[str]) -> tuple[EntryT, ...]:  # noqa: ANN401
    """Parse *items*, a list of commitments; append a message to *errors* for each error."""
    if items is None:
        return ()
    if not isinstance(items, list):
        errors.append(f"{name}: is not a list: begin each commitment with `- id:`")
        return ()
    entries: list[EntryT] = []
    for position, item in enumerate(items):
        identifier = item.get("id") if isinstance(item, dict) else None
        location = f"{name}[{position}]{f' ({identifier})' if identifier else ''}"
        try:
            entry = msgspec.convert(item, entry_type)
        except msgspec.ValidationError as error:
            errors.append(f"{location}: {_describe_error(str(error))}")
            continue
        entry_errors = [*_check_term(entry.start, entry.end), *_check_entry(entry)]
        errors.extend(f"{location}: {message}" for message in entry_errors)
        entries.append(entry)
    return tuple(entries)


def _describe_error(message: str) -> str:
    """Return the error of msgspec as `field: reason: fix`."""
    at_field, named_field = _FIELD_PATTERN.search(message), _NAMED_FIELD_PATTERN.search(message)
    path = at_field["path"] if at_field is not None else ""
    reason = _FIELD_PATTERN.sub("", message)
    if named_field is not None:
        path = f"{path}.{named_field['name']}".lstrip(".")
        reason = "is missing" if "required" in message else "is an unknown field"
    fix = "remove it" if "unknown" in reason else _FIXES.get(path.rpartition(".")[2].partition("[")[0], "")
    return ": ".join(part for part in (path, reason, fix or "see docs/guide/money.md") if part)


def _check_term(start: str | None, end: str) -> Iterator[str]:
    instants = {}
    for field, text in (("start", start), ("end", end)):
        try:
            instants[field] = parse_instant(text) if text is not None else None
        except ValueError:
            yield f"{field}: {text!r} is not a time with a time zone: {_FIXES[field]}"
    first, last = instants.get("start"), instants.get("end")
    if first is not None and last is not None and first >= last:
        yield "end: is not after start: correct one of them"


def _check_entry(entry: SavingsPlanEntry | ReservedInstancesEntry) -> Iterator[str]:
    if isinstance(entry, ReservedInstancesEntry):
        if (entry.region is None) == (entry.zone is None):
            yield "region: write either region (regional) or zone (zonal)"
        return
    is_instance_plan = entry.type == "EC2Instance"
    for field, value in (("region", entry.region), ("instanceFamily", entry.instance_family)):
        if is_instance_plan and value is None:
            yield f"{field}: is missing: {_FIXES[field]}"
        elif not is_instance_plan and value is not None:
            yield f"{field}: a Compute Savings Plan applies to all: remove it"
    for position, rate in enumerate(entry.rates):
        for message in _check_rate(rate, entry.instance_family):
            yield f"rates[{position}]: {message}"


def _check_rate(rate: RateEntry, plan_family: str | None) -> Iterator[str]:
    if (rate.instance_type is None) == (rate.instance_family is None):
        yield "instanceType: write either instanceType or instanceFamily"
        return
    if (rate.usd_per_hour is None) == (rate.discount_percent is None):
        yield "usdPerHour: write either usdPerHour or discountPercent"
    elif rate.instance_family is not None and rate.discount_percent is None:
        yield "usdPerHour: sizes of an instance family have different rates: write discountPercent"
    family = rate.instance_family or (rate.instance_type or "").partition(".")[0]
    if plan_family is not None and family != plan_family:
        yield f"instanceFamily: {family} is not {plan_family}, the instance family of the plan: remove this rate"
