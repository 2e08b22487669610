"""The row of the workload history in the table of a deployment: read, and completed."""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cli.aws.session import describe_fault, open_clients
from cli.history.history_completion import merge_histories
from cli.terminal.errors import InputError
from shared.errors import Conflict, Fault
from shared.model.decisions.workload_history import WorkloadHistory
from shared.ports.storage import Table
from shared.stack_name import format_stack_name
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import ROW_KIND, ROW_NAME, encode_workload_history

if TYPE_CHECKING:
    from shared.aws.clients import Clients

TABLE_VARIABLE: Final = "JOINER_TABLE_NAME"
_TABLE_RESOURCE: Final = "AWS::DynamoDB::Table"
_BUCKET_RESOURCE: Final = "AWS::S3::Bucket"
MAX_ATTEMPTS: Final = 3
"""The functions write the row every 10 minutes: two writes in a row rarely conflict."""


def is_table_named(args: argparse.Namespace) -> bool:
    """Return whether the arguments or the environment name a table."""
    return bool(args.table or args.cluster or args.stack or os.environ.get(TABLE_VARIABLE))


@contextmanager
def open_table(args: argparse.Namespace) -> Iterator[tuple[Table, str]]:
    """Open the table that *args* name; the context value is the table and its name.

    Raises:
        InputError: the table is unknown, or a call fails within the block.
    """
    from shared.aws.dynamodb import DynamoTable  # noqa: PLC0415 - botocore takes a fifth of a second

    with open_clients(args.region) as (clients, _):
        try:
            name = args.table or _find_stack_resource(args, clients, _TABLE_RESOURCE, "--table NAME")
            name = name or os.environ.get(TABLE_VARIABLE, "")
            yield DynamoTable(clients, name), name
        except Fault as fault:
            raise InputError(describe_fault(fault)) from None


def find_bucket(args: argparse.Namespace) -> str:
    """Return the name of the bucket of the stack that *args* name; "" if they name none.

    Raises:
        InputError: the stack has no bucket, or cannot be read.
    """
    if not (args.cluster or args.stack):
        return ""
    with open_clients(args.region) as (clients, _):
        try:
            return _find_stack_resource(args, clients, _BUCKET_RESOURCE, "--journal s3://BUCKET")
        except Fault as fault:
            raise InputError(describe_fault(fault)) from None


def _find_stack_resource(args: argparse.Namespace, clients: "Clients", kind: str, option: str) -> str:
    if not (args.cluster or args.stack):
        return ""
    from cli.facts.stack import list_stack_resources  # noqa: PLC0415 - boto3 and the Kubernetes client take a second

    stack = args.stack or format_stack_name(args.cluster)
    names = [name for listed_kind, _, name in list_stack_resources(clients, stack) if listed_kind == kind and name]
    if len(names) != 1:
        raise InputError(f"stack {stack} has {len(names) or 'no'} {kind}: add {option}")
    return names[0]


def read_stored_history(table: Table) -> tuple[WorkloadHistory, int]:
    """Return the stored history and the version of its row; without a row, an empty history and 0.

    Raises:
        Fault: the table did not respond.
        InputError: the row cannot be decoded.
    """
    row = table.read(ROW_KIND, ROW_NAME)
    if row is None:
        return WorkloadHistory(), 0
    try:
        return decode_body_text(row.body, WorkloadHistory), row.version
    except ValueError as error:
        raise InputError(
            f"the row {ROW_KIND}/{ROW_NAME} cannot be decoded ({error}); use the version of Joiner that is deployed"
        ) from None


def write_completed_history(
    table: Table, build: Callable[[WorkloadHistory], WorkloadHistory]
) -> tuple[WorkloadHistory, WorkloadHistory]:
    """Complete the stored history with that of *build*, and return the history before and after.

    *build* gets the stored history. If a function writes at the same time, the row is read and completed again.

    Raises:
        Fault: the table did not respond.
        InputError: the row cannot be decoded, or was written in between each time.
    """
    for _ in range(MAX_ATTEMPTS):
        stored, version = read_stored_history(table)
        merged = merge_histories(stored, build(stored))
        if merged == stored:
            return stored, stored
        try:
            row = table.write(ROW_KIND, ROW_NAME, encode_workload_history(merged), version=version)
        except Conflict:
            continue
        return stored, decode_body_text(row.body, WorkloadHistory)
    raise InputError(f"the row {ROW_KIND}/{ROW_NAME} was changed {MAX_ATTEMPTS} times in between: try again")
