"""Finding the cycle to replay by the names that `joiner explain` prints, and loading its decision record."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import msgspec

from cli.journal.journal import S3_SCHEME, Cycle, Journal, open_bucket
from cli.terminal.errors import InputError
from shared.errors import NotFound
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import Function
from shared.model.decisions.decision_answers import AppliedOverlays, find_answer
from shared.report.journal.decision_record import DecisionRecord, decode_record
from shared.report.journal.journal import JOURNAL_PREFIX
from shared.store.catalog_format import decode_catalog

LATEST: Final = "latest"
REPLAYABLE_FUNCTIONS: Final = ("provision", "disrupt", "interrupt", "lifecycle", "catalog")
"""Functions whose decisions can be replayed."""
MAX_LISTED_CYCLES: Final = 5
_TIME_PATTERN: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)?[T ]?(?P<clock>\d\d(:\d\d){0,2})?(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


class UnknownCycle(Exception):
    """No cycle or more than one cycle matches, or it cannot be replayed; the message says so, with a fix."""


class CycleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The user's description of a cycle."""

    text: str = ""
    """A key, the end of a key, a timestamp or the beginning of one, or `LATEST`."""
    function: str = ""


def parse_cycle_query(words: Sequence[str], function: str) -> CycleQuery:
    """Parse *words*: a function's name among them, in any order, and the text of the query.

    >>> parse_cycle_query(["provision", "2026-11-21", "08:05"], "")
    CycleQuery(text='2026-11-21 08:05', function='provision')
    """
    function_names = [word for word in words if word in get_args(Function)]
    query_text = " ".join(word for word in words if word not in function_names)
    return CycleQuery(text=query_text or LATEST, function=function or (function_names[0] if function_names else ""))


def compute_lookback(query: CycleQuery, now: datetime) -> timedelta | None:
    """Return how far back the journal must be read for the date in *query*; None if it has no date."""
    match = _TIME_PATTERN.fullmatch(query.text)
    if match is None or not match["date"]:
        return None
    try:
        start_of_day = datetime.fromisoformat(match["date"]).replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(now - start_of_day + timedelta(days=1), timedelta(days=1))


def select_cycle(journal: Journal, query: CycleQuery) -> Cycle:
    """Return the cycle that *query* describes; it has a decision record.

    Raises:
        UnknownCycle: no cycle or more than one cycle matches, or no decision record was stored for it.
    """
    source_text = f"{journal.source}{f' (function {query.function})' if query.function else ''}"
    cycles = [cycle for cycle in journal.cycles if query.function in ("", cycle.entry.function)]
    if query.text != LATEST:
        cycles = _match_cycles(cycles, query.text)
        if not cycles:
            raise UnknownCycle(f"cycle {query.text} not found in {source_text}; --list shows the replayable cycles")
    replayable_cycles = [cycle for cycle in cycles if cycle.entry.snapshot]
    if not replayable_cycles:
        subject = cycles[0].key if query.text != LATEST else f"{format_count(len(cycles), 'cycle')} in {source_text}"
        raise UnknownCycle(f"{subject} cannot be replayed{_explain_missing_record(cycles)}")
    if query.text != LATEST and len(replayable_cycles) > 1:
        names = (f"{cycle.entry.function} {format_timestamp(cycle.entry.at)}" for cycle in replayable_cycles)
        counts = format_count(len(replayable_cycles), "cycle")
        raise UnknownCycle(f"{query.text} matches {counts}: write one of {join_names(names, MAX_LISTED_CYCLES)}")
    return replayable_cycles[-1]


def format_timestamp(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def _match_cycles(cycles: Sequence[Cycle], text: str) -> list[Cycle]:
    exact = [cycle for cycle in cycles if text in (cycle.key, JOURNAL_PREFIX + cycle.key)]
    return exact or [cycle for cycle in cycles if _is_at_time(cycle.entry.at, text) or _is_key_ending(cycle.key, text)]


def _is_key_ending(key: str, text: str) -> bool:
    name = key.rpartition("/")[2].removesuffix(".json")
    return bool(text) and text in (name, name.partition("-")[2])


def _is_at_time(at: datetime, text: str) -> bool:
    """Return whether *at* begins with the time in *text*; a time with an offset is compared in UTC, to the second."""
    match = _TIME_PATTERN.fullmatch(text)
    if match is None or not (match["date"] or match["clock"]):
        return False
    timestamp, clock, zone = format_timestamp(at), match["clock"] or "", match["zone"] or ""
    if not match["date"]:
        return timestamp.partition("T")[2].startswith(clock)
    prefix = f"{match['date']}T{clock}" if clock else match["date"]
    if clock and zone not in ("", "Z"):
        try:
            prefix = format_timestamp(datetime.fromisoformat(f"{prefix}{zone}"))[: len(prefix)]
        except ValueError:
            return False
    return timestamp.startswith(prefix)


def _explain_missing_record(cycles: Sequence[Cycle]) -> str:
    """Explain why no decision record was stored for *cycles*."""
    functions = {cycle.entry.function for cycle in cycles}
    if cycles and not functions & set(REPLAYABLE_FUNCTIONS):
        return f": {min(functions)} makes no decisions, it only invokes other functions"
    if any(cycle.entry.error for cycle in cycles):
        return ": the cycle failed before it decided anything"
    return (
        ": no decision record was stored. Reasons can be: the cycle decided nothing, the setting snapshots was off, or "
        "the entry is from a version without decision records"
    )


class RecordStore:
    """Decision records and catalogs next to the journal, in a folder or in a bucket."""

    def __init__(self, source: str) -> None:
        """Read records next to the journal at *source*, as ``--journal`` names it."""
        self._source = source

    def load_record(self, key: str) -> DecisionRecord:
        """Return the decision record under *key*.

        Raises:
            InputError: it does not exist, or cannot be read.
        """
        body = self._read_body(key, "it expired, or only journal/ was copied: copy snapshot/ and catalogue/ too")
        try:
            return decode_record(body)
        except ValueError as error:
            raise InputError(f"{key}: not a decision record that this version can read: {error}") from None

    def load_catalog(self, key: str) -> Catalog:
        """Return the catalog under *key*.

        Raises:
            InputError: it does not exist, or cannot be read.
        """
        body = self._read_body(key, "add --instance-types FILE, or copy catalogue/ too")
        try:
            return decode_catalog(body)
        except ValueError as error:
            raise InputError(f"{key}: {error}: add --instance-types FILE") from None

    def load_overlaid_catalog(self, record: DecisionRecord) -> Catalog | None:
        """Return the catalog that `lifecycle` applied NodeOverlays to, None if it applied none.

        Raises:
            InputError: it does not exist, or cannot be read.
        """
        applied = find_answer(record.inputs.answers, AppliedOverlays) or AppliedOverlays()
        return self.load_catalog(applied.catalog_key) if applied.catalog_key else None

    def _read_body(self, key: str, fix: str) -> bytes:
        if self._source.startswith(S3_SCHEME):
            return self._read_from_bucket(key, fix)
        folder = Path(self._source)
        for root in (folder, folder.parent):
            try:
                return (root / key).read_bytes()
            except OSError:
                continue
        raise InputError(f"{key}: not found in {self._source}: {fix}")

    def _read_from_bucket(self, key: str, fix: str) -> bytes:
        with open_bucket(self._source) as (bucket, prefix):
            parent_prefix = prefix.rstrip("/").rpartition("/")[0]
            try:
                return bucket.get(f"{parent_prefix}/{key}" if parent_prefix else key)
            except NotFound:
                raise InputError(f"{key}: not found in {self._source}: {fix}") from None
