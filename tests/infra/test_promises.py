"""What the stack promises as a whole: to whoever synthesises it, signs it, looks at it, pays for it and removes it."""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from infra.application import application
from infra.events import ANNOUNCEMENTS
from sim.costs.bill import bill, total
from sim.costs.usage import Usage
from sim.lambdas.wiring import Wiring
from tests.infra.policies import Template, resources

FIXED_USD: Final = 6.50
"""Of ten dollars a month: what is paid though nothing happens."""


class Synthesis:
    """One synthesis, without credentials, and all that it left in its folder."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        self.folder = folder
        self.assembly = application(bundle=False, outdir=str(folder), context={}).synth()
        self.template: Template = self.assembly.stacks[0].template

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synthesis]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "CDK_DEFAULT_"))]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield Synthesis(tmp_path_factory.mktemp("promises"))


def test_synthesis_looks_nothing_up_and_fits_every_account_and_region(made: Synthesis) -> None:
    [stack] = made.assembly.stacks
    assert (stack.environment.account, stack.environment.region) == ("unknown-account", "unknown-region")
    assert made.read("manifest.json").get("missing") is None
    assert "dummy-value-for-" not in json.dumps(made.template)


def test_cdk_nag_finds_nothing_that_is_not_excused_with_a_reason_and_no_excuse_is_left_over(made: Synthesis) -> None:
    reports = {one["pluginName"]: one for one in made.read("validation-report.json")["pluginReports"]}
    assert reports.keys() >= {"AwsSolutions", "Serverless"}
    assert {(one["conclusion"], len(one["violations"])) for one in reports.values()} == {("success", 0)}
    excused = [one for report in reports.values() for one in report["suppressedViolations"]]
    assert not [one["acknowledgedId"] for one in excused if len(one["reason"].split()) < 3]
    assert set(acknowledged(made.read(f"{made.assembly.stacks[0].stack_name}.metadata.json"))) == {
        one["acknowledgedId"] for one in excused
    }


def acknowledged(document: object) -> Iterator[str]:
    """Answer the rules that constructs are excused from, of their metadata."""
    if isinstance(document, list):
        for one in document:
            yield from acknowledged(one)
    elif isinstance(document, dict):
        if document.get("type") == "aws:cdk:acknowledged-rules":
            yield from document["data"]
        for one in document.values():
            yield from acknowledged(one)


def test_all_functions_are_one_asset_and_one_layer(made: Synthesis) -> None:
    functions = resources(made.template, "AWS::Lambda::Function").values()
    assert len({json.dumps(one["Code"], sort_keys=True) for one in functions}) == 1
    assert len({json.dumps(one["Layers"], sort_keys=True) for one in functions}) == 1


def test_nothing_stays_behind_but_the_bucket_with_the_journal(made: Synthesis) -> None:
    staying = {key for key, one in made.template["Resources"].items() if one.get("DeletionPolicy") == "Retain"}
    assert staying == set(resources(made.template, "AWS::S3::Bucket"))
    stateful = ("AWS::DynamoDB::Table", "AWS::Logs::LogGroup", "AWS::SQS::Queue")
    going = {one.get("DeletionPolicy") for one in made.template["Resources"].values() if one["Type"] in stateful}
    assert going == {"Delete"}


def test_only_announcements_that_ask_for_something_wake_a_function(made: Synthesis) -> None:
    rules = resources(made.template, "AWS::Events::Rule").values()
    assert {one["State"] for one in rules} == {"ENABLED"}
    details = {one["EventPattern"]["detail-type"][0]: one["EventPattern"].get("detail") for one in rules}
    assert {title for title, detail in details.items() if detail is not None} == {
        "AWS Health Event",
        "EC2 Instance State-change Notification",
    }
    assert len(details) == len(ANNOUNCEMENTS)
    assert details["AWS Health Event"] == {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]}
    states = details["EC2 Instance State-change Notification"]
    assert states is not None
    assert set(states["state"]) == {"shutting-down", "stopped", "stopping", "terminated"}


SHOWN: Final = {
    "pending": "counts.PendingPods",
    "nodes by pool": 'fleet = "pool"',
    "nodes by type": 'fleet = "instanceType"',
    "$/h": "usdPerHour",
    "decisions": "counts.ProposedCommands",
    "errors": 'level = "ERROR"',
    "age of snapshot": "max(seconds)",
    "budget use": "latest(allowed)",
    "pauses that people mean": "counts.IntendedPauses",
}
"""What the dashboard shows, and what it asks the logs for that."""


@pytest.mark.parametrize("asked", SHOWN.values(), ids=SHOWN.keys())
def test_the_dashboard_shows(asked: str, made: Synthesis) -> None:
    queries = [one["properties"]["query"] for one in widgets(made) if one["type"] == "log"]
    assert [one for one in queries if asked in one]


def test_the_dashboard_shows_latency_at_the_middle_and_at_the_95th_percentile_of_every_function(
    made: Synthesis,
) -> None:
    shown = json.dumps([one["properties"].get("metrics") for one in widgets(made) if one["type"] == "metric"])
    for function in Wiring.parse(made.template).functions:
        if function.name != "installer":
            assert [part for part in ("p50", "p95") if f'"{function.name} {part}"' not in shown] == []


def widgets(made: Synthesis) -> list[dict[str, Any]]:
    [page] = resources(made.template, "AWS::CloudWatch::Dashboard").values()
    found: list[dict[str, Any]] = json.loads(page["DashboardBody"])["widgets"]
    return found


RINGING: Final = {
    "ProvisionSilent": "nothing succeeded for five minutes",
    "LifecycleSilent": "nothing succeeded for five minutes",
    "DisruptSilent": "nothing succeeded for five minutes",
    "DeadLetters": "the dead letters are not empty",
    "LaunchBreakerTrips": "the breaker tripped",
    "LaunchFailures": "launches fail",
    "LeaksEnded": "a leak was found",
    "Throttles": "AWS throttles",
}


@pytest.mark.parametrize("name", RINGING)
def test_there_is_an_alarm_when(name: str, made: Synthesis) -> None:
    """Each is played in test_ringing."""
    [alarm] = [
        one
        for key, one in resources(made.template, "AWS::CloudWatch::Alarm").items()
        if key.startswith(f"Alarms{name}")
    ]
    assert alarm.get("Period") in (None, 300)
    assert len(alarm["AlarmDescription"].split()) > 5


def test_what_is_paid_though_nothing_happens_leaves_a_third_of_ten_dollars_for_work(made: Synthesis) -> None:
    nothing = Usage(lasted=timedelta(hours=1), functions={}, metrics=0, log_bytes=0, stored_bytes={})
    assert total(bill(made.template, nothing)) <= FIXED_USD
