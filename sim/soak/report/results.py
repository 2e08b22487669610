"""File of results: one JSON document per line, appended when a run has ended, so that a series can be continued."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec

from sim.soak.ideal_costs import IdealFigures
from sim.soak.report.summary import SoakSummary

SoakRecord: TypeAlias = SoakSummary | IdealFigures


def read_records(path: Path) -> list[SoakRecord]:
    """Return the records of *path* in order, the newest of each run; none if the file does not exist.

    Raises:
        ValueError: a line is not a record.
    """
    if not path.exists():
        return []
    record_by_key: dict[object, SoakRecord] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            record = msgspec.json.decode(line, type=SoakRecord)
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
        record_by_key[record.key] = record
    return list(record_by_key.values())


def append_records(path: Path, records: Iterable[SoakRecord]) -> None:
    """Append *records* to *path*."""
    with path.open("ab") as file:
        for record in records:
            file.write(msgspec.json.encode(record) + b"\n")
