"""`joiner cost`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import cli.cost
import cli.cost_days
from cli.cost_days import Costs, costs_at, with_now
from cli.cost_page import BAR, bar, totals
from cli.files import InputError
from cli.main import main
from shared.errors import Unreachable
from shared.model.cluster import Cluster
from shared.report.costs import HOUR, Ledger, Saving, day_of
from shared.report.days import Day, day
from shared.report.ledger import PREFIX, TODAY
from shared.report.lives import Life
from sim.memory import MemoryBucket
from tests.unit.test_report_costs import claim, fleet

Out = pytest.CaptureFixture[str]
FIRST = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)


def life(name: str, pool: str, hours: float, kind: str = "m5.large", capacity: str = "spot", team: str = "") -> Life:
    return Life(
        claim=name,
        instance=f"i-{name}",
        pool=pool,
        instance_type=kind,
        capacity_type=capacity,
        label=team,
        launched=FIRST,
        usd_per_hour=0.1,
        hours=hours,
        usd=hours * 0.1,
        on_demand_usd=hours * 0.3,
        idle_usd=hours * 0.025,
    )


def ledger(number: int, *lives: Life, hours: int = 24) -> Ledger:
    begin = FIRST + number * DAY
    saved = Saving(command="c", at=begin, usd_per_hour=0.5)
    return Ledger(since=begin, until=begin + hours * HOUR, lives=lives, savings=(saved,))


def written(folder: Path, *days: Ledger, today: Ledger | None = None) -> str:
    (folder / PREFIX).mkdir(parents=True)
    for one in days:
        report = day(one, "prod", "team")
        (folder / PREFIX / f"{report.day}.json").write_bytes(msgspec.json.encode(report))
    if today is not None:
        (folder / TODAY).write_bytes(msgspec.json.encode(today))
    return str(folder)


@pytest.fixture
def source(tmp_path: Path) -> str:
    both = (life("a", "web", 24, team="search"), life("b", "batch", 12, kind="c5.large"))
    return written(tmp_path, ledger(0, *both), ledger(1, both[0]), today=ledger(2, life("a", "web", 6), hours=6))


def test_a_page_adds_up_days_and_pools_and_names_the_dearest(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 days, 2026-11-20 to 2026-11-22: $6.60 for 66 node hours",
        "$13.20 less than on demand; $27.00 saved by 3 commands; $1.65 for what no pod requested (25%)",
        "2026-11-22 counts until 06:00 UTC",
        "",
        "POOL                         NODE HOURS   USD  SHARE  SAVED        IDLE",
        "web    ████████████████████          54  5.40    82%  10.80  1.35 (25%)",
        "batch  ████▌                         12  1.20    18%   2.40  0.30 (25%)",
        "",
        "DAY                               NODE HOURS   USD  SAVED  BY COMMANDS        IDLE",
        "2026-11-20  ████████████████████          36  3.60   7.20        12.00  0.90 (25%)",
        "2026-11-21  █████████████▍                24  2.40   4.80        12.00  0.60 (25%)",
        "2026-11-22  ███▍                           6  0.60   1.20         3.00  0.15 (25%)",
        "",
        "DEAREST OF 2026-11-22  TYPE           POOL  HOURS   USD        IDLE",
        "a                      m5.large spot  web     6.0  0.60  0.15 (25%)",
    ]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("pool", ["web", "batch"]),
        ("type", ["m5.large", "c5.large"]),
        ("capacity-type", ["spot"]),
        ("label", ["search", ""]),
    ],
)
def test_costs_are_told_apart_by_what_is_asked(by: str, names: list[str], source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source, "--by", by, "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["by"], [one["name"] for one in said["parts"]]) == (by, names)
    assert sum(one["usd"] for one in said["parts"]) == pytest.approx(said["usd"])


def test_programs_get_the_same_by_names_that_stay(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", f"{source}/costs", "--days", "1", "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    sums = {
        "usd": 0.6,
        "nodeHours": 6.0,
        "savedBySpotUsd": 1.2,
        "savedByCommandsUsd": 3.0,
        "commands": 1,
        "idleUsd": 0.15,
        "unpricedHours": 0.0,
    }
    assert said == {
        "from": "2026-11-22",
        "to": "2026-11-22",
        **sums,
        "days": [{"day": "2026-11-22", "isWhole": False, **sums}],
        "by": "pool",
        "label": "team",
        "parts": [
            {"name": "web", "nodes": 1, "nodeHours": 6.0, "usd": 0.6, "onDemandUsd": 1.8, "idleUsd": 0.15},
        ],
        "dearest": [
            {
                "claim": "a",
                "instance": "i-a",
                "pool": "web",
                "instanceType": "m5.large",
                "capacityType": "spot",
                "hours": 6.0,
                "usd": 0.6,
                "idleUsd": 0.15,
            }
        ],
    }


def test_only_so_many_days_count(source: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source, "--days", "2"]) == 0
    assert "2 days, 2026-11-21 to 2026-11-22" in capsys.readouterr().out


def test_thirty_pools_are_readable_and_all_of_them_on_demand(tmp_path: Path, capsys: Out) -> None:
    lives = [life(f"n{number}", f"pool-{number % 30:02}", 1 + number % 30) for number in range(500)]
    large = written(tmp_path, ledger(0, *lives))
    assert main(["cost", "--journal", large]) == 0
    short = capsys.readouterr().out
    assert main(["cost", "--journal", large, "--all"]) == 0
    whole = capsys.readouterr().out
    assert "more, $" in short
    assert "(--all shows them)" in short
    assert len(short.splitlines()) < 40
    assert all(f"pool-{number:02} " in whole for number in range(30))
    assert "… and" not in whole


def test_what_has_no_price_is_said(tmp_path: Path, capsys: Out) -> None:
    free = msgspec.structs.replace(life("a", "web", 24), usd_per_hour=0.0, usd=0.0, on_demand_usd=0.0, idle_usd=0.0)
    assert main(["cost", "--journal", written(tmp_path, ledger(0, free))]) == 0
    shown = capsys.readouterr().out
    assert "24 node hours have no known price" in shown
    assert "counts until" not in shown


def test_what_is_no_report_is_named_and_the_others_are_told(source: str, capsys: Out) -> None:
    (Path(source) / PREFIX / "2026-11-20.json").write_text("{")
    (Path(source) / TODAY).write_text("{")
    assert main(["cost", "--journal", source]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("2026-11-21: $2.40 for 24 node hours\n")
    assert "2026-11-20.json: no report of a day: " in shown.err
    assert "today.json: no ledger: " in shown.err


def test_where_there_is_no_report_yet_it_says_when_there_is(tmp_path: Path, capsys: Out) -> None:
    assert main(["cost", "--journal", str(tmp_path)]) == 1
    assert "no report yet: the first is written after the first midnight" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--journal", "nowhere"], "no such folder"),
        (["--journal", "s3://"], "names no bucket"),
    ],
)
def test_what_cannot_be_read_is_told(given: list[str], told: str, capsys: Out) -> None:
    assert main(["cost", *given]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("given", [[], ["--days", "0"], ["--days", "x"], ["--by", "mood", "--journal", "."]])
def test_wrong_usage_is_told(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as left:
        main(["cost", *given])
    assert left.value.code == 2


class Stored(MemoryBucket):
    """Stands for S3."""

    prefix = ""
    is_down = False

    def __init__(self, clients: object, name: str) -> None:
        """Begin with one report."""
        super().__init__()
        del clients, name
        report = msgspec.json.encode(day(ledger(0, life("a", "web", 24)), "prod"))
        self.put(f"{self.prefix}costs/2026-11-20.json", report)

    def keys(self, prefix: str) -> tuple[str, ...]:
        if self.is_down:
            raise Unreachable("s3")
        return super().keys(prefix)


@pytest.mark.parametrize(("name", "prefix"), [("", ""), ("/journal", ""), ("/copies/prod", "copies/prod/")])
def test_a_bucket_is_read(name: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.aws.s3.S3Bucket", type("Here", (Stored,), {"prefix": prefix}))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert [one.day for one in costs_at(f"s3://things{name}", 30).days] == ["2026-11-20"]


def test_a_bucket_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.aws.s3.S3Bucket", type("Down", (Stored,), {"is_down": True}))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(InputError, match="--journal s3://things: "):
        costs_at("s3://things", 30)


def test_a_live_cluster_adds_today_up_to_now() -> None:
    now = FIRST + 2 * DAY + 8 * HOUR
    billed = ledger(2, msgspec.structs.replace(life("a", "web", 6), instance="i-a"), hours=6)
    yesterday = day(ledger(1, life("a", "web", 24)), "prod")
    known = Costs(days=(yesterday, day(billed, "prod")), ledger=billed)
    days = with_now(known, fleet(claim("a", FIRST), claim("b", now - HOUR)), "", now).days
    assert [one.day for one in days] == ["2026-11-21", "2026-11-22"]
    assert days[-1].node_hours == 9.0  # six, two more, and the new one's


@pytest.mark.parametrize("old", [None, ledger(0)])
def test_without_todays_ledger_the_nodes_that_are_there_count_from_midnight(old: Ledger | None) -> None:
    now = FIRST + 2 * DAY + 8 * HOUR
    [today] = with_now(Costs(ledger=old), fleet(claim("a", FIRST)), "team", now).days
    assert (today.node_hours, today.since, today.label) == (8.0, day_of(now), "team")


def test_the_command_asks_the_cluster_that_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    def live(chosen: object, now: datetime) -> tuple[Cluster, str]:
        del chosen
        return fleet(claim("a", now - HOUR)), ""

    monkeypatch.setattr(cli.cost, "_live", live)
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert main(["cost", "--context", "prod"]) == 0
    assert "default" in capsys.readouterr().out


@pytest.mark.parametrize(("amount", "columns"), [(0.0, 0), (0.001, 0), (0.5, BAR / 2), (1.0, BAR), (0.02, 1)], ids=str)
def test_a_bar_is_as_long_as_its_share(amount: float, columns: float) -> None:
    assert len(bar(amount, 1.0)) == columns


def test_totals_of_no_machine_are_nothing() -> None:
    assert totals((day(ledger(0), "prod"),), "pool").parts == ()


def test_a_report_survives_the_journey() -> None:
    report = day(ledger(0, life("a", "web", 24)), "prod")
    assert msgspec.json.decode(msgspec.json.encode(report), type=Day) == report
