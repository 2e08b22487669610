"""Which cycle is meant, and what it was decided from: found by the names that `joiner explain` prints."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import msgspec

from cli.clouds import region_here, said
from cli.explain_journals import S3, Cycle, Journal
from cli.files import InputError
from cli.replayed import DECIDING
from cli.text import count
from shared.errors import Fault, Gone
from shared.model.action import Function
from shared.model.catalogue import Catalogue
from shared.report.journal import PREFIX
from shared.report.snapshots import Snapshot, read_snapshot
from shared.snapshot.catalogue import decode_catalogue

LATEST: Final = "latest"
NAMED: Final = 5
_TIME: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)?[T ]?(?P<clock>\d\d(:\d\d){0,2})?(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_WHOLE: Final = 19
"""Characters of an instant to the second."""


class Unknown(Exception):
    """No cycle is meant, or several are, or it cannot be decided again; the message says so, with a remedy."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody calls a cycle."""

    text: str = ""
    """A key, its end, an instant or the beginning of one, or `LATEST`."""
    function: str = ""


def asked_for(words: Sequence[str], function: str) -> Asked:
    """Read *words*: a function's name among them, in any order, and the rest.

    >>> asked_for(["provision", "2026-11-21", "08:05"], "")
    Asked(text='2026-11-21 08:05', function='provision')
    """
    named = [one for one in words if one in get_args(Function)]
    rest = " ".join(one for one in words if one not in named)
    return Asked(text=rest or LATEST, function=function or (named[0] if named else ""))


def since_of(asked: Asked, now: datetime) -> timedelta | None:
    """Answer how far back one has to read for the date that is in it, None if there is none."""
    match = _TIME.fullmatch(asked.text)
    if match is None or not match["date"]:
        return None
    try:
        first = datetime.fromisoformat(match["date"]).replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(now - first + timedelta(days=1), timedelta(days=1))


def found(journal: Journal, asked: Asked) -> Cycle:
    """Answer the cycle that is meant, with what it was decided from.

    Raises:
        Unknown: none or several are, or nothing was kept of it.
    """
    mine = [one for one in journal.cycles if asked.function in ("", one.entry.function)]
    if asked.text == LATEST:
        kept = [one for one in mine if one.entry.snapshot]
        if kept:
            return kept[-1]
        raise Unknown(
            f"{_where(journal, asked)}: {count(len(mine), 'cycle')}, and none can be decided again{_why(mine)}"
        )
    some = _called(mine, asked.text)
    if not some:
        raise Unknown(f"{asked.text}: no such cycle in {_where(journal, asked)}; --list shows which there are")
    kept = [one for one in some if one.entry.snapshot]
    if len(kept) > 1:
        names = ", ".join(f"{one.entry.function} {instant(one.entry.at)}" for one in kept[:NAMED])
        rest = f" and {len(kept) - NAMED} more" if len(kept) > NAMED else ""
        raise Unknown(f"{asked.text}: {len(kept)} cycles are called so: {names}{rest}: write one of them")
    if not kept:
        raise Unknown(f"{some[0].key}: cannot be decided again{_why(some)}")
    return kept[0]


def instant(at: datetime) -> str:
    """Answer *at* to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def _where(journal: Journal, asked: Asked) -> str:
    return f"{journal.source}{f' of {asked.function}' if asked.function else ''}"


def _called(some: Iterable[Cycle], text: str) -> list[Cycle]:
    every = list(some)
    exact = [one for one in every if text in (one.key, PREFIX + one.key)]
    if exact:
        return exact
    is_time = _is_time(text)
    return [one for one in every if (is_time and _is_then(one.entry.at, text)) or _ends(one.key, text)]


def _ends(key: str, text: str) -> bool:
    name = key.rpartition("/")[2].removesuffix(".json")
    return bool(text) and text in (name, name.partition("-")[2])


def _is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    return match is not None and bool(match["date"] or match["clock"])


def _is_then(at: datetime, text: str) -> bool:
    """Whether *at* begins with *text*; an instant with its offset is compared in UTC, to the second."""
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    clock, zone = match["clock"] or "", match["zone"] or ""
    if match["date"] and clock and zone not in ("", "Z"):
        try:
            meant = datetime.fromisoformat(f"{match['date']}T{clock}{zone}")
        except ValueError:
            return False
        return instant(at)[: len(f"{match['date']}T{clock}")] == instant(meant)[: len(f"{match['date']}T{clock}")]
    if match["date"]:
        return (
            instant(at).startswith(f"{match['date']}T{clock}"[:_WHOLE])
            if clock
            else instant(at).startswith(match["date"])
        )
    return instant(at)[11:].startswith(clock)


def _why(some: Sequence[Cycle]) -> str:
    """Say why nothing was kept of *some*."""
    functions = {one.entry.function for one in some}
    if some and not functions & set(DECIDING):
        return f": {min(functions)} only wakes others: it decides nothing"
    if any(one.entry.error for one in some):
        return ": it failed before anything was decided"
    return (
        ": nothing was kept of what it was decided from: it decided nothing, joiner:snapshots was off, or it was "
        "written by a version that kept none"
    )


class Store:
    """Where snapshots and catalogues lie: beside the journal, in a folder or in a bucket."""

    def __init__(self, source: str) -> None:
        """Look beside the journal at *source*, as ``--journal`` names it."""
        self._source = source

    def snapshot(self, key: str) -> Snapshot:
        """Answer the snapshot under *key*.

        Raises:
            InputError: it is not there, or cannot be read.
        """
        body = self._body(key, "it became too old, or only journal/ was copied: copy snapshot/ and catalogue/ too")
        try:
            return read_snapshot(body)
        except ValueError as error:
            raise InputError(f"{key}: no snapshot that this version can read: {error}") from None

    def catalogue(self, key: str) -> Catalogue:
        """Answer the catalogue under *key*.

        Raises:
            InputError: it is not there, or cannot be read.
        """
        body = self._body(key, "name another with --instance-types, or copy catalogue/ too")
        try:
            return decode_catalogue(body)
        except ValueError as error:
            raise InputError(f"{key}: {error}: name another with --instance-types") from None

    def overlaid(self, snapshot: Snapshot) -> Catalogue | None:
        """Answer the catalogue that `lifecycle` tried NodeOverlays on, if it tried any.

        Raises:
            InputError: it is not there, or cannot be read.
        """
        kept = snapshot.given.kept
        return self.catalogue(kept.catalogue) if kept is not None and kept.catalogue else None

    def _body(self, key: str, remedy: str) -> bytes:
        if self._source.startswith(S3):
            return self._of_bucket(key, remedy)
        folder = Path(self._source)
        for root in (folder, folder.parent):
            try:
                return (root / key).read_bytes()
            except OSError:
                continue
        raise InputError(f"{key}: is not in {self._source}: {remedy}")

    def _of_bucket(self, key: str, remedy: str) -> bytes:
        from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
        from shared.aws.s3 import S3Bucket  # noqa: PLC0415

        name, _, prefix = self._source.removeprefix(S3).partition("/")
        above = prefix.rstrip("/").rpartition("/")[0]
        clients = Clients(region_here() or "us-east-1")
        try:
            return S3Bucket(clients, name).get(f"{above}/{key}" if above else key)
        except Gone:
            raise InputError(f"{key}: is not in {self._source}: {remedy}") from None
        except Fault as fault:
            raise InputError(f"{self._source}: {said(fault)}") from None
        finally:
            clients.close()
