"""When a person should look. Each alarm says in its description what to do; each metric it reads costs $0.10 a month.

Silence is looked for, not errors: a cycle that fails is repeated, and where a function does not succeed for five
minutes, be it for its code, its rights, Lambda's throttling or a schedule that is off, nobody does its work. What
functions can say themselves they say as metrics of ours, at the moment at which it happens.
"""

from collections.abc import Iterable
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
    """Dead letters, silence, and what functions themselves say."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        knobs: Knobs,
        functions: Functions,
        dead: sqs.IQueue,
        others: Iterable[cloudwatch.Alarm] = (),
    ) -> None:
        """Make them; where *knobs* name no topic they are only seen in the console. *others* tell the same people."""
        super().__init__(scope, construct_id)
        self.all: list[cloudwatch.Alarm] = [*others]
        self._cluster = knobs.cluster
        for name in SILENCE:
            self._silent(name, functions)
        waiting = dead.metric_approximate_number_of_messages_visible(period=PERIOD)
        self._alarm("DeadLetters", waiting, "Messages failed for good: read them, then the log of their function.")
        self._said("LaunchBreakerTrips", "More was to be launched than the breaker lets: see the NodePools' events.")
        self._said("LaunchFailures", "EC2 refuses launches: `joiner explain nodepool NAME` has its words.", periods=3)
        self._said("LeaksEnded", "Instances without a NodeClaim were ended: somebody removes claims or finalizers.")
        self._said("DisruptionPauses", "Disruption paused itself: the NodePools' events say why, and how to go on.")
        self._said("Faults", "Cycles fail again and again: the log of the function says at what.", periods=3)
        self._said("Throttles", "AWS throttles our calls: see who else asks EC2 so much in this account.", periods=3)
        if knobs.price_age_alarm_hours:
            limit = cdk.Duration.hours(knobs.price_age_alarm_hours).to_seconds()
            words = "Decisions are made with old prices: see the log of `catalog`."
            self._said("PriceAgeSeconds", words, periods=3, threshold=limit)
        if knobs.alarm_topic:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", knobs.alarm_topic))
            for alarm in self.all:
                alarm.add_alarm_action(action)
                alarm.add_ok_action(action)

    def _silent(self, name: str, functions: Functions) -> None:
        function = functions[name]
        succeeded = cloudwatch.MathExpression(
            expression="FILL(calls, 0) - FILL(errors, 0)",
            using_metrics={
                "calls": function.metric_invocations(period=PERIOD),
                "errors": function.metric_errors(period=PERIOD),
            },
            period=PERIOD,
        )
        self._alarm(
            f"{name.capitalize()}Silent",
            succeeded,
            f"`{name}` did not succeed once in five minutes: see its log, its schedule, and if Lambda throttles it.",
            comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

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
