"""One page to look at: what waits, what there is and costs, what was decided, and whether the functions are well.

Lambda's and SQS's own metrics cost nothing; what is asked of the log costs when somebody looks.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import Alarms
from infra.functions import Functions
from infra.knobs import Knobs
from infra.metrics import ours
from infra.queues import Queues

PERIOD: Final = cdk.Duration.minutes(1)
WIDE: Final = 24
HALF: Final = 12
THIRD: Final = 8
HIGH: Final = 6
DECISIONS: Final = (
    "filter ispresent(function) and ispresent(done.0)",
    "fields @timestamp, function, trigger, done.0, done.1, done.2, failed.0",
    "sort @timestamp desc",
    "limit 50",
)
COMPLAINTS: Final = (
    'filter level = "ERROR" or level = "WARNING"',
    "fields @timestamp, function, error, problems.0, problems.1, failed.0",
    "sort @timestamp desc",
    "limit 50",
)


class Dashboard(Construct):
    """One dashboard, named ``joiner-<cluster>``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        knobs: Knobs,
        functions: Functions,
        queues: Queues,
        alarms: Alarms,
    ) -> None:
        """Lay it out."""
        super().__init__(scope, construct_id)
        self._cluster, self._functions = knobs.cluster, functions
        page = cloudwatch.Dashboard(self, "Page", dashboard_name=f"joiner-{knobs.cluster}")
        page.add_widgets(cloudwatch.AlarmStatusWidget(alarms=alarms.all, width=WIDE, title="Should a person look?"))
        page.add_widgets(
            self._graph("Pods that wait", "PendingPods", "UnschedulablePods"),
            self._graph("Nodes", "ManagedNodes", right="FleetUsdPerHour"),
            self._graph("Disruption", "OpenCommands", "RolledBackCommands", right="SavedUsdPerHour"),
        )
        page.add_widgets(
            self._latency(),
            self._graph("What failed", "FailedActions", "LaunchFailures", "Faults", "Throttles", "LeaksEnded"),
            self._waiting(queues),
        )
        names = [functions[spec.name].log_group.log_group_name for spec in functions.specs]
        for title, lines in (("What was done", DECISIONS), ("What went wrong", COMPLAINTS)):
            page.add_widgets(
                cloudwatch.LogQueryWidget(
                    title=title, log_group_names=names, query_lines=list(lines), width=WIDE, height=HIGH
                )
            )

    def _graph(self, title: str, *names: str, right: str = "") -> cloudwatch.GraphWidget:
        said = [ours(name, self._cluster, PERIOD) for name in names]
        other = [ours(right, self._cluster, PERIOD)] if right else []
        return cloudwatch.GraphWidget(title=title, left=said, right=other, width=THIRD, height=HIGH)

    def _latency(self) -> cloudwatch.GraphWidget:
        metrics = [
            self._functions[spec.name].metric_duration(
                period=cdk.Duration.minutes(5), statistic=statistic, label=f"{spec.name} {statistic}"
            )
            for spec in self._functions.specs
            for statistic in ("p50", "p95")
        ]
        return cloudwatch.GraphWidget(title="How long functions take", left=metrics, width=THIRD, height=HIGH)

    @staticmethod
    def _waiting(queues: Queues) -> cloudwatch.GraphWidget:
        every: dict[str, sqs.IQueue] = {**queues.follow_ups, "interruption": queues.interruption, "dead": queues.dead}
        metrics = [
            queue.metric_approximate_number_of_messages_visible(period=PERIOD, label=name)
            for name, queue in every.items()
        ]
        return cloudwatch.GraphWidget(title="Messages that wait", left=metrics, width=THIRD, height=HIGH)
