"""The setting event-bus: permission and endpoint exist only with the setting, for one bus and one source."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.network.endpoints import EVENT_SERVICE, GATEWAY_SERVICES, INTERFACE_SERVICES
from infra.settings.load import load_options
from sim.authorization.template_policies import parse_function_policies
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, evaluate_policies
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.infra.stack.test_network import (
    ISOLATED_SETTINGS,
    get_endpoints,
    list_called_services,
    synthesize_with_settings,
)

ACTION = "events:PutEvents"
FUNCTIONS = {"catalog", "disrupt", "interrupt", "lifecycle", "provision"}
BUS_ARN = f"arn:aws:events:us-east-1:{ACCOUNT_ID}:event-bus/alerts"
OTHER_ARN = "arn:aws:events:us-east-1:999999999999:event-bus/central"


@cache
def synthesize(bus: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"event-bus": bus})


def list_allowed(bus: str, resource: str, source: str = "joiner") -> set[str]:
    """Return the functions that may put events of *source* on *resource*."""
    request = IamRequest(
        action=ACTION,
        resource=resource,
        context=build_context(
            {"events:source": source, "aws:RequestedRegion": "us-east-1", "aws:SecureTransport": "true"}
        ),
    )
    return {
        function
        for function, policy in parse_function_policies(synthesize(bus)).items()
        if evaluate_policies((policy,), request) is AccessDecision.ALLOWED
    }


def test_reporting_functions_put_events_of_joiner_on_the_named_bus_only() -> None:
    assert list_allowed("alerts", BUS_ARN) == FUNCTIONS
    assert list_allowed("alerts", BUS_ARN, source="aws.ec2") == set()
    assert list_allowed("alerts", f"{BUS_ARN}-of-others") == set()
    assert list_allowed(OTHER_ARN, OTHER_ARN) == FUNCTIONS
    assert list_allowed("", BUS_ARN) == set()


def test_template_without_the_setting_does_not_mention_it() -> None:
    assert ACTION not in str(synthesize(""))


def test_event_bus_adds_an_endpoint(tmp_path: Path) -> None:
    template = synthesize_with_settings(tmp_path, {**ISOLATED_SETTINGS, "event-bus": "alerts"})
    assert list_called_services(template) == {*INTERFACE_SERVICES, *GATEWAY_SERVICES, EVENT_SERVICE}
    assert get_endpoints(template, "Interface").keys() == {*INTERFACE_SERVICES, EVENT_SERVICE}


@pytest.mark.parametrize(
    ("bus", "message"),
    [
        ("two words", "event-bus is 'two words': must be the name or ARN of an event bus"),
        (BUS_ARN.replace("us-east-1", "eu-west-1"), "event-bus is in eu-west-1, but region is us-east-1: use a bus in"),
        ("arn:aws:sns:us-east-1:111122223333:costs", "must be the name or ARN of an event bus"),
    ],
)
def test_invalid_bus_is_refused(bus: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_options({"cluster": "demo", "region": "us-east-1", "event-bus": bus})
