"""Tests of `joiner group`, and of the group in `joiner status` and `joiner doctor`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import cli.group.session
from cli.doctor.checks.installation import check_group
from cli.facts.cluster_group import describe_group
from cli.main import main
from docs.reference.output import FIELDS
from shared.model.cloud_provider.cluster_group import GroupEntry, GroupUsage
from shared.ports.storage import Table
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind
from sim.world.memory_ports import MemoryTable
from tests.support.cli.doctor_facts import make_facts, make_facts_with_stack

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/groups"
NOW = datetime.now(UTC)
ACTIVE, SILENT = "1/us-east-1/active", "1/us-east-1/silent"
USD = 1_000_000
Out = pytest.CaptureFixture[str]


def make_entry(used: int, age: timedelta = timedelta(), **fields: Any) -> GroupEntry:
    values: dict[str, Any] = {"limit": 10 * USD, "joined_at": NOW - timedelta(days=1), "written_at": NOW - age} | fields
    return GroupEntry(used=used, **values)


ENTRIES = {ACTIVE: make_entry(USD), SILENT: make_entry(2 * USD, timedelta(hours=1))}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> MemoryTable:
    memory_table = MemoryTable()
    # The module may have been imported minutes ago.
    passed = datetime.now(UTC) - NOW
    entries = {
        member: msgspec.structs.replace(entry, written_at=entry.written_at + passed)
        for member, entry in ENTRIES.items()
    }
    memory_table.write(build_row_kind("g"), ROW_NAME, msgspec.json.encode({"entries": entries}).decode(), version=0)

    @contextmanager
    def open_memory_table(_args: object) -> Iterator[tuple[Table, str]]:
        yield memory_table, "g"

    monkeypatch.setattr(cli.group.session, "open_group", open_memory_table)
    return memory_table


@pytest.mark.usefixtures("table")
def test_show_lists_what_each_cluster_uses(capsys: Out) -> None:
    assert main(["group", "show"]) == 0
    page = capsys.readouterr().out
    assert "group g: 2 clusters, $3.0000/h of $10.0000/h is used" in page
    assert "1/us-east-1/silent  $2.0000/h, written 1h ago; silent" in page
    assert main(["group", "show", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {*document} - {"apiVersion"} == {path.split(".")[0].removesuffix("[]") for path in FIELDS["group"]}
    assert [item["silent"] for item in document["clusters"]] == [False, True]


def test_forget_removes_a_silent_cluster_and_an_active_one_only_with_force(table: MemoryTable, capsys: Out) -> None:
    assert main(["group", "forget", ACTIVE]) == 1
    assert "was active at" in capsys.readouterr().err
    assert main(["group", "forget", "1/us-east-1/none"]) == 1
    assert "group g has no cluster 1/us-east-1/none: it has 1/us-east-1/active" in capsys.readouterr().err
    assert main(["group", "forget", SILENT]) == 0
    assert main(["group", "forget", ACTIVE, "--force"]) == 0
    assert "group g has no clusters" in capsys.readouterr().out
    row = table.read(build_row_kind("g"), ROW_NAME)
    assert row is not None
    assert row.body == '{"entries":{}}'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--group is missing: add --group NAME, or set $JOINER_GROUP"),
        (("--group", "g"), "--table is missing: add --table ARN, or set $JOINER_GROUP_TABLE"),
        (("--group", "g", "--table", "groups"), "--table is 'groups': must be the ARN of a DynamoDB table, like arn:"),
        (("--group", "a b", "--table", ARN), "--group is 'a b': must be a name of at most 63 letters"),
    ],
)
def test_missing_and_wrong_names_are_reported_with_the_fix(
    arguments: tuple[str, ...], message: str, capsys: Out
) -> None:
    assert main(["group", "show", *arguments]) == 1
    assert message in capsys.readouterr().err


def make_usage(**fields: Any) -> GroupUsage:
    entries = tuple(sorted({ACTIVE: make_entry(USD), "1/us-east-1/z": make_entry(2 * USD)}.items()))
    return GroupUsage(group="g", member=ACTIVE, own_limit=10 * USD, **({"entries": entries} | fields))


UNREAD = "group g: you cannot read table groups"
STATES = [
    ({}, "ok", "", "$3.0000/h of $10.0000/h is used by 2 clusters, $1.0000/h by this cluster"),
    ({"read_error": "Unreachable: no", "table": ARN}, "fail", "red", f"{UNREAD}: Unreachable: no. If `provision`"),
    ({"entries": tuple(ENTRIES.items())}, "warn", "yellow", f"silent: {SILENT}"),
    ({"entries": ((ACTIVE, make_entry(0)), ("b", make_entry(0, limit=1)))}, "warn", "yellow", "have different limits"),
    ({"entries": ((ACTIVE, make_entry(0)), ("b", make_entry(0, prices="list")))}, "warn", "yellow", "different prices"),
    ({"entries": ((ACTIVE, make_entry(10 * USD)),)}, "warn", "yellow", "$10.0000/h of $10.0000/h is used by 1 cluster"),
]


@pytest.mark.parametrize(("fields", "level", "color", "words"), STATES)
def test_status_and_doctor_describe_the_group(fields: dict[str, Any], level: str, color: str, words: str) -> None:
    usage = make_usage(**fields)
    shown_color, text = describe_group(usage, NOW)
    assert (shown_color, words in text) == (color, True)
    facts = msgspec.structs.replace(make_facts_with_stack(group_usage=usage), now=NOW)
    [result] = check_group(facts)
    assert (result.level, words in result.message, bool(result.fix)) == (level, True, level != "ok")


def test_missing_permission_of_the_operator_is_no_outage_of_the_group() -> None:
    usage = make_usage(read_error="Forbidden: no", table=ARN, entries=())
    color, text = describe_group(usage, NOW)
    assert color == "yellow"
    assert text == (
        f"{UNREAD}: Forbidden: no. If `provision` cannot read it either, no nodes are launched; "
        "to fix: allow dynamodb:GetItem on the table for your role"
    )
    [result] = check_group(make_facts_with_stack(group_usage=usage))
    assert (result.level, result.fix) == ("unseen", f"grant yourself dynamodb:GetItem on {ARN}")


def test_doctor_reports_nothing_without_a_group() -> None:
    assert list(check_group(make_facts())) == []
