"""The setting remote-write-url: permission and endpoint exist only with the setting, for one workspace."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.network.endpoints import GATEWAY_SERVICES, INTERFACE_SERVICES, METRICS_SERVICE
from infra.settings.load import load_options
from sim.authorization.template_policies import parse_function_policies
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, evaluate_policies
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.infra.stack.test_network import ISOLATED_SETTINGS, get_endpoints, synthesize_with_settings

ACTION = "aps:RemoteWrite"
URL = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
PRIVATE_URL = "http://prometheus.internal:9090/api/v1/write"
WORKSPACE_ARN = f"arn:aws:aps:us-east-1:{ACCOUNT_ID}:workspace/ws-0a1b2c3d"


@cache
def synthesize(url: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"remote-write-url": url})


def list_allowed(url: str, resource: str, action: str = ACTION) -> set[str]:
    """Return the functions that may perform *action* on *resource*."""
    request = IamRequest(
        action=action,
        resource=resource,
        context=build_context({"aws:RequestedRegion": resource.split(":")[3], "aws:SecureTransport": "true"}),
    )
    return {
        function
        for function, policy in parse_function_policies(synthesize(url)).items()
        if evaluate_policies((policy,), request) is AccessDecision.ALLOWED
    }


def test_only_disrupt_writes_and_only_to_the_workspace_of_the_url() -> None:
    assert list_allowed(URL, WORKSPACE_ARN) == {"disrupt"}
    assert list_allowed(URL, f"{WORKSPACE_ARN}f") == set()
    assert list_allowed(URL, WORKSPACE_ARN.replace("us-east-1", "eu-west-1")) == set()
    assert list_allowed(URL, WORKSPACE_ARN, "aps:QueryMetrics") == set()
    other_region = WORKSPACE_ARN.replace("us-east-1", "eu-west-1")
    assert list_allowed(URL.replace("us-east-1", "eu-west-1"), other_region) == {"disrupt"}
    for form in ("https://aps-workspaces-fips.us-east-1.amazonaws.com", "https://aps-workspaces.us-east-1.api.aws"):
        url = URL.replace("https://aps-workspaces.us-east-1.amazonaws.com", form)
        assert list_allowed(url, WORKSPACE_ARN) == {"disrupt"}


@pytest.mark.parametrize("url", ["", PRIVATE_URL])
def test_template_without_a_workspace_has_no_permission(url: str) -> None:
    assert "aps:" not in str(synthesize(url))


def test_isolated_functions_reach_the_workspace_through_an_endpoint(tmp_path: Path) -> None:
    template = synthesize_with_settings(tmp_path, {**ISOLATED_SETTINGS, "remote-write-url": URL})
    endpoints = get_endpoints(template, "Interface")
    assert endpoints.keys() == {*INTERFACE_SERVICES, METRICS_SERVICE}
    assert METRICS_SERVICE not in GATEWAY_SERVICES
    [statement] = endpoints[METRICS_SERVICE]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "aps:*"


def load(**settings: str) -> None:
    load_options(
        {"cluster": "demo", "region": "us-east-1"} | {key.replace("_", "-"): settings[key] for key in settings}
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("prometheus.internal", "remote-write-url is 'prometheus.internal': must be a URL like https://aps-workspaces"),
        ("https://user:password@prometheus/api/v1/write", "must be a URL like"),
        ("https://prometheus/api/v1/write?tenant=a", "must be a URL like"),
        (URL.replace("remote_write", "query"), "the URL of a workspace is https://aps-workspaces.REGION.amazonaws.com"),
        (URL.replace("https:", "http:"), "the URL of a workspace is https://aps-workspaces.REGION.amazonaws.com"),
    ],
)
def test_invalid_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(remote_write_url=url)


def test_selection_of_metrics_without_a_url_is_refused() -> None:
    with pytest.raises(ValueError, match="remote-write-metrics is nodes, but remote-write-url is not set: set remote-"):
        load(remote_write_metrics="nodes")
    load(remote_write_metrics="nodes", remote_write_url=PRIVATE_URL)


def test_isolated_functions_cannot_use_a_workspace_in_another_region(tmp_path: Path) -> None:
    url = URL.replace("us-east-1", "eu-west-1")
    with pytest.raises(ValueError, match="remote-write-url is in eu-west-1, but region is us-east-1, and network is"):
        load_options({"cluster": "demo", "region": "us-east-1", "remote-write-url": url, **ISOLATED_SETTINGS})
    load(remote_write_url=url)
    del tmp_path
