"""The EventBridge Scheduler schedules of the functions, in a schedule group of the stack.

A scheduled run that fails is not retried: the next one sees the same cluster, in a newer state. An invocation that
cannot be delivered is retried for a minute, until the next one is due.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions.functions import Functions, FunctionSpec

SCHEDULE_INPUT: Final = {"source": "schedule"}
"""The input of the function: always the same, so that no behavior can depend on it."""
MAX_DELIVERY_RETRIES: Final = 2
"""Deliveries after a first one that the Lambda API did not accept."""
MAX_EVENT_AGE: Final = cdk.Duration.minutes(1)


class Schedules(Construct):
    """One schedule per function with an interval."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, functions: Functions, dead_letter_queue: sqs.IQueue
    ) -> None:
        """Create the schedules; *dead_letter_queue* receives the events that could not be delivered."""
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self.group = scheduler.ScheduleGroup(self, "Group", removal_policy=cdk.RemovalPolicy.DESTROY)
        self._role = self._build_invocation_role()
        for spec in functions.specs:
            if spec.every_minutes:
                self._create_schedule(spec, functions, dead_letter_queue)

    def _build_invocation_role(self) -> iam.Role:
        """Build the role that invokes the functions, for schedules of this group only.

        The targets grant the permissions.
        """
        source_conditions = {
            "aws:SourceAccount": cdk.Aws.ACCOUNT_ID,
            "aws:SourceArn": self.group.schedule_group_arn,
        }
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": source_conditions})
        description = f"Joiner, {self._cluster}: invokes the functions on schedule"
        return iam.Role(self, "Role", assumed_by=principal, description=description)

    def _create_schedule(self, spec: FunctionSpec, functions: Functions, dead_letter_queue: sqs.IQueue) -> None:
        target = targets.LambdaInvoke(
            functions.get_alias(spec.name),
            input=scheduler.ScheduleTargetInput.from_object(SCHEDULE_INPUT),
            role=self._role,
            retry_attempts=MAX_DELIVERY_RETRIES,
            max_event_age=MAX_EVENT_AGE,
            dead_letter_queue=dead_letter_queue,
        )
        schedule = scheduler.Schedule(
            self,
            spec.name.capitalize(),
            description=f"Joiner, {self._cluster}: {spec.name} {spec.purpose}",
            schedule=scheduler.ScheduleExpression.rate(cdk.Duration.minutes(spec.every_minutes)),
            schedule_group=self.group,
            time_window=scheduler.TimeWindow.off(),
            target=target,
        )
        # The schedule refers to the group by name only, and could fire before its role has permissions.
        schedule.node.add_dependency(self.group, self._role)
