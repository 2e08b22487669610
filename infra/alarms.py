"""When a person should look: something waits among the dead letters, or a function fails again and again."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import SPECS, Functions


class Alarms(Construct):
    """One alarm for the dead letters, one per function."""

    def __init__(
        self, scope: Construct, construct_id: str, *, functions: Functions, dead: sqs.IQueue, topic_arn: str
    ) -> None:
        """Make them; without *topic_arn* they are only seen in the console."""
        super().__init__(scope, construct_id)
        period = cdk.Duration.minutes(5)
        waiting = dead.metric_approximate_number_of_messages_visible(period=period)
        alarms = [self._alarm("DeadLetters", waiting, periods=1)]
        for spec in SPECS:
            errors = functions[spec.name].metric_errors(period=period)
            alarms.append(self._alarm(f"{spec.name.capitalize()}Errors", errors, periods=3))
        if topic_arn:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic_arn))
            for alarm in alarms:
                alarm.add_alarm_action(action)

    def _alarm(self, name: str, metric: cloudwatch.Metric, *, periods: int) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            threshold=1,
            evaluation_periods=periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
