"""Tests of `joiner hub --daily`: sums, changes, clusters that are not included, Markdown, and the delivery."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from cli.hub import report_delivery
from cli.hub.daily_report import escape_markdown
from cli.main import main
from docs.reference.output import FIELDS
from shared.errors import Fault, Forbidden, NotFound, Unreachable
from tests.unit.cli.hub.hub_buckets import EXAMPLE
from tests.unit.cli.hub.test_hub import NOW, write_hub
from tests.unit.docs.test_output_fields import list_paths

Out = pytest.CaptureFixture[str]
TOPIC: Final = "arn:aws:sns:eu-west-1:123456789012:reports"


def put_report(folder: Path, day: str, usd: float, *, since: str = "00:00", **fields: Any) -> None:
    """Write the cost report of *day*, which begins at *since*."""
    next_day = f"{day[:8]}{int(day[8:]) + 1:02}"
    times = {"since": f"{day}T{since}:00Z", "until": f"{next_day}T00:00:00Z"}
    amounts = {"usd": usd, "nodeHours": usd * 10, "savedBySpotUsd": 1.0, "savedByCommandsUsd": 2.0, "idleUsd": 0.5}
    report = {"day": day, "cluster": folder.name, **times, **amounts, **fields}
    (folder / "costs").mkdir(parents=True, exist_ok=True)
    (folder / "costs" / f"{day}.json").write_text(json.dumps(report))


@pytest.fixture
def hub_file(tmp_path: Path) -> str:
    """Write five clusters: two with both reports, one with a partial one, one without reports, and a missing one."""
    for name in ("prod", "batch", "new", "none"):
        shutil.copytree(EXAMPLE, tmp_path / name)
    for name, (before, usd) in {"prod": (10.0, 12.0), "batch": (40.0, 30.0)}.items():
        put_report(tmp_path / name, "2026-11-19", before)
        put_report(tmp_path / name, "2026-11-20", usd)
    put_report(tmp_path / "new", "2026-11-20", 1.0, since="18:00")
    return write_hub(tmp_path, *({"name": name, "folder": name} for name in ("prod", "batch", "new", "none", "gone")))


def run_daily(capsys: Out, file: str, *arguments: str) -> tuple[int, str]:
    status = main(["hub", file, "--daily", *arguments, "--now", NOW])
    return status, capsys.readouterr().out


def test_report_has_the_sums_of_known_clusters_and_names_the_others(hub_file: str, capsys: Out) -> None:
    status, text = run_daily(capsys, hub_file)
    lines = text.splitlines()
    assert status == 1
    assert lines[:8] == [
        "# 3 of 5 clusters cost $43.00 on 2026-11-20 (UTC)",
        "",
        "- Not included, because the cost of the day is unknown: none, gone",
        "- 430 node hours",
        "- -$8.00 compared with 2026-11-19, for 2 clusters",
        "- Spot saved $3.00, compared with on-demand prices",
        "- Disruption commands saved $6.00 until the end of the day",
        "- $1.50 was for capacity that no pod requested",
    ]


def test_clusters_are_listed_with_the_unknown_ones_first_and_then_by_cost(hub_file: str, capsys: Out) -> None:
    lines = [line for line in run_daily(capsys, hub_file)[1].splitlines() if line.startswith("- **")]
    assert [line.split("**")[1] for line in lines] == ["gone", "none", "batch", "prod", "new"]
    assert "folder not found" in lines[0]
    assert "no cost report for 2026-11-20: Joiner writes it after 01:00 UTC of the next day. Now: 1 node" in lines[1]
    assert "$30.00 (-$10.00) for 300 node hours. Now: 1 node, $0.0546/h, 2 pending pods, 0 pauses" in lines[2]
    assert "$1.00 for 10 node hours, only from 18:00 to 00:00. Now:" in lines[4]


def test_json_has_the_report_and_the_current_state(hub_file: str, capsys: Out) -> None:
    status, text = run_daily(capsys, hub_file, "-o", "json")
    document = json.loads(text)
    assert status == 1
    assert document["day"] == "2026-11-20"
    totals = document["totals"]
    assert (totals["usd"], totals["changeUsd"], totals["changedClusters"]) == (43.0, -8.0, 2)
    assert totals["missing"] == ["none", "gone"]
    assert [cluster.get("usd") for cluster in document["clusters"]] == [12.0, 30.0, 1.0, None, None]
    assert [cluster.get("complete") for cluster in document["clusters"][:3]] == [True, True, False]
    assert document["now"]["totals"]["nodes"] == 4


def test_json_has_the_documented_fields(hub_file: str, capsys: Out) -> None:
    document = json.loads(run_daily(capsys, hub_file, "-o", "json")[1])
    printed_paths = {path for path in list_paths(document) if path != "apiVersion" and not path.startswith("now.")}
    assert printed_paths == {path for path in FIELDS["hub --daily"] if not path.startswith("now.")}


def test_day_without_any_report_is_unknown_and_not_zero(hub_file: str, capsys: Out) -> None:
    status, text = run_daily(capsys, hub_file, "2026-11-01")
    assert (status, text.splitlines()[0]) == (1, "# cost of 5 clusters on 2026-11-01 unknown (UTC)")
    totals = json.loads(run_daily(capsys, hub_file, "2026-11-01", "-o", "json")[1])["totals"]
    assert [value for name, value in totals.items() if name not in ("changedClusters", "missing")] == [None] * 6
    assert "node hours" not in text


def test_complete_report_exits_with_zero(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "prod")
    put_report(tmp_path / "prod", "2026-11-19", 12.0)
    put_report(tmp_path / "prod", "2026-11-20", 12.0)
    status, text = run_daily(capsys, write_hub(tmp_path, {"name": "prod", "folder": "prod"}))
    assert (status, text.splitlines()[0]) == (0, "# 1 cluster cost $12.00 on 2026-11-20 (UTC)")
    assert "- unchanged compared with 2026-11-19, for 1 cluster" in text


def test_first_report_has_no_change(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "prod")
    put_report(tmp_path / "prod", "2026-11-20", 12.0)
    status, text = run_daily(capsys, write_hub(tmp_path, {"name": "prod", "folder": "prod"}))
    assert status == 0
    assert "compared with 2026-11-19" not in text


def test_damaged_report_is_named(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "prod")
    put_report(tmp_path / "prod", "2026-11-20", 12.0)
    (tmp_path / "prod/costs/2026-11-20.json").write_text("{")
    status, text = run_daily(capsys, write_hub(tmp_path, {"name": "prod", "folder": "prod"}))
    assert status == 1
    assert "**prod**: costs/2026-11-20.json: written by another version of Joiner, or damaged" in text
    assert "## To check" in text


def test_names_and_reasons_have_no_meaning_in_markdown(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "prod")
    _, text = run_daily(capsys, write_hub(tmp_path, {"name": "[x](http://a) <img>", "folder": "prod"}))
    assert r"**\[x\](http://a) \<img\>**" in text
    assert escape_markdown("a\n# b | c") == r"a # b \| c"


class FakeTopic:
    """A topic that records messages, or fails with `fault`."""

    messages: list[tuple[str, str, str]]
    fault: Fault | None

    def __init__(self, clients: Any, arn: str) -> None:
        """Publish to *arn*."""
        self._key = f"{clients.region} {arn.rpartition(':')[2]}"

    def publish(self, subject: str, text: str) -> None:
        """Record the message."""
        if self.fault is not None:
            raise self.fault
        self.messages.append((self._key, subject, text))


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> type[FakeTopic]:
    FakeTopic.messages, FakeTopic.fault = [], None
    monkeypatch.setattr(report_delivery, "SnsTopic", FakeTopic)
    return FakeTopic


def test_report_is_sent_with_the_names_of_missing_clusters(hub_file: str, capsys: Out, topic: type[FakeTopic]) -> None:
    status, text = run_daily(capsys, hub_file, "--topic", TOPIC)
    assert status == 1
    assert topic.messages == [("eu-west-1 reports", "Joiner: 3 of 5 clusters cost $43.00 on 2026-11-20", text)]


def test_message_is_markdown_also_if_the_output_is_json(hub_file: str, capsys: Out, topic: type[FakeTopic]) -> None:
    run_daily(capsys, hub_file, "--topic", TOPIC, "-o", "json")
    assert topic.messages[0][2].startswith("# 3 of 5 clusters cost $43.00")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Forbidden("sns:Publish: AuthorizationError"), "your identity needs sns:Publish on the topic"),
        (NotFound("sns:Publish: NotFound"), "check the ARN and the region of the topic"),
        (Unreachable("sns:Publish: timeout"), "the report was not sent: sns:Publish: timeout"),
    ],
)
def test_report_that_was_not_sent_is_printed_and_is_an_error(
    hub_file: str, capsys: Out, topic: type[FakeTopic], fault: Fault, words: str
) -> None:
    topic.fault = fault
    assert main(["hub", hub_file, "--daily", "--now", NOW, "--topic", TOPIC]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("# 3 of 5 clusters")
    assert words in captured.err


def test_report_longer_than_a_message_is_cut_and_says_so(topic: type[FakeTopic]) -> None:
    report_delivery.send_report(TOPIC, "subject", "ä" * 200_000)
    text = topic.messages[0][2]
    assert len(text.encode()) <= report_delivery.MAX_MESSAGE_BYTES
    assert text.endswith("(cut: the report is longer than an SNS message)\n")


def test_invalid_topic_is_an_error_with_an_example(hub_file: str, capsys: Out) -> None:
    assert main(["hub", hub_file, "--daily", "--now", NOW, "--topic", "reports"]) == 1
    assert "--topic 'reports' is not the ARN of a standard SNS topic: write it as in arn:aws:sns:" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", TOPIC], "--topic is used with --daily only"),
        (["--daily", "yesterday"], "'yesterday' is not a day: write it as in 2026-11-20"),
    ],
)
def test_wrong_usage(capsys: Out, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["hub", "examples/hub.yaml", *arguments])
    assert words in capsys.readouterr().err
