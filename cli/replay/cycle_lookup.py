"""Finding the cycle to replay by the names that `joiner explain` prints, and loading its decision record."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import msgspec

from cli.explain.journal import S3_SCHEME, Cycle, Journal, open_bucket
from cli.replay.rerun import REPLAYABLE_FUNCTIONS
from cli.terminal.errors import InputError
from shared.errors import NotFound
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.formatting import format_count
from shared.model.decisions.action import Function
from shared.model.decisions.decision_answers import AppliedOverlays, find_answer
from shared.report.journal.decision_record import DecisionRecord, decode_record
from shared.report.journal.journal import JOURNAL_PREFIX
from shared.store.catalog_format import decode_catalog

LATEST: Final = "latest"
MAX_LISTED_CYCLES: Final = 5
_TIME_PATTERN: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)?[T ]?(?P<clock>\d\d(:\d\d){0,2})?(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_TIMESTAMP_CHARACTERS: Final = 19
"""Characters of a timestamp to the second."""


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
    function_cycles = [cycle for cycle in journal.cycles if query.function in ("", cycle.entry.function)]
    if query.text == LATEST:
        replayable_cycles = [cycle for cycle in function_cycles if cycle.entry.snapshot]
        if replayable_cycles:
            return replayable_cycles[-1]
        cycles_text = f"{_describe_source(journal, query)}: {format_count(len(function_cycles), 'cycle')}"
        explanation = _explain_missing_record(function_cycles)
        raise UnknownCycle(f"{cycles_text}, and none can be decided again{explanation}")
    matching_cycles = _match_cycles(function_cycles, query.text)
    if not matching_cycles:
        raise UnknownCycle(
            f"{query.text}: no such cycle in {_describe_source(journal, query)}; --list shows which there are"
        )
    replayable_cycles = [cycle for cycle in matching_cycles if cycle.entry.snapshot]
    if len(replayable_cycles) > 1:
        names = ", ".join(
            f"{cycle.entry.function} {format_timestamp(cycle.entry.at)}"
            for cycle in replayable_cycles[:MAX_LISTED_CYCLES]
        )
        more_text = (
            f" and {len(replayable_cycles) - MAX_LISTED_CYCLES} more"
            if len(replayable_cycles) > MAX_LISTED_CYCLES
            else ""
        )
        raise UnknownCycle(
            f"{query.text}: {len(replayable_cycles)} cycles are called so: {names}{more_text}: write one of them"
        )
    if not replayable_cycles:
        raise UnknownCycle(
            f"{matching_cycles[0].key}: cannot be decided again{_explain_missing_record(matching_cycles)}"
        )
    return replayable_cycles[0]


def format_timestamp(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def _describe_source(journal: Journal, query: CycleQuery) -> str:
    return f"{journal.source}{f' of {query.function}' if query.function else ''}"


def _match_cycles(cycles: Iterable[Cycle], text: str) -> list[Cycle]:
    all_cycles = list(cycles)
    exact = [cycle for cycle in all_cycles if text in (cycle.key, JOURNAL_PREFIX + cycle.key)]
    if exact:
        return exact
    is_time = _is_time(text)
    return [
        cycle
        for cycle in all_cycles
        if (is_time and _is_at_time(cycle.entry.at, text)) or _is_key_ending(cycle.key, text)
    ]


def _is_key_ending(key: str, text: str) -> bool:
    name = key.rpartition("/")[2].removesuffix(".json")
    return bool(text) and text in (name, name.partition("-")[2])


def _is_time(text: str) -> bool:
    match = _TIME_PATTERN.fullmatch(text)
    return match is not None and bool(match["date"] or match["clock"])


def _is_at_time(at: datetime, text: str) -> bool:
    """Return whether *at* begins with *text*; a timestamp with an offset is compared in UTC, to the second."""
    match = _TIME_PATTERN.fullmatch(text)
    if match is None:
        return False
    clock, zone = match["clock"] or "", match["zone"] or ""
    if match["date"] and clock and zone not in ("", "Z"):
        try:
            parsed_time = datetime.fromisoformat(f"{match['date']}T{clock}{zone}")
        except ValueError:
            return False
        return (
            format_timestamp(at)[: len(f"{match['date']}T{clock}")]
            == format_timestamp(parsed_time)[: len(f"{match['date']}T{clock}")]
        )
    if match["date"]:
        return (
            format_timestamp(at).startswith(f"{match['date']}T{clock}"[:_TIMESTAMP_CHARACTERS])
            if clock
            else format_timestamp(at).startswith(match["date"])
        )
    return format_timestamp(at)[11:].startswith(clock)


def _explain_missing_record(cycles: Sequence[Cycle]) -> str:
    """Explain why no decision record was stored for *cycles*."""
    functions = {cycle.entry.function for cycle in cycles}
    if cycles and not functions & set(REPLAYABLE_FUNCTIONS):
        return f": {min(functions)} only wakes others: it decides nothing"
    if any(cycle.entry.error for cycle in cycles):
        return ": it failed before anything was decided"
    return (
        ": nothing was kept of what it was decided from: it decided nothing, joiner:snapshots was off, or it was "
        "written by a version that kept none"
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
        body = self._read_body(key, "it became too old, or only journal/ was copied: copy snapshot/ and catalogue/ too")
        try:
            return decode_record(body)
        except ValueError as error:
            raise InputError(f"{key}: no snapshot that this version can read: {error}") from None

    def load_catalog(self, key: str) -> Catalog:
        """Return the catalog under *key*.

        Raises:
            InputError: it does not exist, or cannot be read.
        """
        body = self._read_body(key, "name another with --instance-types, or copy catalogue/ too")
        try:
            return decode_catalog(body)
        except ValueError as error:
            raise InputError(f"{key}: {error}: name another with --instance-types") from None

    def load_overlaid_catalog(self, record: DecisionRecord) -> Catalog | None:
        """Return the catalog that `lifecycle` applied NodeOverlays to, None if it applied none.

        Raises:
            InputError: it does not exist, or cannot be read.
        """
        applied = find_answer(record.inputs.answers, AppliedOverlays) or AppliedOverlays()
        return self.load_catalog(applied.catalog_key) if applied.catalog_key else None

    def _read_body(self, key: str, remedy: str) -> bytes:
        if self._source.startswith(S3_SCHEME):
            return self._read_from_bucket(key, remedy)
        folder = Path(self._source)
        for root in (folder, folder.parent):
            try:
                return (root / key).read_bytes()
            except OSError:
                continue
        raise InputError(f"{key}: is not in {self._source}: {remedy}")

    def _read_from_bucket(self, key: str, remedy: str) -> bytes:
        with open_bucket(self._source) as (bucket, prefix):
            parent_prefix = prefix.rstrip("/").rpartition("/")[0]
            try:
                return bucket.get(f"{parent_prefix}/{key}" if parent_prefix else key)
            except NotFound:
                raise InputError(f"{key}: is not in {self._source}: {remedy}") from None
