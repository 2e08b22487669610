"""The metrics that functions write to their logs, as alarms and the dashboard read them."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

METRIC_NAMESPACE: Final = "Joiner"


def build_metric(name: str, cluster: str, period: cdk.Duration) -> cloudwatch.Metric:
    """Return the metric *name* of *cluster*.

    Each value is a count of one run, so the maximum is that of the worst run.
    """
    return cloudwatch.Metric(
        namespace=METRIC_NAMESPACE,
        metric_name=name,
        dimensions_map={"cluster": cluster, "service": "joiner"},
        statistic="Maximum",
        period=period,
    )
