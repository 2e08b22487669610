"""Promises of the whole stack: about synthesis, security reviews, the dashboard, costs, and removal."""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from infra.settings.settings import StackOptions
from infra.stack.application import build_application
from infra.triggers.interruption_events import EVENT_TYPE_BY_RULE
from sim.authorization.template_policies import Template, get_resources
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.operating_costs.bill import build_bill, sum_usd
from sim.operating_costs.usage import StackUsage

FIXED_USD: Final = 6.60
"""Of ten dollars a month: the cost of an idle stack."""


class Synthesis:
    """One synthesis, without credentials, and all files of its folder."""

    def __init__(self, folder: Path) -> None:
        """Synthesize the stack into *folder*."""
        self.folder = folder
        self.assembly = build_application(
            bundle=False, outdir=str(folder), clusters=[StackOptions(cluster="demo")]
        ).synth()
        self.template: Template = self.assembly.stacks[0].template

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synthesis]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "CDK_DEFAULT_"))]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield Synthesis(tmp_path_factory.mktemp("promises"))


def test_synthesis_needs_no_lookups_and_is_account_and_region_agnostic(synthesis: Synthesis) -> None:
    [stack] = synthesis.assembly.stacks
    assert (stack.environment.account, stack.environment.region) == ("unknown-account", "unknown-region")
    assert synthesis.read("manifest.json").get("missing") is None
    assert "dummy-value-for-" not in json.dumps(synthesis.template)


def test_cdk_nag_reports_no_violations_and_every_suppression_is_justified_and_used(
    synthesis: Synthesis,
) -> None:
    reports = {report["pluginName"]: report for report in synthesis.read("validation-report.json")["pluginReports"]}
    assert reports.keys() >= {"AwsSolutions", "Serverless"}
    assert {(report["conclusion"], len(report["violations"])) for report in reports.values()} == {("success", 0)}
    excused = [violation for report in reports.values() for violation in report["suppressedViolations"]]
    assert not [violation["acknowledgedId"] for violation in excused if len(violation["reason"].split()) < 3]
    assert set(list_acknowledged_rules(synthesis.read(f"{synthesis.assembly.stacks[0].stack_name}.metadata.json"))) == {
        violation["acknowledgedId"] for violation in excused
    }


def list_acknowledged_rules(document: object) -> Iterator[str]:
    """Yield the rules from which constructs are excused, according to their metadata."""
    if isinstance(document, list):
        for item in document:
            yield from list_acknowledged_rules(item)
    elif isinstance(document, dict):
        if document.get("type") == "aws:cdk:acknowledged-rules":
            yield from document["data"]
        for item in document.values():
            yield from list_acknowledged_rules(item)


def test_all_functions_share_one_asset_and_one_layer(synthesis: Synthesis) -> None:
    functions = get_resources(synthesis.template, "AWS::Lambda::Function").values()
    assert len({json.dumps(properties["Code"], sort_keys=True) for properties in functions}) == 1
    assert len({json.dumps(properties["Layers"], sort_keys=True) for properties in functions}) == 1


def test_only_the_journal_bucket_is_retained_on_deletion(synthesis: Synthesis) -> None:
    staying = {
        key
        for key, resource in synthesis.template["Resources"].items()
        if resource.get("DeletionPolicy") == "RetainExceptOnCreate"
    }
    assert staying == set(get_resources(synthesis.template, "AWS::S3::Bucket"))
    stateful = ("AWS::DynamoDB::Table", "AWS::Logs::LogGroup", "AWS::SQS::Queue")
    going = {
        resource.get("DeletionPolicy")
        for resource in synthesis.template["Resources"].values()
        if resource["Type"] in stateful
    }
    assert going == {"Delete"}


def test_only_actionable_ec2_events_trigger_a_function(synthesis: Synthesis) -> None:
    rules = get_resources(synthesis.template, "AWS::Events::Rule").values()
    assert {rule["State"] for rule in rules} == {"ENABLED"}
    details = {rule["EventPattern"]["detail-type"][0]: rule["EventPattern"].get("detail") for rule in rules}
    assert {title for title, detail in details.items() if detail is not None} == {
        "AWS Health Event",
        "EC2 Instance State-change Notification",
    }
    assert len(details) == len(EVENT_TYPE_BY_RULE)
    assert details["AWS Health Event"] == {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]}
    states = details["EC2 Instance State-change Notification"]
    assert states is not None
    assert set(states["state"]) == {"shutting-down", "stopped", "stopping", "terminated"}


DASHBOARD_QUERY_PARTS: Final = {
    "pending": "counts.PendingPods",
    "nodes by pool": 'fleet = "nodePool"',
    "nodes by type": 'fleet = "instanceType"',
    "$/h": "usdPerHour",
    "decisions": "counts.ProposedCommands",
    "errors": 'level = "ERROR"',
    "age of snapshot": "max(seconds)",
    "budget use": "latest(allowed)",
    "manual pauses": "counts.OperatorDisruptionPauses",
}
"""Items of the dashboard, and the part of a log query that provides each."""


@pytest.mark.parametrize("query_part", DASHBOARD_QUERY_PARTS.values(), ids=DASHBOARD_QUERY_PARTS.keys())
def test_dashboard_has_a_query_for_the_expected_topic(query_part: str, synthesis: Synthesis) -> None:
    queries = [widget["properties"]["query"] for widget in list_widgets(synthesis) if widget["type"] == "log"]
    assert [query for query in queries if query_part in query]


def test_dashboard_shows_p50_and_p95_latency_of_every_function(
    synthesis: Synthesis,
) -> None:
    metrics_text = json.dumps(
        [widget["properties"].get("metrics") for widget in list_widgets(synthesis) if widget["type"] == "metric"]
    )
    for function in StackWiring.parse(synthesis.template).functions:
        if function.name != "installer":
            assert [part for part in ("p50", "p95") if f'"{function.name} {part}"' not in metrics_text] == []


def list_widgets(synthesis: Synthesis) -> list[dict[str, Any]]:
    [page] = get_resources(synthesis.template, "AWS::CloudWatch::Dashboard").values()
    dashboard_widgets: list[dict[str, Any]] = json.loads(page["DashboardBody"])["widgets"]
    return dashboard_widgets


ALARM_CAUSES: Final = {
    "ProvisionNotSucceeding": "nothing succeeded for five minutes",
    "LifecycleNotSucceeding": "nothing succeeded for five minutes",
    "DisruptNotSucceeding": "nothing succeeded for five minutes",
    "DeadLetters": "the dead letters are not empty",
    "LaunchBreakerTrips": "the breaker tripped",
    "LaunchFailures": "launches fail",
    "OrphanedInstancesTerminated": "a leak was found",
    "ThrottledCalls": "AWS throttles",
}


@pytest.mark.parametrize("name", ALARM_CAUSES)
def test_every_alarm_cause_has_an_alarm_with_a_description(name: str, synthesis: Synthesis) -> None:
    """Each alarm is played in test_ringing."""
    [alarm] = [
        properties
        for key, properties in get_resources(synthesis.template, "AWS::CloudWatch::Alarm").items()
        if key.startswith(f"Alarms{name}")
    ]
    assert alarm.get("Period") in (None, 300)
    assert len(alarm["AlarmDescription"].split()) > 5


def test_idle_stack_cost_stays_within_the_fixed_cost_budget(synthesis: Synthesis) -> None:
    idle_usage = StackUsage(duration=timedelta(hours=1), functions={}, metrics=0, log_bytes=0, stored_bytes={})
    assert sum_usd(build_bill(synthesis.template, idle_usage)) <= FIXED_USD
