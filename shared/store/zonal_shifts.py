"""The zonal shifts of the cluster: one table row that all functions share, so that ARC is asked at most twice a minute.

A state that cannot be read does not end a shift: the row keeps the last known shifts.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Fault, NotFound
from shared.model.cloud_provider.zonal_shift import ZonalShiftRecord, record_failure, record_shifts
from shared.model.core.metadata import Problem
from shared.model.core.units import format_instant
from shared.ports.aws import ZonalShiftService
from shared.ports.storage import Table, TableRow
from shared.store.table_rows import decode_body_text, encode_body, try_write

ROW_KIND: Final = "zonal-shifts"
ROW_NAME: Final = "cluster"
POLL_INTERVAL: Final = timedelta(seconds=30)
"""As in Karpenter: a record that is older is read again."""
_NOT_ENABLED: Final = "zonal shift is not enabled for the cluster"


def read_zonal_shifts(
    table: Table,
    service: ZonalShiftService,
    cluster_arn: str,
    now: datetime,
    problems: list[Problem],
    *,
    can_write: bool = True,
) -> ZonalShiftRecord:
    """Return the zonal shifts; ask ARC if the stored record is older than `POLL_INTERVAL`.

    An error of ARC adds to *problems* in each run until ARC responds.

    Raises:
        Fault: the table could not be read.
    """
    row = table.read(ROW_KIND, ROW_NAME)
    previous = decode_zonal_shifts(row, problems)
    if previous is not None and timedelta() <= now - previous.attempted_at < POLL_INTERVAL:
        record = previous
    else:
        record = _query_service(service, cluster_arn, previous, now)
        if can_write:
            _write_record(table, record, 0 if row is None else row.version, problems)
    if record.error:
        problems.append(Problem(kind=ROW_KIND, name=cluster_arn, message=describe_failure(record)))
    return record


def read_stored_shifts(table: Table) -> ZonalShiftRecord | None:
    """Return the stored record without a call of ARC; None if there is none.

    Raises:
        Fault: the table could not be read.
    """
    return decode_zonal_shifts(table.read(ROW_KIND, ROW_NAME), [])


def decode_zonal_shifts(row: TableRow | None, problems: list[Problem]) -> ZonalShiftRecord | None:
    """Return the stored record; None, with a problem, if it cannot be decoded."""
    try:
        return None if row is None else decode_body_text(row.body, ZonalShiftRecord)
    except msgspec.DecodeError as error:
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=f"body: {error}; zonal shifts are read again"))
        return None


def describe_failure(record: ZonalShiftRecord) -> str:
    """Return what the error of *record* means for plans."""
    if record.error.startswith(_NOT_ENABLED):
        return record.error
    known_text = (
        "no zonal shift is known"
        if record.read_at is None
        else f"the zonal shifts of {format_instant(record.read_at)} apply until they expire"
    )
    return f"could not be read: {record.error}; {known_text}"


def _query_service(
    service: ZonalShiftService, cluster_arn: str, previous: ZonalShiftRecord | None, now: datetime
) -> ZonalShiftRecord:
    try:
        return record_shifts(previous, service.get_zonal_shifts(cluster_arn), now)
    except NotFound:
        # An answer, not an error: ARC applies no shift to a cluster that it does not manage.
        return msgspec.structs.replace(record_shifts(previous, (), now), error=_explain_not_enabled(cluster_arn))
    except Fault as fault:
        return record_failure(previous, f"{type(fault).__name__}: {fault}", now)


def _explain_not_enabled(cluster_arn: str) -> str:
    name = cluster_arn.rpartition("/")[2]
    command = f"aws eks update-cluster-config --name {name} --zonal-shift-config enabled=true"
    return f"{_NOT_ENABLED}; to fix: run `{command}`, or set `zonal-shift: off`"


def _write_record(table: Table, record: ZonalShiftRecord, version: int, problems: list[Problem]) -> None:
    """Write the record, unless another function has written since it was read."""
    body = encode_body(record, ROW_KIND, "zonal shifts are not stored")
    try:
        try_write(table, ROW_KIND, ROW_NAME, body, version=version)
    except Fault as fault:
        message = f"could not be stored: {type(fault).__name__}: {fault}; the next run asks ARC again"
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=message))
