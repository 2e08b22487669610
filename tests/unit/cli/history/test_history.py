"""`joiner history`: the history from decision records is that of the functions, and completes the stored one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.history import recorded_history, session
from cli.history.history_completion import merge_histories
from cli.history.recorded_history import HistoryBuilder, list_known_hours
from cli.journal import journal
from cli.main import main
from cli.terminal.errors import InputError
from shared.decide.disruption.savings.workload_forecast import estimate_demand
from shared.decide.disruption.savings.workload_history import compute_hour_of_week, observe_workloads
from shared.errors import Forbidden
from shared.model.core.metadata import Problem
from shared.model.decisions.pod_run_time import RunTimeRecord
from shared.model.decisions.workload_history import HOURS_PER_WEEK, WorkloadHistory, WorkloadRecord
from shared.ports.storage import Table, TableRow
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, write_record
from shared.report.journal.journal import DecisionNote, JournalEntry, build_entry_key
from shared.report.journal.snapshot_digest import encode_snapshot
from shared.settings_text import encode_texts
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import ROW_KIND, ROW_NAME, encode_workload_history
from sim.world.memory_ports import MemoryBucket, MemoryTable
from tests.scenario.faults.test_workload_history_crashes import MINUTES, Recorder, take_cluster
from tests.support.catalogues import NOW

Out = pytest.CaptureFixture[str]
MINUTE = timedelta(minutes=1)


def write_journal(minutes: range, period: int = 1) -> MemoryBucket:
    """Return a bucket with a decision record of `disrupt` for each of *minutes*, of the clusters of the crash tests."""
    recorder = Recorder()
    world = recorder.outside.build_world("one")
    for minute in minutes:
        if minute % period == 0:
            cluster = take_cluster(recorder.outside, minute)
            inputs = DecisionInputs(setting_texts=encode_texts(world.settings))
            key, error = write_record(encode_snapshot(cluster), "", inputs, DecisionSummary(decided=0), world)
            assert not error
            note = DecisionNote(kind="Node", name="a", verdict="kept", reason="x")
            entry = JournalEntry(
                function="disrupt", trigger="tick", at=cluster.taken_at, cluster="c", notes=(note,), snapshot=key
            )
            world.bucket.put(build_entry_key(entry, f"r{minute}"), msgspec.json.encode(entry))
        recorder.outside.clock.run_until(recorder.outside.clock.get_time() + MINUTE)
    return recorder.outside.bucket


@pytest.fixture(scope="module")
def bucket() -> MemoryBucket:
    return write_journal(range(MINUTES))


@pytest.fixture(scope="module")
def folder(bucket: MemoryBucket, tmp_path_factory: pytest.TempPathFactory) -> str:
    return copy_to_folder(bucket, tmp_path_factory.mktemp("journal"))


def copy_to_folder(bucket: MemoryBucket, folder: Path) -> str:
    for key in bucket.list_keys(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.get(key))
    return str(folder)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> MemoryTable:
    memory_table = MemoryTable()

    @contextmanager
    def open_memory_table(_: object) -> Iterator[tuple[Table, str]]:
        yield memory_table, "joiner-table"

    monkeypatch.setattr(session, "open_table", open_memory_table)
    return memory_table


def read_history(table: Table) -> WorkloadHistory:
    row = table.read(ROW_KIND, ROW_NAME)
    assert row is not None
    return decode_body_text(row.body, WorkloadHistory)


def test_history_from_records_is_that_of_the_functions(folder: str, table: MemoryTable, capsys: Out) -> None:
    assert main(["history", "build", "--journal", folder, "--write", "--table", "t"]) == 0
    assert "written to table joiner-table" in capsys.readouterr().out
    assert read_history(table) == Recorder().run()


def test_records_in_a_bucket_give_the_same_history(
    bucket: MemoryBucket, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    @contextmanager
    def open_memory_bucket(_: str) -> Iterator[tuple[MemoryBucket, str]]:
        yield bucket, ""

    monkeypatch.setattr(journal, "open_bucket", open_memory_bucket)
    monkeypatch.setattr(recorded_history, "open_bucket", open_memory_bucket)
    end = Recorder().outside.clock.get_time() + MINUTES * MINUTE
    documents = []
    for source in ("s3://bucket", folder):
        now = end.isoformat().replace("+00:00", "Z")
        assert main(["history", "show", "--journal", source, "--now", now, "-o", "json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert documents[0]["knownHours"] == 2


def test_build_gives_forecasts_at_once(table: MemoryTable, tmp_path: Path) -> None:
    """A day of records, one in 20 minutes: the first decision with the setting on has a forecast."""
    recorder = Recorder()
    source = copy_to_folder(write_journal(range(26 * 60), period=20), tmp_path)
    assert main(["history", "build", "--journal", source, "--write", "--table", "t"]) == 0
    cluster = take_cluster(recorder.outside, 0)
    [forecast] = estimate_demand(read_history(table), observe_workloads(cluster), cluster.taken_at + timedelta(days=1))
    assert forecast.pool == "default"


def test_without_write_nothing_is_written(folder: str, table: MemoryTable, capsys: Out) -> None:
    assert main(["history", "build", "--journal", folder]) == 0
    assert table.read(ROW_KIND, ROW_NAME) is None
    output = capsys.readouterr().out
    assert f"built from {MINUTES} decision records since " in output
    assert "nothing is written: --write writes the history to the table" in output


def test_second_build_changes_nothing(folder: str, table: MemoryTable, capsys: Out) -> None:
    arguments = ["history", "build", "--journal", folder, "--write", "--table", "t"]
    assert main(arguments) == main(arguments) == 0
    assert "already knows everything" in capsys.readouterr().out
    row = table.read(ROW_KIND, ROW_NAME)
    assert row is not None
    assert row.version == 1


def test_build_keeps_the_hours_that_the_functions_observed(folder: str, table: MemoryTable) -> None:
    observed = Recorder().run()
    [hour, *_] = sorted(list_known_hours(observed))
    changed = tuple(
        replace(record, means=(*record.means[:hour], 990, *record.means[hour + 1 :])) for record in observed.workloads
    )
    table.write(ROW_KIND, ROW_NAME, encode_workload_history(replace(observed, workloads=changed)), version=0)
    assert main(["history", "build", "--journal", folder, "--write", "--table", "t"]) == 0
    assert {record.means[hour] for record in read_history(table).workloads} == {990}


def test_build_reads_no_record_after_the_last_update_of_the_functions(folder: str, table: MemoryTable) -> None:
    """The functions count the runs that end later: ten runs of 7m end in the first 71m."""
    recorder = Recorder()
    started_at = recorder.outside.clock.get_time()
    stored = replace(recorder.run(), updated_at=started_at + 72 * MINUTE, run_times=())
    table.write(ROW_KIND, ROW_NAME, encode_workload_history(stored), version=0)
    assert main(["history", "build", "--journal", folder, "--write", "--table", "t"]) == 0
    [record] = read_history(table).run_times
    assert record.run_count == 10


def test_write_of_a_function_in_between_is_completed_too(
    folder: str, table: MemoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    write = table.write

    def write_after_a_function(kind: str, name: str, body: str, *, version: int) -> TableRow:
        if not writes:
            write(kind, name, encode_workload_history(WorkloadHistory(updated_at=NOW + timedelta(days=9))), version=0)
        writes.append(version)
        return write(kind, name, body, version=version)

    monkeypatch.setattr(table, "write", write_after_a_function)
    assert main(["history", "build", "--journal", folder, "--write", "--table", "t"]) == 0
    assert writes == [0, 1]
    history = read_history(table)
    assert history.updated_at == NOW + timedelta(days=9)
    assert len(list_known_hours(history)) == 2


def test_show_lists_workloads_and_run_times_of_the_table(table: MemoryTable, capsys: Out) -> None:
    table.write(ROW_KIND, ROW_NAME, encode_workload_history(Recorder().run()), version=0)
    assert main(["history", "show", "--table", "t", "--now", "2026-11-21T13:00:00Z"]) == 0
    output = capsys.readouterr().out
    assert "workload history of table joiner-table: 2 workloads, 2 of 168 hours of the week known, updated " in output
    assert "StatefulSet shop/web" in output
    assert "CronJob shop/report" in output


def test_workload_without_a_known_hour_has_no_mean(capsys: Out) -> None:
    assert main(["history", "show", "--journal", "examples/journal"]) == 0
    [row] = [line.split() for line in capsys.readouterr().out.splitlines() if "default/training" in line]
    assert row == ["Deployment", "default/training", "-", "0", "-", "-", "1000m", "0", "B"]


@pytest.mark.parametrize("name", ["web", "shop/web", "statefulset/shop/web", "StatefulSet shop/web"])
def test_show_of_a_workload_has_hours_and_a_forecast_with_its_error(name: str, table: MemoryTable, capsys: Out) -> None:
    history = Recorder().run()
    hour = min(list_known_hours(history))
    records = tuple(
        replace(record, errors=(*record.errors[:hour], 15, *record.errors[hour + 1 :])) for record in history.workloads
    )
    table.write(ROW_KIND, ROW_NAME, encode_workload_history(replace(history, workloads=records)), version=0)
    assert main(["history", "show", name, "--table", "t", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    [workload] = document["workloads"]
    assert workload["name"] == "StatefulSet shop/web"
    assert {"weekday", "hour", "replicas", "error", "weeks"} == workload["hours"][0].keys()
    assert len(workload["forecast"]) == 24
    [known_hour] = [item for item in workload["forecast"] if item["error"] == 1.5]
    assert [known_hour["replicas"]] == [
        record.means[hour] / 10 for record in records if record.name == workload["name"]
    ]
    assert main(["history", "show", name, "--table", "t"]) == 0
    output = capsys.readouterr().out
    assert " ±1.5" in output
    assert "forecast for the next 24 hours (UTC):" in output
    assert "unknown" in output


def test_unknown_workload_is_an_error_with_suggestions(table: MemoryTable, capsys: Out) -> None:
    table.write(ROW_KIND, ROW_NAME, encode_workload_history(Recorder().run()), version=0)
    assert main(["history", "show", "shop/wob", "--table", "t"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "workload shop/wob not found; the history has " in captured.err
    assert "StatefulSet shop/web" in captured.err


def test_table_without_a_history_is_an_error_with_a_fix(table: MemoryTable, capsys: Out) -> None:
    assert main(["history", "show", "--table", "t"]) == 1
    assert "table joiner-table has no workload history: set `workload-history: on`, or write" in capsys.readouterr().err
    assert table.list_rows(ROW_KIND) == ()


def test_row_that_cannot_be_decoded_is_an_error_and_is_not_overwritten(
    folder: str, table: MemoryTable, capsys: Out
) -> None:
    table.write(ROW_KIND, ROW_NAME, '{"workloads": 7}', version=0)
    for arguments in (["show", "--table", "t"], ["build", "--journal", folder, "--write", "--table", "t"]):
        assert main(["history", *arguments]) == 1
        assert "cannot be decoded" in capsys.readouterr().err
    row = table.read(ROW_KIND, ROW_NAME)
    assert row is not None
    assert row.version == 1


def test_missing_permission_is_an_error_that_names_the_call(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    from shared.aws import dynamodb  # noqa: PLC0415 - imported by the command when it runs

    def refuse(*_: object) -> None:
        raise Forbidden("dynamodb:GetItem workload-history/workloads: AccessDenied")

    monkeypatch.setattr(dynamodb.DynamoTable, "read", refuse)
    assert main(["history", "show", "--table", "t", "--region", "us-east-1"]) == 1
    assert "joiner history: Forbidden: dynamodb:GetItem workload-history/workloads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ((("AWS::S3::Bucket", "Bucket", "joiner-bucket"),), "--journal s3://joiner-bucket: read"),
        ((), "stack joiner-prod has no AWS::S3::Bucket: add --journal s3://BUCKET"),
    ],
)
def test_bucket_of_the_stack_is_the_default_journal(
    resources: tuple[tuple[str, str, str], ...], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    def fail_to_open(source: str) -> None:
        raise InputError(f"--journal {source}: read")

    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    monkeypatch.setattr("cli.facts.stack.list_stack_resources", lambda *_: resources)
    monkeypatch.setattr(journal, "open_bucket", fail_to_open)
    assert main(["history", "build", "--cluster", "prod", "--region", "us-east-1"]) == 1
    assert words in capsys.readouterr().err


def test_table_of_the_stack_is_used(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    from shared.aws import dynamodb  # noqa: PLC0415 - imported by the command when it runs

    resources = (("AWS::DynamoDB::Table", "Table", "joiner-prod-table"), ("AWS::S3::Bucket", "Bucket", "b"))
    monkeypatch.setattr("cli.facts.stack.list_stack_resources", lambda *_: resources)
    monkeypatch.setattr(dynamodb.DynamoTable, "read", lambda *_: None)
    assert main(["history", "show", "--cluster", "prod", "--region", "us-east-1"]) == 1
    assert "table joiner-prod-table has no workload history" in capsys.readouterr().err


def test_journal_without_records_is_an_error(tmp_path: Path, capsys: Out) -> None:
    assert main(["history", "build", "--journal", str(tmp_path)]) == 1
    assert "no decision record in 0 cycles can be read: the setting snapshots was off" in capsys.readouterr().err
    assert main(["history", "build", "--journal", str(tmp_path / "none")]) == 1
    assert "folder not found" in capsys.readouterr().err


def test_unreadable_records_are_reported_and_the_others_are_used(
    bucket: MemoryBucket, tmp_path: Path, capsys: Out
) -> None:
    copy_to_folder(bucket, tmp_path)
    for path in sorted((tmp_path / "snapshot").iterdir())[:5]:
        path.unlink()
    assert main(["history", "build", "--journal", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert f"built from {MINUTES - 5} decision records" in captured.out
    assert captured.err.count("not found in") == 3
    assert "… and 2 more records" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show"], "no history: add --cluster NAME, --table NAME or --journal DIR"),
        (["build"], "no journal: add --journal DIR"),
        (["build", "--write", "--journal", "x"], "no table: add --cluster NAME or --table NAME"),
        ([], "name an action: show or build"),
    ],
)
def test_missing_sources_are_wrong_usage(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    for name in ("JOINER_BUCKET_NAME", "JOINER_TABLE_NAME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["history", *arguments])
    assert words in capsys.readouterr().err


def test_cluster_in_which_pods_could_not_be_read_is_left_out() -> None:
    builder, cluster = HistoryBuilder(), take_cluster(Recorder().outside, 0)
    builder.add(replace(cluster, problems=(Problem(kind="Pod", name="shop/cart", message="spec: not readable"),)))
    assert builder.history == WorkloadHistory()


hours = st.dictionaries(st.integers(0, 5), st.integers(0, 90), max_size=4)


def make_history(
    workloads: dict[str, dict[int, int]], families: list[str], count: int, updated_hour: int
) -> WorkloadHistory:
    records = tuple(
        WorkloadRecord(
            name=name,
            pool="default",
            cpu_milli=100,
            memory_bytes=1,
            means=tuple(means.get(hour, 0) for hour in range(HOURS_PER_WEEK)),
            weeks=tuple(int(hour in means) for hour in range(HOURS_PER_WEEK)),
        )
        for name, means in sorted(workloads.items())
        if any(means.values())
    )
    run_times = tuple(RunTimeRecord(family=name, run_counts=((3, count),), last_seen_at=NOW) for name in families)
    monday = NOW - timedelta(hours=compute_hour_of_week(NOW))
    return WorkloadHistory(
        workloads=records,
        run_times=run_times,
        updated_at=monday + timedelta(hours=updated_hour),
        observation_count=count,
    )


histories = st.builds(
    make_history,
    st.dictionaries(st.sampled_from("abc"), hours, max_size=3),
    st.lists(st.sampled_from("xyz"), unique=True, max_size=3).map(sorted),
    st.integers(0, 3),
    st.integers(0, 5),
)


@given(stored=histories, built=histories)
def test_merging_changes_no_observed_hour_and_is_idempotent(stored: WorkloadHistory, built: WorkloadHistory) -> None:
    merged = merge_histories(stored, built)
    assert merge_histories(merged, built) == merged
    assert merge_histories(stored, WorkloadHistory(updated_at=NOW)) == stored
    assert merge_histories(WorkloadHistory(), built) == built
    observed_hours = list_known_hours(stored)
    by_name = {record.name: record for record in merged.workloads}
    for record in stored.workloads:
        assert [by_name[record.name].means[hour] for hour in observed_hours] == [
            record.means[hour] for hour in observed_hours
        ]
    for name in by_name.keys() - {record.name for record in stored.workloads}:
        assert not any(by_name[name].means[hour] for hour in observed_hours)
    assert (merged.updated_at, merged.observation_count) == (stored.updated_at, stored.observation_count)
    current_hour = compute_hour_of_week(stored.updated_at or NOW)
    if stored.observation_count and current_hour not in observed_hours:
        assert not any(record.means[current_hour] for record in merged.workloads)
