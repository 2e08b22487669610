"""The commitments document: the Savings Plans and Reserved Instances of an account, as users write them.

`joiner cost --commitments` reads it as YAML or JSON. The functions have no YAML parser: they read the JSON that `joiner
catalog commitments` writes, from the bucket.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from shared.model.core.units import parse_instant
from shared.model.ec2.commitments import Commitments, ReservedInstances, SavingsPlan
from shared.state.commitments.application import get_family

COMMITMENTS_KEY: Final = "market/commitments.json"
"""The object key of the document in the bucket."""
_REGION_PATTERN: Final = re.compile(r"[a-z]+(?:-[a-z]+)+-\d+")
"""The region at the start of the name of a zone."""
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


DocumentPath: TypeAlias = tuple[str | int, ...]
EntryT = TypeVar("EntryT", bound=SavingsPlanEntry | ReservedInstancesEntry)


class InvalidCommitmentsError(ValueError):
    """The document has errors: one line for each, with the position of its commitment in the document."""

    def __init__(self, errors: list[tuple[DocumentPath, str]]) -> None:
        """Report *errors*: the path of the commitment, and the message."""
        super().__init__("\n".join(message for _, message in errors))
        self.errors = errors


def parse_commitments(name: str, content: Any) -> CommitmentsDocument:  # noqa: ANN401 - JSON
    """Validate *content*, the JSON value of the document *name*.

    Raises:
        InvalidCommitmentsError: *content* has errors.
    """
    lists = content if isinstance(content, dict) else {}
    unknown_keys = [key for key in lists if key not in ("savingsPlans", "reservedInstances")]
    if not lists or unknown_keys:
        reason = f"unknown field {unknown_keys[0]}" if unknown_keys else "no commitments"
        message = f"{name}: {reason}: write the lists savingsPlans and reservedInstances"
        raise InvalidCommitmentsError([(tuple(unknown_keys[:1]), message)])
    errors: list[tuple[DocumentPath, str]] = []
    plans = _parse_list(name, "savingsPlans", lists, SavingsPlanEntry, errors)
    reserved = _parse_list(name, "reservedInstances", lists, ReservedInstancesEntry, errors)
    ids = [*(plan.id for plan in plans), *(reservation.id for reservation in reserved)]
    errors.extend(
        ((), f"{name}: id: {identifier} is used twice: give each commitment its own id")
        for identifier in sorted(set(ids))
        if ids.count(identifier) > 1
    )
    if errors:
        raise InvalidCommitmentsError(errors)
    return CommitmentsDocument(savings_plans=plans, reserved_instances=reserved)


def decode_commitments(name: str, body: bytes) -> CommitmentsDocument:
    """Decode the document *name*, which is JSON.

    Raises:
        ValueError: *body* is not JSON, or the document has errors.
    """
    try:
        content = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        fix = "write it with `joiner catalog commitments FILE`"
        raise ValueError(f"{name}: not JSON: {error}: {fix}") from None
    return parse_commitments(name, content)


def encode_commitments(document: CommitmentsDocument) -> bytes:
    """Encode *document* as `decode_commitments` reads it; fields that are not set are left out."""
    fields = {
        "savingsPlans": [_select_set_fields(msgspec.to_builtins(entry)) for entry in document.savings_plans],
        "reservedInstances": [_select_set_fields(msgspec.to_builtins(entry)) for entry in document.reserved_instances],
    }
    return msgspec.json.encode(fields)


def _select_set_fields(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _select_set_fields(field) for name, field in value.items() if field is not None}
    return [_select_set_fields(item) for item in value] if isinstance(value, list | tuple) else value


def build_commitments(
    document: CommitmentsDocument, regions: Collection[str], on_demand_prices: Mapping[str, float]
) -> Commitments:
    """Return the commitments of *document* that can apply in *regions*, with rates for the types in *on_demand_prices*.

    Without *regions*, they are unknown, and every commitment can apply.
    """
    plans = [entry for entry in document.savings_plans if _is_local(entry, regions)]
    reserved = [entry for entry in document.reserved_instances if _is_local(entry, regions)]
    local_ids = {*(plan.id for plan in plans), *(item.id for item in reserved)}
    all_ids = {*(plan.id for plan in document.savings_plans), *(item.id for item in document.reserved_instances)}
    return Commitments(
        reserved=tuple(
            ReservedInstances(
                reservation_id=entry.id,
                instance_type=entry.instance_type,
                count=entry.count,
                zone=entry.zone or "",
                usd_per_hour=entry.usd_per_hour,
                starts_at=parse_instant(entry.start) if entry.start is not None else None,
                ends_at=parse_instant(entry.end),
            )
            for entry in reserved
        ),
        plans=tuple(_build_plan(entry, on_demand_prices) for entry in plans),
        other_regions=tuple(sorted(all_ids - local_ids)),
    )


def find_region(zone: str) -> str:
    """Return the region of *zone*, "" if its name has none."""
    match = _REGION_PATTERN.match(zone)
    return match[0] if match is not None else ""


def _is_local(entry: SavingsPlanEntry | ReservedInstancesEntry, regions: Collection[str]) -> bool:
    zone_region = find_region(entry.zone or "") if isinstance(entry, ReservedInstancesEntry) else ""
    region = entry.region or zone_region
    return not region or not regions or region in regions


def _build_plan(entry: SavingsPlanEntry, on_demand_prices: Mapping[str, float]) -> SavingsPlan:
    """Return the plan of *entry*; a rate for an instance type overrides that of its family."""
    rate_by_type = {rate.instance_type: rate for rate in entry.rates if rate.instance_type is not None}
    rate_by_family = {rate.instance_family: rate for rate in entry.rates if rate.instance_family is not None}
    rates: dict[str, float] = {}
    for name, price in on_demand_prices.items():
        rate = rate_by_type.get(name) or rate_by_family.get(get_family(name))
        if rate is not None:
            rates[name] = rate.usd_per_hour or price * (1 - (rate.discount_percent or 0.0) / 100)
    return SavingsPlan(
        plan_id=entry.id,
        kind="compute" if entry.type == "Compute" else "ec2-instance",
        commitment_usd_per_hour=entry.usd_per_hour,
        instance_family=entry.instance_family or "",
        rates=tuple(sorted(rates.items())),
        starts_at=parse_instant(entry.start) if entry.start is not None else None,
        ends_at=parse_instant(entry.end),
    )


def _parse_list(
    name: str, key: str, lists: Mapping[str, Any], entry_type: type[EntryT], errors: list[tuple[DocumentPath, str]]
) -> tuple[EntryT, ...]:
    """Parse the list *key*; append the position and the message of each error to *errors*."""
    items = lists.get(key)
    if items is None:
        return ()
    if not isinstance(items, list):
        errors.append(((key,), f"{name}: {key}: is not a list: begin each commitment with `- id:`"))
        return ()
    entries: list[EntryT] = []
    for position, item in enumerate(items):
        identifier = item.get("id") if isinstance(item, dict) else None
        location = f"{name}: {key}[{position}]{f' ({identifier})' if identifier else ''}"
        try:
            entry = msgspec.convert(item, entry_type)
        except msgspec.ValidationError as error:
            errors.append(((key, position), f"{location}: {_describe_error(str(error))}"))
            continue
        entry_errors = [*_check_term(entry.start, entry.end), *_check_entry(entry)]
        errors.extend(((key, position), f"{location}: {message}") for message in entry_errors)
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
