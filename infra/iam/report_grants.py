"""Permissions to publish the daily cost report and events."""

from typing import Final

import aws_cdk as cdk

from infra.iam.policy_statement import Grant

REPORTING_FUNCTIONS: Final = frozenset({"disrupt", "interrupt", "lifecycle", "provision"})
"""The functions whose journal entries have events."""
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


def format_bus_arn(bus: str) -> str:
    """Return the ARN of *bus*; a name is that of a bus in the account and region of the stack."""
    if bus.startswith("arn:"):
        return bus
    return f"arn:{cdk.Aws.PARTITION}:events:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:event-bus/{bus}"
