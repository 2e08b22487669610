"""What `joiner status` and `joiner top` say of the installation: does it act, does it tick, where is its dashboard."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import cli.clouds
from cli.checks.acting import acting
from cli.files import InputError
from cli.installation import Beside, Installation, seen_in
from cli.installation_page import concerns, installation_document, installation_lines
from cli.main import main, parser_for
from cli.text import Palette
from shared.settings import Settings
from tests.unit.doctor_answers import DENIED, INSTALLED, NOT_THERE, ByHeart
from tests.unit.fleet_files import POOL, claim, kind, machine

Out = pytest.CaptureFixture[str]
NOW: Final = datetime(2026, 11, 22, 9, tzinfo=UTC)
PLAIN: Final = Palette(enabled=False)
FUNCTIONS: Final = ("Provision", "Lifecycle", "Disrupt", "Catalog")
LISTED: Final = [
    *(("AWS::Lambda::Function", f"Functions{name}1A", f"joiner-prod-{name}") for name in FUNCTIONS),
    ("AWS::Lambda::Function", "FunctionsInterrupt2B", "joiner-prod-i"),
    ("AWS::CloudWatch::Dashboard", "DashboardPage", "joiner-prod"),
]


def account(ago: dict[str, timedelta] | None = None, failing: str = "", told: dict[str, str] | None = None) -> ByHeart:
    """Answer an account whose functions succeeded a minute ago, or so long *ago*, with outputs that have *told*."""
    outputs = [{"OutputKey": f"Joiner{key}", "OutputValue": value} for key, value in (told or {}).items()]
    listed = [
        {"ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical}
        for kind, logical, physical in LISTED
    ]

    def count(said: dict[str, Any]) -> dict[str, Any]:
        return {"MetricDataResults": [counted(one) for one in said["MetricDataQueries"]]}

    def counted(query: dict[str, Any]) -> dict[str, Any]:
        metric = query["MetricStat"]["Metric"]
        name = metric["Dimensions"][0]["Value"].rpartition("-")[2]
        last = NOW - (ago or {}).get(name, timedelta(minutes=1))
        minutes = [last - timedelta(minutes=number) for number in range(60)]
        is_counted = metric["MetricName"] == "Invocations" or name == failing
        return {"Id": query["Id"], "Timestamps": minutes if is_counted else [], "Values": [1.0] * 60 * is_counted}

    return ByHeart(
        cloudformation__DescribeStacks={"Stacks": [INSTALLED | {"Outputs": outputs}]},
        cloudformation__ListStackResources={"StackResourceSummaries": listed},
        cloudwatch__GetMetricData=count,
    )


def seen(clients: ByHeart) -> Installation:
    return seen_in(clients, "joiner-prod", "prod", NOW)


def page(one: Installation, width: int | None = None) -> str:
    return "\n".join(installation_lines(one, NOW, PLAIN, width))


def test_one_that_acts_and_ticks_is_three_lines_and_no_concern() -> None:
    clients = account()
    assert page(seen(clients)).splitlines() == [
        "joiner-prod: it is active",
        "last success: provision 1 minute ago, lifecycle 1 minute ago, disrupt 1 minute ago, catalog 1 minute ago",
        "dashboard: https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#dashboards/dashboard/joiner-prod",
    ]
    assert list(concerns(seen(clients), NOW, PLAIN, None)) == []
    assert set(clients.asked) == {
        "cloudformation:DescribeStacks",
        "cloudformation:ListStackResources",
        "cloudwatch:GetMetricData",
    }


@pytest.mark.parametrize(
    ("told", "state", "words"),
    [
        ({"Disruption": "plan"}, "disruption-planned", "keeps them until joiner:disruption is active (deploy with -c"),
        ({"Mode": "plan", "Disruption": "plan"}, "planned", "decides and changes nothing (deploy with -c joiner:mode="),
        ({"DisruptionPaused": "Drifted in batch"}, "paused", "joiner:disruption-paused is Drifted in batch: nodes"),
        ({"DisruptionPaused": "false"}, "active", "it is active"),
    ],
)
def test_one_that_only_plans_or_is_paused_says_so_and_how_that_ends(
    told: dict[str, str], state: str, words: str
) -> None:
    one = seen(account(told=told))
    assert words in page(one)
    document = installation_document(one)
    assert document is not None
    assert document["acting"] == state
    assert bool(list(concerns(one, NOW, PLAIN, None))) is (state != "active")


def test_a_function_that_does_not_succeed_is_late_by_how_often_it_is_called_otherwise() -> None:
    one = seen(account({"Disrupt": timedelta(minutes=40), "Catalog": timedelta(minutes=6)}, failing="Lifecycle"))
    told = {beat.function: (beat.last, beat.is_late) for beat in one.beats}
    assert told["disrupt"] == (NOW - timedelta(minutes=40), True)
    assert told["catalog"] == (NOW - timedelta(minutes=6), False)
    assert told["lifecycle"] == (None, True)
    [late] = concerns(one, NOW, PLAIN, None)
    assert "lifecycle none for 3 hours (late)" in late
    assert "disrupt 40 minutes ago (late)" in late
    assert late.endswith("`joiner doctor --cluster prod` says why")


def test_functions_that_nobody_calls_are_late() -> None:
    one = seen(ByHeart(**{**vars_of(account()), "cloudwatch__GetMetricData": {"MetricDataResults": []}}))
    assert [beat.is_late for beat in one.beats] == [True] * len(FUNCTIONS)


def vars_of(clients: ByHeart) -> dict[str, Any]:
    return {name.replace(":", "__").replace("-", "_"): one for name, one in clients.answers.items()}


@pytest.mark.parametrize(
    ("call", "answer", "words"),
    [
        ("cloudformation:DescribeStacks", DENIED, "joiner-prod: could not be looked at: Forbidden: "),
        (
            "cloudformation:DescribeStacks",
            NOT_THERE,
            "Joiner is not installed: no stack joiner-prod in us-east-1: `npx",
        ),
        ("cloudformation:ListStackResources", DENIED, "its functions could not be looked at: Forbidden: "),
        ("cloudwatch:GetMetricData", DENIED, "its functions could not be looked at: Forbidden: "),
    ],
)
def test_what_cannot_be_seen_is_said_and_nothing_is_concluded(call: str, answer: dict[str, Any], words: str) -> None:
    clients = account()
    clients.answers[call] = answer
    one = seen(clients)
    assert words in page(one)
    assert not one.beats
    assert json.dumps(installation_document(one))


@pytest.mark.parametrize(
    ("region", "host"),
    [("cn-north-1", "console.amazonaws.cn"), ("us-gov-west-1", "console.amazonaws-us-gov.com")],
)
def test_the_dashboard_is_where_its_partition_is(region: str, host: str) -> None:
    clients = account()
    clients.region = region
    assert seen(clients).dashboard.startswith(f"https://{host}/cloudwatch/home?region={region}#")


@pytest.fixture
def by_heart(monkeypatch: pytest.MonkeyPatch) -> list[ByHeart]:
    opened = [account(told={"Disruption": "plan"})]

    @contextmanager
    def open_it(region: str, *, embedded: bool) -> Iterator[tuple[ByHeart, datetime]]:
        assert (region, embedded) == ("eu-west-1", False)
        yield opened[0], NOW

    monkeypatch.setattr(cli.clouds, "opened", open_it)
    return opened


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}
    objects = [{**POOL, "status": {"conditions": [ready]}}, *machine("n1", 4), claim("c1", "n1", 4)]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(json.dumps({"region": "nowhere", "instanceTypes": [kind(4)]}))
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


NAMED: Final = ("--cluster", "prod", "--region", "eu-west-1")


@pytest.mark.usefixtures("by_heart")
def test_status_and_top_say_the_same_of_it(fleet: list[str], capsys: Out) -> None:
    assert main(["status", *fleet, *NAMED]) == 0
    page = capsys.readouterr().out
    assert main(["top", *fleet, *NAMED, "--wide"]) == 0
    table = capsys.readouterr().out
    words = "joiner-prod: it launches; it tells which nodes might go and keeps them until joiner:disruption is active"
    assert words in page
    assert words in table
    assert "dashboard: " in page


@pytest.mark.usefixtures("by_heart")
def test_a_node_that_might_go_is_kept_by_the_plan(fleet: list[str], capsys: Out) -> None:
    kept = []
    for more in (NAMED, (*NAMED, "--no-account")):
        assert main(["top", *fleet, *more, "-o", "json"]) == 0
        [node] = json.loads(capsys.readouterr().out)["nodes"]
        kept.append(node["keptBy"] and node["keptBy"]["reason"])
    assert kept == ["Planned", None]


@pytest.mark.parametrize(
    ("setting", "reason"), [("Empty", "Paused"), ("Empty in another", None), ("Emptyy", None), ("Drifted", None)]
)
def test_a_node_that_the_setting_keeps_says_so(
    fleet: list[str], by_heart: list[ByHeart], setting: str, reason: str | None, capsys: Out
) -> None:
    by_heart[0] = account(told={"DisruptionPaused": setting})
    assert main(["top", *fleet, *NAMED, "-o", "json"]) == 0
    [node] = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["keptBy"] and node["keptBy"]["reason"]) == reason
    assert reason is None or "joiner:disruption-paused says so" in node["keptBy"]["message"]


def test_a_program_reads_it_or_null(fleet: list[str], by_heart: list[ByHeart], capsys: Out) -> None:
    assert main(["status", *fleet, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["installation"] is None
    assert not by_heart[0].asked
    assert main(["status", *fleet, *NAMED, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["installation"]
    assert (found["stack"], found["status"], found["acting"]) == (
        "joiner-prod",
        "UPDATE_COMPLETE",
        "disruption-planned",
    )
    assert [one["name"] for one in found["functions"]] == ["provision", "lifecycle", "disrupt", "catalog"]


def test_without_a_region_the_fleet_is_shown_all_the_same(
    fleet: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("which region is not known: write --region, or set $AWS_REGION")

    monkeypatch.setattr(cli.clouds, "opened", refuse)
    assert main(["status", *fleet, "--cluster", "prod"]) == 0
    told = capsys.readouterr().out
    assert "joiner-prod: could not be looked at: which region is not known: write --region" in told
    assert "default" in told


def test_who_looks_again_and_again_asks_the_account_once_a_minute(fleet: list[str], by_heart: list[ByHeart]) -> None:
    beside = Beside(parser_for("status").parse_args(["status", *fleet, *NAMED]))
    first = beside((), NOW)
    assert beside((), NOW + timedelta(seconds=59)) is first
    assert by_heart[0].asked["cloudformation:DescribeStacks"] == 1
    assert beside((), NOW + timedelta(seconds=61)) == first
    assert by_heart[0].asked["cloudformation:DescribeStacks"] == 2


def test_the_cluster_is_the_one_that_the_kubeconfig_names(by_heart: list[ByHeart]) -> None:
    beside = Beside(parser_for("status").parse_args(["status"]))
    found = beside(("arn:aws:eks:eu-west-1:123456789012:cluster/prod", "https://nowhere"), NOW)
    assert found is not None
    assert (found.stack, found.cluster) == ("joiner-prod", "prod")
    assert Beside(parser_for("status").parse_args(["status"]))(("kind-kind", "https://nowhere"), NOW) is None
    assert by_heart[0].asked


def test_doctor_and_status_have_one_sentence_for_it() -> None:
    plain = Settings(cluster_name="prod", region="us-east-1", disruption="plan")
    assert acting(plain).what in page(seen(account(told={"Disruption": "plan"})))
