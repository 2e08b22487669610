"""Permissions to publish the daily cost report, events and metrics."""

from typing import Final

import aws_cdk as cdk

from infra.iam.policy_statement import Grant
from shared.settings_text import WORKSPACE_URL

REPORTING_FUNCTIONS: Final = frozenset({"catalog", "disrupt", "interrupt", "lifecycle", "provision"})
"""The functions whose journal entries have events."""
WRITING_FUNCTION: Final = "disrupt"
"""The function that writes metrics to Prometheus."""
EVENT_SOURCE: Final = "joiner"


def build_report_grants(topic: str) -> list[Grant]:
    """Return the permission to publish to *topic*; none without a topic."""
    return [Grant(sid="PublishCostReports", actions=("sns:Publish",), resources=(topic,))] if topic else []


def build_event_bus_grants(bus: str, function: str) -> list[Grant]:
    """Return the permission of *function* to put events with the source `joiner` on *bus*, a name or an ARN."""
    if not bus or function not in REPORTING_FUNCTIONS:
        return []
    return [
        Grant(
            sid="PutEvents",
            actions=("events:PutEvents",),
            resources=(format_bus_arn(bus),),
            conditions={"ForAllValues:StringEquals": {"events:source": [EVENT_SOURCE]}},
        )
    ]


def build_remote_write_grants(url: str, function: str) -> list[Grant]:
    """Return the permission of *function* to write to the workspace of *url*; none for other receivers than AMP."""
    workspace = WORKSPACE_URL.fullmatch(url)
    if workspace is None or function != WRITING_FUNCTION:
        return []
    name = f"workspace/{workspace['workspace']}"
    arn = f"arn:{cdk.Aws.PARTITION}:aps:{workspace['region']}:{cdk.Aws.ACCOUNT_ID}:{name}"
    return [Grant(sid="WriteMetrics", actions=("aps:RemoteWrite",), resources=(arn,))]


def format_bus_arn(bus: str) -> str:
    """Return the ARN of *bus*; a name is that of a bus in the account and region of the stack."""
    if bus.startswith("arn:"):
        return bus
    return f"arn:{cdk.Aws.PARTITION}:events:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:event-bus/{bus}"
