"""When a person should look. Each alarm says in its description what to do."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions
from infra.knobs import Knobs
from infra.metrics import ours

PERIOD: Final = cdk.Duration.minutes(5)
SILENCE: Final = ("provision", "lifecycle", "disrupt")
"""Each of them succeeds every minute, or the cluster is not looked after."""


class Alarms(Construct):
    """Dead letters, silence, errors and throttles of functions, and what functions themselves say."""

    def __init__(
        self, scope: Construct, construct_id: str, *, knobs: Knobs, functions: Functions, dead: sqs.IQueue
    ) -> None:
        """Make them; where *knobs* name no topic they are only seen in the console."""
        super().__init__(scope, construct_id)
        self.all: list[cloudwatch.Alarm] = []
        self._cluster = knobs.cluster
        self._of_functions(functions)
        waiting = dead.metric_approximate_number_of_messages_visible(period=PERIOD)
        self._alarm("DeadLetters", waiting, "Messages failed for good: read them, then the log of their function.")
        self._said("LaunchBreakerTrips", "More was to be launched than the breaker lets: see the NodePools' events.")
        self._said("LaunchFailures", "EC2 refuses launches: `joiner explain nodepool NAME` has its words.", periods=3)
        self._said("LeaksEnded", "Instances without a NodeClaim were ended: somebody removes claims or finalizers.")
        self._said("DisruptionPauses", "Disruption is paused: the NodePools' events say why, and how to go on.")
        if knobs.price_age_alarm_hours:
            limit = cdk.Duration.hours(knobs.price_age_alarm_hours).to_seconds()
            words = "Decisions are made with old prices: see the log of `catalog`."
            self._said("PriceAgeSeconds", words, periods=3, threshold=limit)
        if knobs.alarm_topic:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", knobs.alarm_topic))
            for alarm in self.all:
                alarm.add_alarm_action(action)

    def _of_functions(self, functions: Functions) -> None:
        every = {spec.name: functions[spec.name] for spec in functions.specs}
        for name in SILENCE:
            using = {
                "calls": every[name].metric_invocations(period=PERIOD),
                "errors": every[name].metric_errors(period=PERIOD),
            }
            succeeded = cloudwatch.MathExpression(
                expression="FILL(calls, 0) - FILL(errors, 0)", using_metrics=using, period=PERIOD
            )
            self._alarm(
                f"{name.capitalize()}Silent",
                succeeded,
                f"`{name}` did not succeed once in five minutes: see its log, and whether its schedule is enabled.",
                comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                missing=cloudwatch.TreatMissingData.BREACHING,
            )
        for what, words in (
            ("errors", "Functions fail again and again: their logs say at what."),
            ("throttles", "Lambda throttles: raise the account's concurrency, or the function's."),
        ):
            metrics = {name: getattr(one, f"metric_{what}")(period=PERIOD) for name, one in every.items()}
            total = cloudwatch.MathExpression(expression="SUM(METRICS())", using_metrics=metrics, period=PERIOD)
            self._alarm(what.capitalize(), total, words, periods=3)

    def _said(self, name: str, words: str, *, periods: int = 1, threshold: float = 1) -> None:
        metric = ours(name, self._cluster, PERIOD)
        self._alarm(name, metric, words, periods=periods, threshold=threshold)

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        words: str,
        *,
        periods: int = 1,
        threshold: float = 1,
        comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_description=f"Joiner, {self._cluster}: {words}",
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=comparison,
            treat_missing_data=missing,
        )
        self.all.append(alarm)
