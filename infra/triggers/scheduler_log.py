"""Subscription to the log of kube-scheduler: log lines about unschedulable pods invoke the function `watch`.

EKS writes this log to CloudWatch if the control plane log type ``scheduler`` is enabled. There is no polling.
"""

from typing import Final

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_logs_destinations as destinations
from constructs import Construct

UNSCHEDULABLE_POD_MESSAGE: Final = "Unable to schedule pod"
"""The message of kube-scheduler at the verbosity of EKS, followed by the name of the pod."""


class SchedulerLog(Construct):
    """A subscription to the cluster's log group for messages about unschedulable pods."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, function: lambda_.IFunction) -> None:
        """Subscribe *function* to the log group."""
        super().__init__(scope, construct_id)
        logs.SubscriptionFilter(
            self,
            "UnschedulablePods",
            log_group=logs.LogGroup.from_log_group_name(self, "Group", f"/aws/eks/{cluster}/cluster"),
            filter_pattern=logs.FilterPattern.literal(f'"{UNSCHEDULABLE_POD_MESSAGE}"'),
            destination=destinations.LambdaDestination(function),
        )
