"""`joiner cost --commitments` without a file: the commitments that `catalog` stored."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from cli.main import main
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.ec2.commitments import Commitments, OnDemandInstance, ReservedInstances
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger
from shared.report.costs.ledger_store import LEDGER_KEY
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.store.catalog import NEWEST_CATALOG_KEY, build_catalog_key
from shared.store.catalog_format import compress_body, encode_catalog
from tests.support.catalogues import make_instance_type

Out = pytest.CaptureFixture[str]
DAY = datetime(2026, 11, 22, tzinfo=UTC)
RESERVED = ReservedInstances(reservation_id="ri", instance_type="m5.large", count=2, usd_per_hour=0.06)
OTHER = OnDemandInstance(instance_id="m5.large/b", instance_type="m5.large", zone="b", usd_per_hour=0.1)


def make_source(folder: Path, commitments: Commitments | None) -> str:
    catalog = Catalog(
        region="us-east-1", instance_types=(make_instance_type("m5.large", 2),), built_at=DAY, commitments=commitments
    )
    key = build_catalog_key(catalog)
    for name, body in {NEWEST_CATALOG_KEY: key.encode(), key: compress_body(encode_catalog(catalog))}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(body)
    lifetimes = tuple(
        NodeLifetime(
            claim=name,
            instance=f"i-{name}",
            pool="default",
            instance_type="m5.large",
            capacity_type="on-demand",
            zone="us-east-1a",
            launched=DAY,
            usd_per_hour=0.1,
            on_demand_usd_per_hour=0.1,
            hours=1.0,
            usd=0.1,
            on_demand_usd=0.1,
        )
        for name in ("a", "b")
    )
    (folder / LEDGER_KEY).parent.mkdir()
    (folder / LEDGER_KEY).write_bytes(msgspec.json.encode(CostLedger(since=DAY, until=DAY + ONE_HOUR, lives=lifetimes)))
    return str(folder)


def test_stored_commitments_and_other_instances_are_used(tmp_path: Path, capsys: Out) -> None:
    source = make_source(tmp_path, Commitments(reserved=(RESERVED,), other_instances=(OTHER,)))
    assert main(["cost", "--journal", source, "--commitments", "-o", "json"]) == 0
    commitments = json.loads(capsys.readouterr().out)["commitments"]
    assert {key: commitments[key] for key in ("committedUsd", "unusedUsd", "coveredUsd", "uncoveredUsd")} == {
        "committedUsd": 0.12,
        "unusedUsd": 0.0,
        "coveredUsd": 0.1,
        "uncoveredUsd": 0.1,
    }


def test_catalog_without_commitments_is_reported_with_the_fix(tmp_path: Path, capsys: Out) -> None:
    assert main(["cost", "--journal", make_source(tmp_path, None), "--commitments"]) == 1
    assert "the newest catalog has no commitments: name a FILE, or set commitments" in capsys.readouterr().err


def test_without_the_option_no_catalog_is_read(tmp_path: Path, capsys: Out) -> None:
    source = make_source(tmp_path, Commitments(reserved=(RESERVED,)))
    (tmp_path / NEWEST_CATALOG_KEY).unlink()
    assert main(["cost", "--journal", source, "-o", "json"]) == 0
    assert "commitments" not in json.loads(capsys.readouterr().out)
