"""When a person should look: dead letters wait, a function fails again and again, decisions are made on old prices."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions
from infra.knobs import Knobs


class Alarms(Construct):
    """One alarm for the dead letters, one per function, one for the prices."""

    def __init__(
        self, scope: Construct, construct_id: str, *, knobs: Knobs, functions: Functions, dead: sqs.IQueue
    ) -> None:
        """Make them; where *knobs* name no topic they are only seen in the console."""
        super().__init__(scope, construct_id)
        period = cdk.Duration.minutes(5)
        waiting = dead.metric_approximate_number_of_messages_visible(period=period)
        alarms = [self._alarm("DeadLetters", waiting, periods=1)]
        for spec in functions.specs:
            errors = functions[spec.name].metric_errors(period=period)
            alarms.append(self._alarm(f"{spec.name.capitalize()}Errors", errors, periods=3))
        if knobs.price_age_alarm_hours:
            limit = cdk.Duration.hours(knobs.price_age_alarm_hours).to_seconds()
            age = _price_age(knobs.cluster, period)
            alarms.append(self._alarm("OldPrices", age, periods=3, threshold=limit))
        if knobs.alarm_topic:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", knobs.alarm_topic))
            for alarm in alarms:
                alarm.add_alarm_action(action)

    def _alarm(self, name: str, metric: cloudwatch.Metric, *, periods: int, threshold: float = 1) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _price_age(cluster: str, period: cdk.Duration) -> cloudwatch.Metric:
    """Answer the metric that `catalog` writes into its log, every time it runs."""
    return cloudwatch.Metric(
        namespace="Joiner",
        metric_name="PriceAgeSeconds",
        dimensions_map={"cluster": cluster, "function": "catalog", "service": "joiner"},
        statistic="Maximum",
        period=period,
    )
