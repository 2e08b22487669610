"""The ticks, by EventBridge Scheduler, in one group of the stack's own.

A tick that fails is not repeated: the next one sees the same cluster, and a newer one at that. One that cannot be
delivered is tried again for a minute, then there is the next.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions, Spec

TICK: Final = {"source": "schedule"}
"""What the function is handed: always the same, so that nothing can depend on it."""
DELIVERIES: Final = 2
"""After the first that Lambda's API did not take."""
LATEST: Final = cdk.Duration.minutes(1)


class Schedules(Construct):
    """One schedule per function that ticks."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, functions: Functions, dead: sqs.IQueue
    ) -> None:
        """Make them; *dead* gets the ticks that could not be delivered."""
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self.group = scheduler.ScheduleGroup(self, "Group", removal_policy=cdk.RemovalPolicy.DESTROY)
        self._role = self._caller()
        for spec in functions.specs:
            if spec.every_minutes:
                self._tick(spec, functions, dead)

    def _caller(self) -> iam.Role:
        """Answer the role that calls the functions, for schedules of this group alone; its targets say which."""
        deputy = {
            "aws:SourceAccount": cdk.Aws.ACCOUNT_ID,
            "aws:SourceArn": self.group.schedule_group_arn,
        }
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": deputy})
        says = f"Joiner, {self._cluster}: calls the functions that tick"
        return iam.Role(self, "Role", assumed_by=principal, description=says)

    def _tick(self, spec: Spec, functions: Functions, dead: sqs.IQueue) -> None:
        target = targets.LambdaInvoke(
            functions.alias(spec.name),
            input=scheduler.ScheduleTargetInput.from_object(TICK),
            role=self._role,
            retry_attempts=DELIVERIES,
            max_event_age=LATEST,
            dead_letter_queue=dead,
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
        # It knows the group by its name, and would ring before its role may call.
        schedule.node.add_dependency(self.group, self._role)
