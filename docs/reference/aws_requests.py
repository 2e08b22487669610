"""The reference page of the requests to AWS, from the recorded requests in `tests/golden/aws-requests.toml`."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from docs.reference.markdown import format_code, render_page, render_table
from tests.golden.aws_requests import StoredRequest, load_requests

SERVICE_TITLES: Final = {
    "dynamodb": "DynamoDB",
    "ec2": "EC2",
    "eks": "EKS",
    "events": "EventBridge",
    "logs": "CloudWatch Logs",
    "pricing": "Price List",
    "s3": "S3",
    "savingsplans": "Savings Plans",
    "arc-zonal-shift": "Amazon Application Recovery Controller (ARC)",
    "sns": "SNS",
    "sqs": "SQS",
    "ssm": "SSM",
    "sts": "STS",
}
INTRODUCTION: Final = """
These are all requests that the deployed functions send to AWS: what they ask, which function asks, and why. A test
records the requests of simulated clusters that use every option of an EC2NodeClass, and fails if a request is not
listed here with its reason. The requests of the command line and of the deployment are not listed.

The column "Selected by" names the filters and parameters that select what a request is about. `tag:<key>` is a tag that
the user chooses. `DryRun` requests create nothing.
"""


def render_request_page() -> dict[str, str]:
    """Render the page, by file name."""
    requests = sorted(load_requests(), key=lambda request: request.kind)
    services = [
        _render_service(service, list(group))
        for service, group in groupby(requests, key=lambda request: request.call.partition(":")[0])
    ]
    return {"aws-requests.md": render_page("Requests to AWS", INTRODUCTION, *services)}


def _render_service(service: str, requests: Iterable[StoredRequest]) -> str:
    request_list = list(requests)
    rows = [
        (
            format_code(request.call.partition(":")[2]),
            _join_code(request.selection),
            ", ".join(request.functions),
            request.reason,
        )
        for request in request_list
    ]
    table = render_table(("Request", "Selected by", "Functions", "Reason"), rows)
    return "\n\n".join([f"## {SERVICE_TITLES[service]}", table.strip(), *_render_parameters(request_list)])


def _render_parameters(requests: Iterable[StoredRequest]) -> Iterable[str]:
    """Yield the parameters of each call, of all its requests together, as a block of code."""
    for call, group in groupby(requests, key=lambda request: request.call):
        parameters = sorted({name for request in group for name in request.parameters})
        if parameters:
            yield "\n".join([f"Parameters of {format_code(call.partition(':')[2])}:\n", "```text", *parameters, "```"])


def _join_code(words: Iterable[str]) -> str:
    return ", ".join(map(format_code, words))
