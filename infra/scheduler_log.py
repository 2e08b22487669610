"""kube-scheduler's word that a pod found no node, as EKS writes it to CloudWatch, pushed to the function that looks.

The log type ``scheduler`` of the control plane must be on. Nothing polls.
"""

from typing import Final

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_logs_destinations as destinations
from constructs import Construct

GAVE_UP: Final = "Unable to schedule pod"
"""What kube-scheduler says at the verbosity of EKS, with the pod's name behind it."""


class SchedulerLog(Construct):
    """A subscription to the cluster's log group, for what the scheduler says of pods that it gives up on."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, function: lambda_.IFunction) -> None:
        """Subscribe *function*."""
        super().__init__(scope, construct_id)
        logs.SubscriptionFilter(
            self,
            "GaveUp",
            log_group=logs.LogGroup.from_log_group_name(self, "Group", f"/aws/eks/{cluster}/cluster"),
            filter_pattern=logs.FilterPattern.literal(f'"{GAVE_UP}"'),
            destination=destinations.LambdaDestination(function),
        )
