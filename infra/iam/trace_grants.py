"""Permissions for traces in AWS X-Ray."""

from typing import Final

from infra.iam.policy_statement import Grant

TRACE_ACTIONS: Final = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
_NO_RESOURCES_REASON: Final = "the actions do not support resource-level permissions"


def build_trace_grants() -> list[Grant]:
    """Return the permissions with which Lambda's X-Ray daemon sends the traces of a function.

    AWS Lambda Developer Guide, "Visualize Lambda function invocations using AWS X-Ray", names both actions.
    """
    return [Grant(sid="SendTraces", actions=TRACE_ACTIONS, resources=("*",), wildcard_reason=_NO_RESOURCES_REASON)]
