"""The daily cost reports as they lie in a folder or in a bucket."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from cli.clouds import region_here, said
from cli.files import InputError
from cli.progress import progress
from shared.errors import Fault
from shared.model.cluster import Cluster
from shared.report.costs import Ledger, billed, day_of
from shared.report.days import Day, day
from shared.report.ledger import PREFIX, TODAY

S3: Final = "s3://"
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d\.json")
_TODAY: Final = TODAY.removeprefix(PREFIX)


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    days: tuple[Day, ...] = ()
    """Oldest first; today's, so far, is the last."""
    ledger: Ledger | None = None
    told: tuple[str, ...] = ()
    """What could not be read."""


def costs_at(source: str, most: int) -> Costs:
    """Read the last *most* reports at *source*: a folder, or ``s3://bucket``.

    Raises:
        InputError: there is no such folder, or the bucket does not answer.
    """
    with progress(f"reading the costs in {source}"):
        return _of_bucket(source, most) if source.startswith(S3) else _of_folder(source, most)


def with_now(costs: Costs, fleet: Cluster, label: str, now: datetime) -> Costs:
    """Answer *costs* with today up to *now*: from the ledger, if there is one of today, and from the *fleet*."""
    today, ledger = day_of(now), costs.ledger
    if ledger is None or ledger.day != today:
        ledger = Ledger(since=today, until=today)
    known = costs.days[-1] if costs.days else None
    wanted = label or (known.label if known is not None else "")
    current = day(billed(ledger, (), fleet, wanted, now), known.cluster if known is not None else "", wanted)
    earlier = (one for one in costs.days if one.day != current.day)
    return msgspec.structs.replace(costs, days=(*earlier, current), ledger=None)


def _of_folder(source: str, most: int) -> Costs:
    folder = Path(source)
    if not folder.is_dir():
        raise InputError(f"--journal {source}: no such folder: name one that holds costs/, or s3://BUCKET")
    inner = folder / PREFIX
    folder = inner if inner.is_dir() else folder
    return _read([one.name for one in folder.glob("*.json")], lambda name: (folder / name).read_bytes(), most)


def _of_bucket(source: str, most: int) -> Costs:
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415

    name, _, prefix = source.removeprefix(S3).partition("/")
    if not name:
        raise InputError(f"--journal {source}: names no bucket: write s3://BUCKET")
    root = f"{prefix.rstrip('/').removesuffix('journal').rstrip('/')}/{PREFIX}".lstrip("/")
    clients = Clients(region_here() or "us-east-1")
    try:
        bucket = S3Bucket(clients, name)
        names = [key.removeprefix(root) for key in bucket.keys(root)]
        return _read(names, lambda one: bucket.get(f"{root}{one}"), most)
    except Fault as fault:
        raise InputError(f"--journal {source}: {said(fault)}") from None
    finally:
        clients.close()


def _read(names: Iterable[str], body_of: Callable[[str], bytes], most: int) -> Costs:
    found: list[Day] = []
    told: list[str] = []
    every = sorted(names)
    for name in [one for one in every if _DAY.fullmatch(one)][-most:]:
        try:
            found.append(msgspec.json.decode(body_of(name), type=Day))
        except (msgspec.DecodeError, OSError) as error:
            told.append(f"{name}: no report of a day: {error}")
    ledger = _ledger(body_of, told) if _TODAY in every else None
    if ledger is not None and ledger.until > ledger.since:
        known = found[-1] if found else None
        found.append(day(ledger, known.cluster if known else "", known.label if known else ""))
    return Costs(days=tuple(found), ledger=ledger, told=tuple(told))


def _ledger(body_of: Callable[[str], bytes], told: list[str]) -> Ledger | None:
    try:
        return msgspec.json.decode(body_of(_TODAY), type=Ledger)
    except (msgspec.DecodeError, OSError) as error:
        told.append(f"{_TODAY}: no ledger: {error}")
        return None
