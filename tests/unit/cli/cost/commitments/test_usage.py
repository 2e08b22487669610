"""What commitments cover of the nodes of a ledger, hour by hour, and how `joiner cost` shows it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.cost.commitments.page import LIMITS_OF_KNOWLEDGE
from cli.cost.commitments.usage import convert_document
from cli.main import main
from shared.report.costs.commitment_usage import CommitmentUsage, compute_commitment_usage
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger
from shared.report.costs.daily_report import build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX, LEDGER_KEY
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.store.commitments import CommitmentsDocument, parse_commitments

Out = pytest.CaptureFixture[str]
DAY = datetime(2026, 11, 22, tzinfo=UTC)
END = "2027-11-01T00:00:00Z"


def make_lifetime(name: str, instance_type: str, price: float, **changes: Any) -> NodeLifetime:
    lifetime = NodeLifetime(
        claim=name,
        instance=f"i-{name}",
        pool="default",
        instance_type=instance_type,
        capacity_type="on-demand",
        zone="us-east-1a",
        launched=DAY,
        usd_per_hour=price,
        on_demand_usd_per_hour=price,
        hours=2.0,
        usd=2.0 * price,
        on_demand_usd=2.0 * price,
    )
    return msgspec.structs.replace(lifetime, **changes)


def make_ledger(*lifetimes: NodeLifetime, hours: float = 2) -> CostLedger:
    return CostLedger(since=DAY, until=DAY + hours * ONE_HOUR, lives=lifetimes)


def make_document(*plans: dict[str, Any], reserved: tuple[dict[str, Any], ...] = ()) -> CommitmentsDocument:
    return parse_commitments("F", {"savingsPlans": list(plans), "reservedInstances": list(reserved)})


def compute_usage(document: CommitmentsDocument, ledger: CostLedger) -> CommitmentUsage:
    return compute_commitment_usage(convert_document(document, ledger), ledger)


def make_plan(usd_per_hour: float, *rates: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "sp", "type": "Compute", "usdPerHour": usd_per_hour, "end": END, "rates": list(rates)} | changes


def make_reserved(**changes: Any) -> dict[str, Any]:
    fields = {"id": "ri", "instanceType": "m5.large", "count": 1, "usdPerHour": 0.06, "end": END, "region": "us-east-1"}
    return {key: value for key, value in (fields | changes).items() if value is not None}


def test_savings_plan_covers_the_higher_savings_percentage_first() -> None:
    # https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html: r5.4xlarge saves 30 %, m5.24xlarge
    # 18 %; what exceeds the commitment costs the on-demand price
    ledger = make_ledger(
        make_lifetime("m", "m5.24xlarge", 10.0), *(make_lifetime(f"r{n}", "r5.4xlarge", 1.0) for n in range(4)), hours=1
    )
    rates = ({"instanceType": "m5.24xlarge", "usdPerHour": 8.2}, {"instanceFamily": "r5", "discountPercent": 30})
    [hour] = compute_usage(make_document(make_plan(6.9, *rates)), ledger).hours
    assert [hour.covered_usd, hour.uncovered_usd] == pytest.approx([9.0, 5.0])
    assert [hour.committed_usd, hour.unused_usd] == pytest.approx([6.9, 0.0])


def test_reserved_instance_covers_half_of_an_instance_of_twice_its_size() -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html: a t2.medium covers 50 % of a t2.large
    reserved = make_reserved(instanceType="t2.medium", usdPerHour=0.03)
    usage = compute_usage(
        make_document(reserved=(reserved,)), make_ledger(make_lifetime("a", "t2.large", 0.1), hours=1)
    )
    assert usage.hours[0].covered_usd == pytest.approx(0.05)
    assert usage.hours[0].unused_usd == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("minutes", "covered_hours", "uncovered_hours"), [(60, 1.0, 3.0), (15, 1.0, 0.0), (30, 1.0, 1.0)]
)
def test_hour_of_a_reserved_instance_is_shared_by_instances_that_run_at_the_same_time(
    minutes: int, covered_hours: float, uncovered_hours: float
) -> None:
    # https://docs.aws.amazon.com/whitepapers/latest/cost-optimization-reservation-models/usage-billing.html: four
    # m4.xlarge for an hour, and for 15 minutes each
    lifetimes = [make_lifetime(name, "m4.xlarge", 0.2, ended=DAY + timedelta(minutes=minutes)) for name in "abcd"]
    document = make_document(reserved=(make_reserved(instanceType="m4.xlarge"),))
    [hour] = compute_usage(document, make_ledger(*lifetimes, hours=1)).hours
    assert hour.covered_usd == pytest.approx(covered_hours * 0.2)
    assert hour.uncovered_usd == pytest.approx(uncovered_hours * 0.2)


@pytest.mark.parametrize(
    ("changes", "unused"),
    [
        ({}, [0.0, 0.0]),
        ({"ended": DAY + 1.5 * ONE_HOUR}, [0.0, 0.03]),
        ({"launched": DAY + ONE_HOUR}, [0.06, 0.0]),
        ({"launched": None}, [0.06, 0.06]),
        ({"capacity_type": "spot"}, [0.06, 0.06]),
        ({"capacity_type": "reserved"}, [0.06, 0.06]),
        ({"instance_type": "c5.large"}, [0.06, 0.06]),
    ],
    ids=str,
)
def test_only_running_on_demand_nodes_use_commitments(changes: dict[str, Any], unused: list[float]) -> None:
    ledger = make_ledger(msgspec.structs.replace(make_lifetime("a", "m5.large", 0.1), **changes))
    hours = compute_usage(make_document(reserved=(make_reserved(),)), ledger).hours
    assert [hour.unused_usd for hour in hours] == pytest.approx(unused)


def test_rate_of_an_instance_type_overrides_the_discount_of_its_family() -> None:
    rates = ({"instanceType": "m5.large", "usdPerHour": 0.09}, {"instanceFamily": "m5", "discountPercent": 50})
    usage = compute_usage(
        make_document(make_plan(1.0, *rates)), make_ledger(make_lifetime("a", "m5.large", 0.1), hours=1)
    )
    assert usage.commitments[0].used_usd == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("term", "committed"),
    [
        ({}, [0.06, 0.06]),
        ({"end": "2026-11-22T01:00:00Z"}, [0.06, 0.0]),
        ({"start": "2026-11-22T01:00:00Z"}, [0.0, 0.06]),
        ({"end": "2026-11-01T00:00:00Z"}, [0.0, 0.0]),
    ],
    ids=str,
)
def test_commitment_counts_only_within_its_term(term: dict[str, Any], committed: list[float]) -> None:
    document = make_document(reserved=(make_reserved(**term),))
    hours = compute_usage(document, make_ledger(make_lifetime("a", "m5.large", 0.1))).hours
    assert [hour.committed_usd for hour in hours] == pytest.approx(committed)
    assert [hour.uncovered_usd for hour in hours] == pytest.approx([0.0 if usd else 0.1 for usd in committed])


def test_commitments_of_other_regions_are_named_and_not_counted() -> None:
    zonal = make_reserved(id="zonal", region=None, zone="eu-central-1a")
    rates = {"instanceFamily": "m5", "discountPercent": 27}
    plan = make_plan(1.0, rates, type="EC2Instance", region="eu-west-1", instanceFamily="m5")
    document = make_document(plan, reserved=(zonal, make_reserved()))
    usage = compute_usage(document, make_ledger(make_lifetime("a", "m5.large", 0.1)))
    assert usage.other_regions == ("sp", "zonal")
    assert [part.id for part in usage.commitments] == ["ri"]


def test_incomplete_hour_is_not_counted() -> None:
    usage = compute_usage(make_document(reserved=(make_reserved(),)), make_ledger(hours=1.5))
    assert [hour.hour for hour in usage.hours] == [DAY]


@given(
    st.lists(
        st.tuples(st.sampled_from(("m5.large", "m5.xlarge", "c5.large")), st.floats(0, 3), st.floats(0, 3)), max_size=6
    ),
    st.floats(0.01, 1),
    st.integers(1, 3),
)
def test_covered_and_uncovered_are_the_on_demand_cost_and_nothing_exceeds_a_commitment(
    nodes: list[tuple[str, float, float]], usd: float, count: int
) -> None:
    lifetimes = [
        make_lifetime(
            f"n{number}", name, 0.1, launched=DAY + begin * ONE_HOUR, ended=DAY + (begin + duration) * ONE_HOUR
        )
        for number, (name, begin, duration) in enumerate(nodes)
    ]
    plan = make_plan(
        usd, {"instanceFamily": "c5", "discountPercent": 30}, {"instanceFamily": "m5", "discountPercent": 20}
    )
    usage = compute_usage(make_document(plan, reserved=(make_reserved(count=count),)), make_ledger(*lifetimes))
    ran = sum(max(0.0, min(begin + duration, 2.0) - min(begin, 2.0)) * 0.1 for _, begin, duration in nodes)
    assert sum(hour.covered_usd + hour.uncovered_usd for hour in usage.hours) == pytest.approx(ran, abs=1e-6)
    assert all(-1e-9 <= hour.unused_usd <= hour.committed_usd for hour in usage.hours)


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / COSTS_PREFIX).mkdir()
    ledger = make_ledger(
        make_lifetime("a", "m5.large", 0.1),
        make_lifetime("b", "m5.xlarge", 0.2, launched=DAY + ONE_HOUR, hours=1.0, usd=0.2, on_demand_usd=0.2),
    )
    (tmp_path / LEDGER_KEY).write_bytes(msgspec.json.encode(ledger))
    return str(tmp_path)


@pytest.fixture
def document_file(tmp_path: Path) -> str:
    plan = make_plan(0.1, {"instanceFamily": "m5", "discountPercent": 25})
    elsewhere = make_reserved(id="elsewhere", region="eu-west-1")
    file = tmp_path / "commitments.json"
    file.write_text(json.dumps({"savingsPlans": [plan], "reservedInstances": [make_reserved(), elsewhere]}))
    return str(file)


def test_cost_page_shows_covered_uncovered_and_unused_by_hour(source: str, document_file: str, capsys: Out) -> None:
    assert main(["cost", "--journal", source, "--commitments", document_file, "--wide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-12:] == [
        (
            "Commitments on 2026-11-22, 2 complete hours: $0.32 committed, $0.10 unused (31%); on-demand usage: $0.33 "
            "covered, $0.07 uncovered"
        ),
        "HOUR   COVERED  UNCOVERED  COMMITTED  UNUSED",
        "00:00   0.1000     0.0000     0.1600  0.1000",
        "01:00   0.2333     0.0667     0.1600  0.0000",
        "",
        "COMMITMENT  TYPE      COMMITTED    USED  UNUSED",
        "ri          regional     0.1200  0.1200  0.0000",
        "sp          Compute      0.2000  0.1000  0.1000",
        *LIMITS_OF_KNOWLEDGE,
        "Not counted, because they are for other regions: elsewhere.",
    ]


def test_json_output_has_the_use_of_commitments_only_if_a_document_is_given(
    source: str, document_file: str, capsys: Out
) -> None:
    assert main(["cost", "--journal", source, "-o", "json"]) == 0
    assert "commitments" not in json.loads(capsys.readouterr().out)
    assert main(["cost", "--journal", source, "--commitments", document_file, "-o", "json"]) == 0
    commitments = json.loads(capsys.readouterr().out)["commitments"]
    assert {key: commitments[key] for key in ("committedUsd", "unusedUsd", "coveredUsd", "uncoveredUsd")} == {
        "committedUsd": 0.32,
        "unusedUsd": 0.1,
        "coveredUsd": pytest.approx(0.333333),
        "uncoveredUsd": pytest.approx(0.066667),
    }
    assert [hour["hour"] for hour in commitments["hours"]] == ["2026-11-22T00:00:00Z", "2026-11-22T01:00:00Z"]
    assert [(part["id"], part["unusedUsd"]) for part in commitments["parts"]] == [("ri", 0.0), ("sp", 0.1)]
    assert commitments["otherRegions"] == ["elsewhere"]
    assert "other clusters" in commitments["notes"][0]


def test_errors_of_the_document_are_printed_one_per_line(source: str, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "bad.yaml").write_text("savingsPlans: [{id: a}, {id: b}]")
    assert main(["cost", "--journal", source, "--commitments", str(tmp_path / "bad.yaml")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("joiner cost: --commitments ") == 2


def test_missing_ledger_is_reported(source: str, document_file: str, capsys: Out) -> None:
    ledger_file = Path(source) / LEDGER_KEY
    report = build_daily_report(msgspec.json.decode(ledger_file.read_bytes(), type=CostLedger), "prod")
    (Path(source) / COSTS_PREFIX / "2026-11-22.json").write_bytes(msgspec.json.encode(report))
    ledger_file.unlink()
    assert main(["cost", "--journal", source, "--commitments", document_file]) == 1
    assert "costs/today.json is missing" in capsys.readouterr().err
