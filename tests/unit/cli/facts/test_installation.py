"""What `joiner status` and `joiner top` say of the installation: does it act, does it tick, where is its dashboard."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

import cli.aws.session
from cli.facts.installation import Installation, InstallationReader, read_installation
from cli.facts.installation_page import build_installation_document, render_installation, render_installation_concerns
from cli.facts.mode import describe_mode
from cli.main import build_parser, main
from cli.terminal.errors import InputError
from cli.terminal.text import Palette
from shared.model.cloud_provider.zonal_shift import ZonalShift, ZonalShiftRecord
from shared.settings import Settings
from tests.support.cli.doctor_answers import DENIED, INSTALLED, NOT_THERE, ByHeart
from tests.support.cli.fleet_files import POOL, make_claim, make_instance_type, make_node_manifests

Out = pytest.CaptureFixture[str]
NOW: Final = datetime(2026, 11, 22, 9, tzinfo=UTC)
PLAIN: Final = Palette(enabled=False)
FUNCTIONS: Final = ("Provision", "Lifecycle", "Disrupt", "Catalog")
LISTED: Final = [
    *(("AWS::Lambda::Function", f"Functions{name}1A", f"joiner-prod-{name}") for name in FUNCTIONS),
    ("AWS::Lambda::Function", "FunctionsInterrupt2B", "joiner-prod-i"),
    ("AWS::CloudWatch::Dashboard", "DashboardPage", "joiner-prod"),
]


def build_account(
    ago: dict[str, timedelta] | None = None, failing: str = "", settings: dict[str, str] | None = None
) -> ByHeart:
    """Build an account whose functions succeeded a minute ago, or *ago* earlier, with these *settings*."""
    variables = {"CLUSTER_NAME": "prod", "JOINER_REGION": "us-east-1"}
    variables |= {f"JOINER_{key}": value for key, value in (settings or {}).items()}
    listed = [
        {"ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical}
        for kind, logical, physical in LISTED
    ]

    def count(request: dict[str, Any]) -> dict[str, Any]:
        return {"MetricDataResults": [build_metric_data(query) for query in request["MetricDataQueries"]]}

    def build_metric_data(query: dict[str, Any]) -> dict[str, Any]:
        metric = query["MetricStat"]["Metric"]
        name = metric["Dimensions"][0]["Value"].rpartition("-")[2]
        last = NOW - (ago or {}).get(name, timedelta(minutes=1))
        minutes = [last - timedelta(minutes=number) for number in range(60)]
        is_counted = metric["MetricName"] == "Invocations" or name == failing
        return {"Id": query["Id"], "Timestamps": minutes if is_counted else [], "Values": [1.0] * 60 * is_counted}

    return ByHeart(
        cloudformation__DescribeStacks={"Stacks": [INSTALLED]},
        lambda__GetFunctionConfiguration={"Environment": {"Variables": variables}},
        cloudformation__ListStackResources={"StackResourceSummaries": listed},
        cloudwatch__GetMetricData=count,
    )


def read_account_installation(clients: ByHeart) -> Installation:
    return read_installation(clients, "joiner-prod", "prod", NOW)


def render_page(installation: Installation, width: int | None = None) -> str:
    return "\n".join(render_installation(installation, NOW, PLAIN, width))


def test_active_installation_is_three_lines_without_concerns() -> None:
    clients = build_account()
    assert render_page(read_account_installation(clients)).splitlines() == [
        "joiner-prod: Joiner is active",
        "last success: provision 1m ago, lifecycle 1m ago, disrupt 1m ago, catalog 1m ago",
        "dashboard: https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#dashboards/dashboard/joiner-prod",
    ]
    assert list(render_installation_concerns(read_account_installation(clients), NOW, PLAIN, None)) == []
    assert set(clients.call_counts) == {
        "cloudformation:DescribeStacks",
        "cloudformation:ListStackResources",
        "cloudwatch:GetMetricData",
        "lambda:GetFunctionConfiguration",
    }


def test_active_zonal_shifts_and_their_errors_are_shown() -> None:
    shifts = (ZonalShift(zone_id="use1-az1"), ZonalShift(zone_id="use1-az2", expires_at=NOW - timedelta(minutes=1)))
    record = ZonalShiftRecord(attempted_at=NOW, read_at=NOW, error="Forbidden: denied", shifts=shifts)
    installation = replace(read_account_installation(build_account()), zonal_shifts=record)
    page = render_page(installation)
    assert "zone use1-az1 has a zonal shift until AWS ends it: no nodes are launched there" in page
    assert "use1-az2 has" not in page
    assert "zonal shifts: could not be read: Forbidden: denied; the zonal shifts of" in page
    document = build_installation_document(installation)
    assert document is not None
    assert document["zonalShifts"][0] == {"zoneId": "use1-az1", "expiresAt": None}


@pytest.mark.parametrize(
    ("settings", "state", "words"),
    [
        (
            {"DISRUPTION": "plan"},
            "disruption-planned",
            "nodes to disrupt, but keeps them (write into clusters/NAME.yaml and deploy: disruption: active",
        ),
        (
            {"MODE": "plan", "DISRUPTION": "plan"},
            "planned",
            "decides and changes nothing (write into clusters/NAME.yaml and deploy: mode: active",
        ),
        (
            {"DISRUPTION_PAUSED": "Drifted in batch"},
            "paused",
            "disruption-paused is Drifted in batch: Joiner does not",
        ),
        ({"DISRUPTION_PAUSED": "false"}, "active", "Joiner is active"),
    ],
)
def test_planning_or_paused_installation_is_reported_with_a_fix(
    settings: dict[str, str], state: str, words: str
) -> None:
    installation = read_account_installation(build_account(settings=settings))
    assert words in render_page(installation)
    document = build_installation_document(installation)
    assert document is not None
    assert document["mode"] == state
    assert bool(list(render_installation_concerns(installation, NOW, PLAIN, None))) is (state != "active")


def test_function_is_late_relative_to_its_own_schedule() -> None:
    installation = read_account_installation(
        build_account({"Disrupt": timedelta(minutes=40), "Catalog": timedelta(minutes=6)}, failing="Lifecycle")
    )
    health_by_function = {beat.function: (beat.last_success, beat.is_late) for beat in installation.function_health}
    assert health_by_function["disrupt"] == (NOW - timedelta(minutes=40), True)
    assert health_by_function["catalog"] == (NOW - timedelta(minutes=6), False)
    assert health_by_function["lifecycle"] == (None, True)
    [late] = render_installation_concerns(installation, NOW, PLAIN, None)
    assert "lifecycle none in 3h (late)" in late
    assert "disrupt 40m ago (late)" in late
    assert late.endswith("to find the cause: `joiner doctor --cluster prod`")


def test_functions_without_invocations_are_late() -> None:
    installation = read_account_installation(
        ByHeart(**{**list_answers_by_keyword(build_account()), "cloudwatch__GetMetricData": {"MetricDataResults": []}})
    )
    assert [beat.is_late for beat in installation.function_health] == [True] * len(FUNCTIONS)


def list_answers_by_keyword(clients: ByHeart) -> dict[str, Any]:
    return {name.replace(":", "__").replace("-", "_"): answer for name, answer in clients.answers.items()}


@pytest.mark.parametrize(
    ("call", "answer", "words"),
    [
        ("cloudformation:DescribeStacks", DENIED, "joiner-prod could not be read: Forbidden: "),
        (
            "cloudformation:DescribeStacks",
            NOT_THERE,
            "Joiner is not installed: no stack joiner-prod in us-east-1. To fix: `npx",
        ),
        ("cloudformation:ListStackResources", DENIED, "the functions could not be read: Forbidden: "),
        ("cloudwatch:GetMetricData", DENIED, "the functions could not be read: Forbidden: "),
    ],
)
def test_unreadable_installation_is_reported_without_function_health(
    call: str, answer: dict[str, Any], words: str
) -> None:
    clients = build_account()
    clients.answers[call] = answer
    installation = read_account_installation(clients)
    assert words in render_page(installation)
    assert not installation.function_health
    assert json.dumps(build_installation_document(installation))


def test_denied_settings_leave_the_mode_unknown_and_the_health_known() -> None:
    clients = build_account({}, settings={"DISRUPTION": "plan"})
    clients.answers["lambda:GetFunctionConfiguration"] = DENIED
    installation = read_account_installation(clients)
    assert installation.operating_mode is None
    assert len(installation.function_health) == len(FUNCTIONS)
    assert "the functions could not be read: Forbidden: lambda:GetFunctionConfiguration" in render_page(installation)


def test_an_installation_without_functions_has_no_known_mode() -> None:
    clients = build_account()
    clients.answers["cloudformation:ListStackResources"] = {"StackResourceSummaries": []}
    assert read_account_installation(clients).operating_mode is None
    assert "lambda:GetFunctionConfiguration" not in clients.call_counts


@pytest.mark.parametrize(
    ("region", "host"),
    [("cn-north-1", "console.amazonaws.cn"), ("us-gov-west-1", "console.amazonaws-us-gov.com")],
)
def test_dashboard_url_matches_the_aws_partition(region: str, host: str) -> None:
    clients = build_account()
    clients.region = region
    assert read_account_installation(clients).dashboard_url.startswith(
        f"https://{host}/cloudwatch/home?region={region}#"
    )


@pytest.fixture
def by_heart(monkeypatch: pytest.MonkeyPatch) -> list[ByHeart]:
    opened = [build_account(settings={"DISRUPTION": "plan"})]

    @contextmanager
    def open_it(region: str) -> Iterator[tuple[ByHeart, datetime]]:
        assert region == "eu-west-1"
        yield opened[0], NOW

    monkeypatch.setattr(cli.aws.session, "open_clients", open_it)
    return opened


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}
    objects = [{**POOL, "status": {"conditions": [ready]}}, *make_node_manifests("n1", 4), make_claim("c1", "n1", 4)]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(
        json.dumps({"region": "nowhere", "instanceTypes": [make_instance_type(4)]})
    )
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


CLUSTER_FLAGS: Final = ("--cluster", "prod", "--region", "eu-west-1")


@pytest.mark.usefixtures("by_heart")
def test_status_and_top_report_the_same_installation_mode(fleet: list[str], capsys: Out) -> None:
    assert main(["status", *fleet, *CLUSTER_FLAGS]) == 0
    page = capsys.readouterr().out
    assert main(["top", *fleet, *CLUSTER_FLAGS, "--wide"]) == 0
    table = capsys.readouterr().out
    words = "the setting disruption is plan: Joiner launches nodes; it reports nodes to disrupt, but keeps them"
    assert words in page
    assert words in table
    assert "dashboard: " in page


@pytest.mark.usefixtures("by_heart")
def test_removable_node_is_kept_in_disruption_plan_mode(fleet: list[str], capsys: Out) -> None:
    reasons = []
    for flags in (CLUSTER_FLAGS, (*CLUSTER_FLAGS, "--no-account")):
        assert main(["top", *fleet, *flags, "-o", "json"]) == 0
        [node] = json.loads(capsys.readouterr().out)["nodes"]
        reasons.append(node["blockedBy"] and node["blockedBy"]["reason"])
    assert reasons == ["Planned", None]


@pytest.mark.parametrize(
    ("setting", "reason"), [("Empty", "Paused"), ("Empty in another", None), ("Emptyy", None), ("Drifted", None)]
)
def test_node_kept_by_the_disruption_paused_setting_shows_the_setting(
    fleet: list[str], by_heart: list[ByHeart], setting: str, reason: str | None, capsys: Out
) -> None:
    by_heart[0] = build_account(settings={"DISRUPTION_PAUSED": setting})
    assert main(["top", *fleet, *CLUSTER_FLAGS, "-o", "json"]) == 0
    [node] = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["blockedBy"] and node["blockedBy"]["reason"]) == reason
    assert reason is None or "setting disruption-paused" in node["blockedBy"]["message"]


def test_json_output_has_the_installation_or_null(fleet: list[str], by_heart: list[ByHeart], capsys: Out) -> None:
    assert main(["status", *fleet, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["installation"] is None
    assert not by_heart[0].call_counts
    assert main(["status", *fleet, *CLUSTER_FLAGS, "-o", "json"]) == 0
    installation = json.loads(capsys.readouterr().out)["installation"]
    assert (installation["stack"], installation["status"], installation["mode"]) == (
        "joiner-prod",
        "UPDATE_COMPLETE",
        "disruption-planned",
    )
    assert [function["name"] for function in installation["functions"]] == [
        "provision",
        "lifecycle",
        "disrupt",
        "catalog",
    ]


def test_fleet_is_shown_without_a_region(fleet: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("which region is not known: write --region, or set $AWS_REGION")

    monkeypatch.setattr(cli.aws.session, "open_clients", refuse)
    assert main(["status", *fleet, "--cluster", "prod"]) == 0
    output = capsys.readouterr().out
    assert "joiner-prod could not be read: which region is not known: write --region" in output
    assert "default" in output


def test_installation_state_is_cached_for_one_minute(fleet: list[str], by_heart: list[ByHeart]) -> None:
    beside = InstallationReader(build_parser("status").parse_args(["status", *fleet, *CLUSTER_FLAGS]))
    first = beside((), NOW)
    assert beside((), NOW + timedelta(seconds=59)) is first
    assert by_heart[0].call_counts["cloudformation:DescribeStacks"] == 1
    assert beside((), NOW + timedelta(seconds=61)) == first
    assert by_heart[0].call_counts["cloudformation:DescribeStacks"] == 2


def test_cluster_name_is_taken_from_the_kubeconfig_arn(by_heart: list[ByHeart]) -> None:
    beside = InstallationReader(build_parser("status").parse_args(["status"]))
    installation = beside(("arn:aws:eks:eu-west-1:123456789012:cluster/prod", "https://nowhere"), NOW)
    assert installation is not None
    assert (installation.stack, installation.cluster) == ("joiner-prod", "prod")
    assert (
        InstallationReader(build_parser("status").parse_args(["status"]))(("kind-kind", "https://nowhere"), NOW) is None
    )
    assert by_heart[0].call_counts


def test_doctor_and_status_describe_the_mode_identically() -> None:
    plain = Settings(cluster_name="prod", region="us-east-1", disruption="plan")
    assert describe_mode(plain).message in render_page(
        read_account_installation(build_account(settings={"DISRUPTION": "plan"}))
    )
