"""The ticks. A tick that fails is not repeated: the next one sees the same cluster, and a newer one at that."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions, Spec

TICK: Final = {"source": "schedule"}
"""What the function is handed: always the same, so that nothing can depend on it."""


class Schedules(Construct):
    """One rule per function that ticks."""

    def __init__(self, scope: Construct, construct_id: str, *, functions: Functions, dead: sqs.IQueue) -> None:
        """Make them; *dead* gets the ticks that EventBridge could not deliver."""
        super().__init__(scope, construct_id)
        for spec in functions.specs:
            if spec.every_minutes:
                self._tick(spec, functions, dead)

    def _tick(self, spec: Spec, functions: Functions, dead: sqs.IQueue) -> None:
        target = targets.LambdaFunction(
            functions[spec.name],
            event=events.RuleTargetInput.from_object(TICK),
            retry_attempts=0,
            dead_letter_queue=dead,
        )
        schedule = events.Schedule.rate(cdk.Duration.minutes(spec.every_minutes))
        events.Rule(self, spec.name.capitalize(), schedule=schedule, targets=[target])
