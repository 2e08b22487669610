"""CloudWatch alarms. The description of each alarm says how to respond; each metric it reads costs $0.10/month.

The alarms detect missing successes, not errors: a failed run is repeated, but if a function has not succeeded for five
minutes (because of its code, its permissions, Lambda throttling or a disabled schedule), its work is not done.
Conditions that functions detect themselves are published as custom metrics when they occur.
"""

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions.functions import Functions
from infra.monitoring.metrics import build_metric
from infra.settings.settings import StackOptions

MONEY_ALARM_PERCENT: Final = 80
ALARM_PERIOD: Final = cdk.Duration.minutes(5)
MONITORED_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt")
"""Each of these functions succeeds every minute, otherwise the cluster is not managed."""


class Alarms(Construct):
    """Alarms for dead letters, functions without successes, and conditions that functions report."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: StackOptions,
        functions: Functions,
        dead_letter_queue: sqs.IQueue,
        more_alarms: Iterable[cloudwatch.Alarm] = (),
    ) -> None:
        """Create the alarms; without a topic in *options*, they only show in the console.

        *more_alarms* notify the same topic.
        """
        super().__init__(scope, construct_id)
        self.alarms: list[cloudwatch.Alarm] = [*more_alarms]
        self._cluster = options.cluster
        for name in MONITORED_FUNCTIONS:
            self._add_silence_alarm(name, functions)
        dead_letter_count = dead_letter_queue.metric_approximate_number_of_messages_visible(period=ALARM_PERIOD)
        self._add_alarm(
            "DeadLetters",
            dead_letter_count,
            (
                "Messages failed five times and are in the dead-letter queue. See the messages and the log "
                "of their function."
            ),
        )
        self._add_reported_alarm(
            "LaunchBreakerTrips", "The launch circuit breaker delays launches. See the events of the NodePools."
        )
        self._add_reported_alarm(
            "LaunchFailures", "EC2 rejects launches. Run `joiner explain nodepool NAME` for the errors.", periods=3
        )
        self._add_reported_alarm(
            "OrphanedInstancesTerminated",
            "Instances without a NodeClaim were terminated. Check who removes NodeClaims or finalizers.",
        )
        self._add_reported_alarm(
            "AutomaticDisruptionPauses",
            ("Disruption was paused automatically. See the events of the NodePools for the reason and how to resume."),
        )
        self._add_reported_alarm("CycleFailures", "Cycles fail repeatedly. See the logs of the functions.", periods=3)
        self._add_reported_alarm(
            "ThrottledCalls",
            ("AWS throttles the calls of Joiner. Check which clients call the EC2 API in this account."),
            periods=3,
        )
        if options.price_age_alarm_hours:
            price_age_limit = cdk.Duration.hours(options.price_age_alarm_hours).to_seconds()
            description = "Decisions use old prices. See the log of `catalog`."
            self._add_reported_alarm("PriceAgeSeconds", description, periods=3, threshold=price_age_limit)
        if options.canary_alarm:
            description = "A new image or launch configuration was rejected. See the events of the EC2NodeClasses."
            self._add_reported_alarm("RejectedCanaries", description)
        if options.limit_usd_per_hour or options.monthly_budget_usd or options.group:
            self._add_reported_alarm(
                "MoneyUsedPercent",
                "80 % of a limit in USD per hour, or of the monthly budget, is used. Run `joiner status`.",
                threshold=MONEY_ALARM_PERCENT,
            )
        if options.alarm_topic:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", options.alarm_topic))
            for alarm in self.alarms:
                alarm.add_alarm_action(action)
                alarm.add_ok_action(action)

    def _add_silence_alarm(self, name: str, functions: Functions) -> None:
        function = functions[name]
        succeeded = cloudwatch.MathExpression(
            expression="FILL(calls, 0) - FILL(errors, 0)",
            using_metrics={
                "calls": function.metric_invocations(period=ALARM_PERIOD),
                "errors": function.metric_errors(period=ALARM_PERIOD),
            },
            period=ALARM_PERIOD,
        )
        self._add_alarm(
            f"{name.capitalize()}NotSucceeding",
            succeeded,
            f"`{name}` has not succeeded for five minutes. Check its log, its schedule and its throttling by Lambda.",
            comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            # Before the first run there is no data, and the state stays INSUFFICIENT_DATA; later, a period without
            # data is 0.
            missing_data=cloudwatch.TreatMissingData.IGNORE,
        )

    def _add_reported_alarm(self, name: str, description: str, *, periods: int = 1, threshold: float = 1) -> None:
        metric = build_metric(name, self._cluster, ALARM_PERIOD)
        self._add_alarm(name, metric, description, periods=periods, threshold=threshold)

    def _add_alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        periods: int = 1,
        threshold: float = 1,
        comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        missing_data: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_description=f"Joiner, {self._cluster}: {description}",
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=comparison,
            treat_missing_data=missing_data,
        )
        self.alarms.append(alarm)
