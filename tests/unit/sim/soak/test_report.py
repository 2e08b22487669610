"""Tests of the results of simulated weeks: records, file, table, plot and command line."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from sim.soak import __main__ as command
from sim.soak import soak_runner
from sim.soak.ideal_costs import IdealFigures
from sim.soak.report.plot import render_plot
from sim.soak.report.results import SoakRecord, append_records, read_records
from sim.soak.report.summary import ConsolidationFigures, SoakSummary
from sim.soak.report.table import build_rows, format_table
from sim.soak.soak_runner import SoakTask, list_tasks

SVG = "{http://www.w3.org/2000/svg}"


def make_summary(**changes: object) -> SoakSummary:
    fields: dict[str, Any] = {
        "world": "mixed",
        "policy": "default",
        "label": "Joiner, default",
        "curve": "",
        "days": 7,
        "seed": 1,
        "size": 1,
        "mean_pods": 100,
        "mean_nodes": 20,
        "usd_per_hour": 1.2,
        "evictions_per_pod_day": {"Underutilized": 2.0, "Empty": 0, "Drifted": 0.1, "": 0.2},
        "waiting_pod_share": 0.001,
        "launches": 70,
        "interruptions": 3,
        "consolidations": {},
        "short_lived_nodes": 0,
        "short_lived_without_changes": 0,
        "reverted_nodes": 0,
        "violations": 0,
        "failed_calls": 0,
    }
    return msgspec.convert({"type": "week", **fields, **changes}, SoakSummary)


def make_ideal(**changes: object) -> IdealFigures:
    fields = {"world": "mixed", "days": 7, "seed": 1, "size": 1, "usd_per_hour": 1.0, "hourly": [1.0]}
    fields["disruptable_usd_per_hour"] = 0.8
    return msgspec.convert({"type": "ideal", **fields, **changes}, IdealFigures)


CURVE = [
    make_summary(
        policy=f"price={price}",
        label=f"eviction-price-usd={price}",
        curve="price",
        usd_per_hour=cost,
        evictions_per_pod_day={"Underutilized": evictions, "Drifted": 0, "": 0},
    )
    for price, cost, evictions in (("0.01", 1.15, 0.5), ("0.001", 1.1, 1.5))
]
RECORDS: list[SoakRecord] = [
    make_ideal(),
    make_ideal(seed=2, usd_per_hour=2.0),
    make_summary(),
    make_summary(seed=2, usd_per_hour=2.1),
    make_summary(policy="karpenter", label="Karpenter's rule"),
    make_ideal(world="steady"),
    make_summary(world="steady"),
    *CURVE,
]


@pytest.mark.parametrize("field", ["violations", "failed_calls"])
def test_week_has_failed_after_a_violation_or_a_failed_invocation(field: str) -> None:
    assert make_summary(**{field: 1}).has_failed
    assert not make_summary(short_lived_nodes=3, interruptions=4, launches=9).has_failed


def test_counts_of_consolidations_are_summed_over_their_kinds() -> None:
    figures = ConsolidationFigures(
        count=3,
        evictions=5,
        savings_usd=1,
        overlap_usd=0,
        wasted=1,
        wasted_evictions=2,
        ended_by_launch_within_an_hour=0,
    )
    summary = msgspec.structs.replace(make_summary(), consolidations={"deletion": figures, "single": figures})
    assert (summary.consolidation_count, summary.wasted_count) == (6, 2)


# File


def test_results_file_returns_the_newest_record_of_each_week(tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    assert read_records(path) == []
    append_records(path, RECORDS)
    repeated_week = make_summary(launches=99)
    append_records(path, [repeated_week])
    assert read_records(path) == [repeated_week if record.key == repeated_week.key else record for record in RECORDS]


def test_a_line_that_is_no_record_is_an_error_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    append_records(path, [make_ideal()])
    with path.open("a") as file:
        file.write('{"type": "year"}\n')
    with pytest.raises(ValueError, match=r"weeks\.jsonl:2: "):
        read_records(path)


# Table and plot


def test_row_is_the_mean_of_the_seeds() -> None:
    [mixed_row, *_] = build_rows(RECORDS)
    assert mixed_row.usd_per_hour == pytest.approx(1.65)
    assert mixed_row.over_ideal_percent == pytest.approx(10)
    assert build_rows([make_summary()])[0].over_ideal_percent is None


def test_table_is_markdown_with_a_row_for_each_policy() -> None:
    lines = list(format_table(RECORDS))
    assert lines[0] == (
        "**mixed**, 7 days, seeds 1, 2; ideal repacking $1.500/h, without the pods that have `do-not-disrupt` $0.800/h"
    )
    rows = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert [line.split(" | ")[:4] for line in rows if line.startswith("| Joiner")] == [
        ["| Joiner, default", "1.650", "10.0 %", "2.00"],
        ["| Joiner, default", "1.200", "20.0 %", "2.00"],
    ]


def test_plot_is_well_formed_svg_with_a_panel_for_each_world_and_a_line_through_the_curve() -> None:
    svg = render_plot(RECORDS)
    root = ET.fromstring(svg)  # noqa: S314 - our own
    titles = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "title"]
    assert titles == ["mixed", "steady"]
    [line] = root.iter(f"{SVG}polyline")
    x_coordinates = [float(point.split(",")[0]) for point in (line.get("points") or "").split()]
    assert x_coordinates == sorted(x_coordinates, reverse=True), "a higher price means fewer evictions"
    assert "prefers-color-scheme:dark" in svg
    assert "cost above ideal repacking, %" in svg
    assert "mean cost, $/h" in render_plot([make_summary()])


# Command line


def test_tasks_of_a_series_start_with_the_ideal_costs_of_each_week() -> None:
    tasks = list(list_tasks(["mixed"], [1, 2], command.parse_options("default,never", [], []), days=1, size=0.5))
    assert [task.title for task in tasks] == [
        *("mixed 1 ideal", "mixed 1 default", "mixed 1 never"),
        *("mixed 2 ideal", "mixed 2 default", "mixed 2 never"),
    ]


@pytest.mark.parametrize(("text", "seeds"), [("1", [1]), ("1-3", [1, 2, 3]), ("5,1-2", [5, 1, 2])])
def test_seeds_are_numbers_and_ranges(text: str, seeds: list[int]) -> None:
    assert command.parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "x"], "write numbers and ranges like 1-3,7"),
        (["--world", "mars"], "world mars: write mixed, steady, batch, development, storms, committed or all"),
        (["--policy", "often"], "policy often: write default"),
        (["--set", "mode"], "--set mode: write KEY=VALUE"),
        (["--set", "moods=good"], "the functions have no setting moods"),
        (["--annotate", "spot=1"], "--annotate spot=1: write NODEPOOL:KEY=VALUE"),
    ],
)
def test_an_invalid_option_is_an_error_that_names_the_fix(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert message in capsys.readouterr().err


def test_series_continues_with_the_weeks_that_the_file_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, plot_path = tmp_path / "weeks.jsonl", tmp_path / "weeks.svg"
    append_records(path, [make_ideal(), make_summary()])
    run_titles: list[str] = []

    def run_task(task: SoakTask) -> SoakRecord:
        run_titles.append(task.title)
        assert task.policy is not None
        return make_summary(policy=task.policy.name, label=task.policy.title)

    monkeypatch.setattr(soak_runner, "run_task", run_task)
    arguments = ["--policy", "default,never", "--results", str(path), "--plot", str(plot_path)]
    assert command.main(arguments) == 0
    assert run_titles == ["mixed 1 never"]
    assert [record.key[1] for record in read_records(path)] == ["", "default", "never"]
    assert plot_path.read_text().startswith("<svg")
    output = capsys.readouterr()
    assert "| no consolidation |" in output.out
    assert "0 left" in output.err


def test_report_prints_the_table_or_json_and_fails_if_a_week_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "weeks.jsonl"
    append_records(path, [make_ideal(), make_summary(violations=1, examples=["a pod was evicted"])])
    assert command.main(["--report", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines() == list(format_table(read_records(path)))
    assert "mixed 1 default: a pod was evicted" in output.err
    assert command.main(["--report", str(path), "-o", "json"]) == 1
    documents = msgspec.json.decode(capsys.readouterr().out, type=list[SoakRecord])
    assert documents == read_records(path)
