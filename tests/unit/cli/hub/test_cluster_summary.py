"""Tests of the summary of a cluster: parts that are unknown, damaged, old or of another version."""

import json
from datetime import datetime, timedelta

import msgspec
import pytest

from cli.hub.summary.cluster_costs import read_cluster_costs
from cli.hub.summary.cluster_summary import read_cluster_summary
from cli.terminal.errors import InputError
from shared.report.costs.cost_ledger import CostLedger
from shared.report.costs.node_lifetimes import NodeLifetime
from sim.world.memory_ports import MemoryBucket
from tests.unit.cli.hub.hub_buckets import AT, make_memory_bucket, put_newest_record


def test_month_contains_the_reports_of_past_days() -> None:
    bucket = make_memory_bucket()
    report = {"day": "2026-11-20", "cluster": "demo", "usd": 2.5, "nodeHours": 1, "savedBySpotUsd": 0, "idleUsd": 0}
    times = {"since": "2026-11-20T00:00:00Z", "until": "2026-11-21T00:00:00Z"}
    bucket.put("costs/2026-11-20.json", json.dumps(report | times).encode())
    costs = read_cluster_summary(bucket, AT, is_copy=False).costs
    assert costs.day_usd == pytest.approx(0.091365)
    assert costs.month_usd == pytest.approx(2.591365)


def test_report_that_cannot_be_decoded_is_named_because_its_costs_are_missing() -> None:
    bucket = make_memory_bucket()
    bucket.put("costs/2026-11-20.json", b'{"day": 1}')
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    [message] = summary.messages
    assert message.startswith("costs/2026-11-20.json: written by another version of Joiner, or damaged: its costs are ")
    assert summary.costs.month_usd == pytest.approx(0.091365)


def test_ledger_that_cannot_be_decoded_makes_costs_unknown() -> None:
    bucket = make_memory_bucket()
    bucket.put("costs/today.json", b"[]")
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert (summary.costs.day_usd, summary.costs.month_usd, len(summary.messages)) == (None, None, 1)


def test_report_that_expired_after_it_was_listed_is_named() -> None:
    class ExpiringBucket(MemoryBucket):
        """Lists a report that it no longer has."""

        def list_keys(self, prefix: str) -> tuple[str, ...]:
            keys = super().list_keys(prefix)
            return ("costs/2026-11-01.json", *keys) if prefix.startswith("costs/") else keys

    bucket = ExpiringBucket()
    copy = make_memory_bucket()
    for key in copy.list_keys(""):
        bucket.put(key, copy.get(key))
    [message] = read_cluster_summary(bucket, AT, is_copy=False).messages
    assert message.startswith("costs/2026-11-01.json: ")
    assert message.endswith(": its costs are missing")


def test_journal_entry_that_expired_after_it_was_listed_is_skipped() -> None:
    bucket, expired_key = make_memory_bucket(), "journal/disrupt/2026/11/21/090858-x.json"

    class ExpiringBucket(MemoryBucket):
        """Lists an entry that it no longer has."""

        def list_keys(self, prefix: str) -> tuple[str, ...]:
            return (
                (*bucket.list_keys(prefix), expired_key) if expired_key.startswith(prefix) else bucket.list_keys(prefix)
            )

        def get(self, key: str) -> bytes:
            return bucket.get(key)

    assert read_cluster_summary(ExpiringBucket(), AT, is_copy=False) == read_cluster_summary(bucket, AT, is_copy=False)


