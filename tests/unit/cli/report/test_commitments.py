"""`joiner report` shows what commitments cover hour by hour, if the setting `commitments` is on."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.main import main
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool
from tests.support.cli.journal_plays import unpack_bucket
from tests.support.cli.page_assets import write_fake_assets

Out = pytest.CaptureFixture[str]
TYPES = ("m5.large", "m5.xlarge")


def write_bucket(source: str, folder: Path) -> Path:
    """Run three nodes for three hours with one Reserved Instance; return the content of the bucket in *folder*."""
    world = World(template=synthesize_template(settings=ACTIVE_SETTINGS | {"commitments": source}), types=TYPES)
    world.cloud.commitments.add_reserved("m5.large", 1, world.clock.get_time())
    world.apply([make_node_class(), make_node_pool(capacity=("on-demand",), types=TYPES)])
    world.advance_seconds(60)
    world.apply([make_deployment(5)])
    world.wait_until_settled(5)
    world.advance_seconds(timedelta(hours=3).total_seconds())
    return unpack_bucket(world.bucket, folder)


def test_report_shows_the_hours_of_the_cost_ledger(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path))
    folder = write_bucket("account", tmp_path / "bucket")
    assert main(["report", "-o", "json", "--journal", str(folder)]) == 0
    hours = json.loads(capsys.readouterr().out)["commitmentHours"]
    assert hours
    assert hours[-1]["coveredUsd"] > 0
    assert hours[-1]["committedUsd"] > 0
    assert main(["cost", "-o", "json", "--journal", str(folder), "--commitments"]) == 0
    cost_hours = json.loads(capsys.readouterr().out)["commitments"]["hours"]
    assert [hour["coveredUsd"] for hour in hours] == pytest.approx([hour["coveredUsd"] for hour in cost_hours])
    assert main(["report", "-", "--journal", str(folder)]) == 0
    assert "Savings Plans and Reserved Instances" in capsys.readouterr().out


def test_report_without_commitments_reads_no_cost_reports(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_bucket("off", tmp_path)
    monkeypatch.setattr("cli.report.session.read_cost_reports", lambda *_: pytest.fail("cost reports are read"))
    assert main(["report", "-o", "json", "--journal", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["commitmentHours"] == []
