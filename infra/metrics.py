"""The metrics that functions write into their logs, as alarms and the dashboard read them."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

NAMESPACE: Final = "Joiner"


def ours(name: str, cluster: str, period: cdk.Duration) -> cloudwatch.Metric:
    """Answer the metric called *name* of *cluster*; a count of one cycle, so that its maximum is the worst of them."""
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"cluster": cluster, "service": "joiner"},
        statistic="Maximum",
        period=period,
    )