@pytest.mark.parametrize(
    ("until", "now", "costs"),
    [
        ("2026-11-21T09:00:00Z", "2026-11-21T09:30:00Z", (0.5, 0.5, False)),
        ("2026-11-21T09:00:00Z", "2026-11-21T12:30:00Z", (None, 0.5, True)),
        ("2026-11-21T00:00:00Z", "2026-11-21T00:30:00Z", (0.0, 0.5, False)),
        ("2026-11-21T00:00:00Z", "2026-11-21T03:30:00Z", (None, 0.5, True)),
        ("2026-11-30T23:00:00Z", "2026-12-01T00:30:00Z", (0.0, 0.0, False)),
        ("2026-11-30T23:00:00Z", "2026-12-01T04:30:00Z", (None, None, True)),
    ],
)
def test_costs_of_the_day_are_unknown_if_billing_is_late(
    until: str, now: str, costs: tuple[float | None, float | None, bool]
) -> None:
    bucket = MemoryBucket()
    until_time = datetime.fromisoformat(until)
    day = (until_time - timedelta(hours=1)).replace(hour=0)
    ledger = CostLedger(since=day, until=until_time, lives=(NodeLifetime(claim="a", usd=0.5),))
    bucket.put("costs/today.json", msgspec.json.encode(ledger))
    read = read_cluster_costs(bucket, datetime.fromisoformat(now), [])
    assert (read.day_usd, read.month_usd, read.is_late) == costs


def test_kubernetes_version_is_that_of_the_newest_record_that_contains_it() -> None:
    bucket = make_memory_bucket()
    put_newest_record(bucket, lambda record: record["cluster"].pop("facts"))
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert (summary.code, summary.kubernetes_version, summary.messages) == ("new", "1.34", ())


def test_kubernetes_version_is_unknown_if_no_record_contains_it() -> None:
    bucket = make_memory_bucket()
    put_newest_record(bucket, lambda record: record["cluster"].pop("facts"))
    for key in (*bucket.list_keys("journal/provision/"), *bucket.list_keys("journal/interrupt/")):
        bucket.put(key, b'{"function": "provision", "at": "2026-11-21T09:08:00Z"}')
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert (summary.code, summary.kubernetes_version) == ("new", "")


def test_record_with_a_mode_of_another_version_is_named_and_an_older_one_is_shown() -> None:
    bucket = make_memory_bucket()
    put_newest_record(bucket, lambda record: record["given"]["settings"].update(mode="observe"))
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert summary.messages[0].startswith("snapshot/changed.json.gz: the decision record or its catalog could not be ")
    assert summary.code != "new"
    assert summary.pauses == ()


def test_pending_pods_are_unknown_if_the_newest_entry_is_damaged() -> None:
    bucket = make_memory_bucket()
    for key in bucket.list_keys("journal/provision/"):
        bucket.put(key, b"{")
    bucket.put("journal/provision/2026/11/21/090859-x.json", b"{")
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert (summary.pending_pods, summary.is_silent) == (None, False)
    assert read_cluster_summary(bucket, AT + timedelta(minutes=3), is_copy=False).pending_pods == 0


def test_pods_are_not_pending_if_provision_has_not_planned_for_them_lately() -> None:
    bucket = make_memory_bucket()
    assert read_cluster_summary(bucket, AT, is_copy=False).pending_pods == 2
    assert read_cluster_summary(bucket, AT + timedelta(minutes=3), is_copy=False).pending_pods == 0


def test_damaged_journal_entry_does_not_stop_the_others() -> None:
    bucket = make_memory_bucket()
    bucket.put("journal/disrupt/2026/11/21/090859-x.json", b"{")
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert summary.nodes == 1
    assert [message.partition(":")[0] for message in summary.messages] == ["journal/disrupt/2026/11/21/090859-x.json"]


def test_bucket_without_recent_entries_is_an_error_with_a_fix() -> None:
    with pytest.raises(InputError, match="no journal entries of the last 2 days: check the name, and run `joiner do"):
        read_cluster_summary(make_memory_bucket(), AT + timedelta(days=3), is_copy=False)


def test_costs_are_unknown_before_the_first_hour_is_billed() -> None:
    bucket, copy = MemoryBucket(), make_memory_bucket()
    for key in copy.list_keys(""):
        if not key.startswith("costs/"):
            bucket.put(key, copy.get(key))
    bucket.put("journal/disrupt/2026/11/21/notes.txt", b"not an entry")
    summary = read_cluster_summary(bucket, AT, is_copy=False)
    assert (summary.costs.day_usd, summary.costs.month_usd, summary.messages) == (None, None, ())
