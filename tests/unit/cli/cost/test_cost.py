"""`joiner cost`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import cli.cost.command
from cli.cost.daily_reports import CostReports, read_cost_reports, with_today
from cli.cost.page import MAX_BAR_COLUMNS, sum_costs
from cli.main import main
from cli.terminal.bars import draw_bar
from cli.terminal.errors import InputError
from shared.errors import Unreachable
from shared.report.costs.cost_ledger import ONE_HOUR, CommandSaving, CostLedger, get_day_start
from shared.report.costs.daily_report import DailyReport, build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX, LEDGER_KEY
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.state.cluster_state import ClusterState
from sim.world.memory_ports import MemoryBucket
from tests.unit.shared.report.costs.test_cost_ledger import build_cluster, make_claim

Out = pytest.CaptureFixture[str]
FIRST_DAY = datetime(2026, 11, 20, tzinfo=UTC)
ONE_DAY = timedelta(days=1)


def make_node_lifetime(
    name: str, pool: str, hours: float, kind: str = "m5.large", capacity: str = "spot", team: str = ""
) -> NodeLifetime:
    return NodeLifetime(
        claim=name,
        instance=f"i-{name}",
        pool=pool,
        instance_type=kind,
        capacity_type=capacity,
        label=team,
        launched=FIRST_DAY,
        usd_per_hour=0.1,
        hours=hours,
        usd=hours * 0.1,
        on_demand_usd=hours * 0.3,
        idle_usd=hours * 0.025,
    )


def make_ledger(number: int, *lives: NodeLifetime, hours: int = 24) -> CostLedger:
    begin = FIRST_DAY + number * ONE_DAY
    saved = CommandSaving(command="c", at=begin, usd_per_hour=0.5)
    return CostLedger(since=begin, until=begin + hours * ONE_HOUR, lives=lives, savings=(saved,))


def write_reports(folder: Path, *days: CostLedger, today: CostLedger | None = None) -> str:
    (folder / COSTS_PREFIX).mkdir(parents=True)
    for day_ledger in days:
        report = build_daily_report(day_ledger, "prod", "team")
        (folder / COSTS_PREFIX / f"{report.day}.json").write_bytes(msgspec.json.encode(report))
    if today is not None:
        (folder / LEDGER_KEY).write_bytes(msgspec.json.encode(today))
    return str(folder)


@pytest.fixture
def source(tmp_path: Path) -> str:
    lifetimes = (
        make_node_lifetime("a", "web", 24, team="search"),
        make_node_lifetime("b", "batch", 12, kind="c5.large"),
    )
    return write_reports(
        tmp_path,
        make_ledger(0, *lifetimes),
        make_ledger(1, lifetimes[0]),
        today=make_ledger(2, make_node_lifetime("a", "web", 6), hours=6),
    )


def test_cost_page_sums_days_and_sorts_nodepools_by_cost(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 days, 2026-11-20 to 2026-11-22: $6.60 for 66 node hours",
        "$13.20 saved compared with on-demand; $27.00 saved by 3 disruption commands; $1.65 idle (25%)",
        "2026-11-22 is incomplete: until 06:00 UTC",
        "",
        "NODEPOOL                        NODE HOURS   USD  SHARE  SAVED        IDLE",
        "web       ████████████████████          54  5.40    82%  10.80  1.35 (25%)",
        "batch     ████▌                         12  1.20    18%   2.40  0.30 (25%)",
        "",
        "DAY                               NODE HOURS   USD  SAVED  BY COMMANDS        IDLE",
        "2026-11-20  ████████████████████          36  3.60   7.20        12.00  0.90 (25%)",
        "2026-11-21  █████████████▍                24  2.40   4.80        12.00  0.60 (25%)",
        "2026-11-22  ███▍                           6  0.60   1.20         3.00  0.15 (25%)",
        "",
        "MOST EXPENSIVE 2026-11-22  TYPE           NODEPOOL  HOURS   USD        IDLE",
        "a                          m5.large spot  web         6.0  0.60  0.15 (25%)",
    ]


@pytest.mark.parametrize(
    ("grouping", "names"),
    [
        ("pool", ["web", "batch"]),
        ("type", ["m5.large", "c5.large"]),
        ("capacity-type", ["spot"]),
        ("label", ["search", ""]),
    ],
)
def test_costs_are_grouped_by_the_requested_dimension(
    grouping: str, names: list[str], source: str, capsys: Out
) -> None:
    assert main(["cost", "--journal", source, "--by", grouping, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["by"], [part["name"] for part in document["parts"]]) == (grouping, names)
    assert sum(part["usd"] for part in document["parts"]) == pytest.approx(document["usd"])


def test_json_output_contains_the_cost_report(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", f"{source}/costs", "--days", "1", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    sums = {
        "usd": 0.6,
        "nodeHours": 6.0,
        "savedBySpotUsd": 1.2,
        "savedByCommandsUsd": 3.0,
        "commands": 1,
        "idleUsd": 0.15,
        "unpricedHours": 0.0,
    }
    assert document == {
        "apiVersion": "joiner/v1",
        "from": "2026-11-22",
        "to": "2026-11-22",
        **sums,
        "days": [{"day": "2026-11-22", "complete": False, **sums}],
        "by": "pool",
        "label": "team",
        "parts": [
            {"name": "web", "nodes": 1, "nodeHours": 6.0, "usd": 0.6, "onDemandUsd": 1.8, "idleUsd": 0.15},
        ],
        "mostExpensiveNodes": [
            {
                "nodeClaim": "a",
                "instanceId": "i-a",
                "nodePool": "web",
                "instanceType": "m5.large",
                "capacityType": "spot",
                "hours": 6.0,
                "usd": 0.6,
                "idleUsd": 0.15,
            }
        ],
    }


def test_days_option_limits_the_report(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source, "--days", "2"]) == 0
    assert "2 days, 2026-11-21 to 2026-11-22" in capsys.readouterr().out


def test_long_nodepool_lists_are_truncated_without_the_all_flag(tmp_path: Path, capsys: Out) -> None:
    lives = [make_node_lifetime(f"n{number}", f"pool-{number % 30:02}", 1 + number % 30) for number in range(500)]
    large = write_reports(tmp_path, make_ledger(0, *lives))
    assert main(["cost", "--journal", large]) == 0
    short = capsys.readouterr().out
    assert main(["cost", "--journal", large, "--all"]) == 0
    full_page = capsys.readouterr().out
    assert "more, $" in short
    assert "(--all shows them)" in short
    assert len(short.splitlines()) < 40
    assert all(f"pool-{number:02} " in full_page for number in range(30))
    assert "… and" not in full_page


def test_node_hours_without_price_are_reported(tmp_path: Path, capsys: Out) -> None:
    free = msgspec.structs.replace(
        make_node_lifetime("a", "web", 24), usd_per_hour=0.0, usd=0.0, on_demand_usd=0.0, idle_usd=0.0
    )
    assert main(["cost", "--journal", write_reports(tmp_path, make_ledger(0, free))]) == 0
    page = capsys.readouterr().out
    assert "24 node hours without a known price" in page
    assert "is incomplete" not in page


def test_invalid_report_file_is_named_and_other_reports_are_shown(source: str, capsys: Out) -> None:
    (Path(source) / COSTS_PREFIX / "2026-11-20.json").write_text("{")
    (Path(source) / LEDGER_KEY).write_text("{")
    assert main(["cost", "--journal", source]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("2026-11-21: $2.40 for 24 node hours\n")
    assert "2026-11-20.json: not a daily cost report: " in captured.err
    assert "today.json: not a cost ledger: " in captured.err


def test_missing_cost_reports_are_reported(tmp_path: Path, capsys: Out) -> None:
    assert main(["cost", "--journal", str(tmp_path)]) == 1
    assert "no cost reports yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected_error"),
    [
        (["--journal", "nowhere"], "folder not found"),
        (["--journal", "s3://"], "no bucket name"),
    ],
)
def test_invalid_journal_location_is_reported(arguments: list[str], expected_error: str, capsys: Out) -> None:
    assert main(["cost", *arguments]) == 1
    assert expected_error in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--days", "0"], ["--days", "x"], ["--by", "mood", "--journal", "."]])
def test_invalid_options_are_rejected(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as raised:
        main(["cost", *arguments])
    assert raised.value.code == 2


class Stored(MemoryBucket):
    """An S3 bucket with one report."""

    prefix = ""
    is_down = False

    def __init__(self, clients: object, name: str) -> None:
        """Start with one report."""
        super().__init__()
        del clients, name
        report = msgspec.json.encode(build_daily_report(make_ledger(0, make_node_lifetime("a", "web", 24)), "prod"))
        self.put(f"{self.prefix}costs/2026-11-20.json", report)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        if self.is_down:
            raise Unreachable("s3")
        return super().list_keys(prefix)


@pytest.mark.parametrize(("name", "prefix"), [("", ""), ("/journal", ""), ("/copies/prod", "copies/prod/")])
def test_cost_reports_are_read_from_a_bucket(name: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.aws.s3.S3Bucket", type("Here", (Stored,), {"prefix": prefix}))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert [report.day for report in read_cost_reports(f"s3://things{name}", 30).days] == ["2026-11-20"]


def test_unreachable_bucket_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.aws.s3.S3Bucket", type("Down", (Stored,), {"is_down": True}))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(InputError, match="--journal s3://things: "):
        read_cost_reports("s3://things", 30)


def test_live_cluster_adds_costs_of_the_current_day() -> None:
    now = FIRST_DAY + 2 * ONE_DAY + 8 * ONE_HOUR
    billed = make_ledger(2, msgspec.structs.replace(make_node_lifetime("a", "web", 6), instance="i-a"), hours=6)
    yesterday = build_daily_report(make_ledger(1, make_node_lifetime("a", "web", 24)), "prod")
    reports = CostReports(days=(yesterday, build_daily_report(billed, "prod")), ledger=billed)
    fleet = build_cluster(make_claim("a", FIRST_DAY), make_claim("b", now - ONE_HOUR))
    days = with_today(reports, ClusterState(fleet), "", now).days
    assert [report.day for report in days] == ["2026-11-21", "2026-11-22"]
    assert days[-1].node_hours == 9.0  # six, two more, and the new node's


@pytest.mark.parametrize("old", [None, make_ledger(0)])
def test_nodes_count_from_midnight_without_a_ledger_of_the_day(old: CostLedger | None) -> None:
    now = FIRST_DAY + 2 * ONE_DAY + 8 * ONE_HOUR
    fleet = ClusterState(build_cluster(make_claim("a", FIRST_DAY)))
    [today] = with_today(CostReports(ledger=old), fleet, "team", now).days
    assert (today.node_hours, today.since, today.label) == (8.0, get_day_start(now), "team")


def test_cost_command_reads_the_named_cluster(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    def read_fake_cluster(options: object, now: datetime) -> tuple[ClusterState, str]:
        del options
        return ClusterState(build_cluster(make_claim("a", now - ONE_HOUR))), ""

    monkeypatch.setattr(cli.cost.command, "_read_live_cluster", read_fake_cluster)
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert main(["cost", "--context", "prod"]) == 0
    assert "default" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("share", "columns"),
    [(0.0, 0), (0.001, 0), (0.5, MAX_BAR_COLUMNS / 2), (1.0, MAX_BAR_COLUMNS), (0.02, 1)],
    ids=str,
)
def test_bar_length_is_proportional_to_its_share(share: float, columns: float) -> None:
    assert len(draw_bar(share, MAX_BAR_COLUMNS, unfilled="")) == columns


def test_report_without_nodes_has_no_cost_parts() -> None:
    assert sum_costs((build_daily_report(make_ledger(0), "prod"),), "pool").parts == ()


def test_daily_report_survives_json_encoding() -> None:
    report = build_daily_report(make_ledger(0, make_node_lifetime("a", "web", 24)), "prod")
    assert msgspec.json.decode(msgspec.json.encode(report), type=DailyReport) == report
