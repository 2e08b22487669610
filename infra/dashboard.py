"""One page to look at: what waits, what there is and costs, what was decided, and whether the functions are well.

Lambda's and SQS's own metrics cost nothing, and everything else is asked of the log: no metric is paid for to be drawn.
"""

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import Alarms
from infra.functions import Functions
from infra.knobs import Knobs
from infra.queries import FIRST, LAST, THIRD, WIDE, Query
from infra.queues import Queues

PERIOD: Final = cdk.Duration.minutes(1)
HIGH: Final = 6
FROM_ZERO: Final = cloudwatch.YAxisProps(min=0, show_units=False)
"""Titles have the units."""


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
        self._functions = functions
        page = cloudwatch.Dashboard(self, "Page", dashboard_name=f"joiner-{knobs.cluster}")
        page.add_widgets(cloudwatch.AlarmStatusWidget(alarms=alarms.all, width=WIDE, title="Should a person look?"))
        page.add_widgets(*self._asked(FIRST), self._latency(), self._waiting(queues))
        page.add_widgets(*self._asked(LAST))

    def _asked(self, queries: Iterable[Query]) -> list[cloudwatch.IWidget]:
        groups = [self._functions[spec.name].log_group.log_group_name for spec in self._functions.specs]
        return [
            cloudwatch.LogQueryWidget(
                title=one.title,
                log_group_names=groups,
                query_lines=list(one.lines),
                view=one.view,
                width=one.width,
                height=HIGH,
            )
            for one in queries
        ]

    def _latency(self) -> cloudwatch.GraphWidget:
        metrics = [
            self._functions[spec.name].metric_duration(
                period=cdk.Duration.minutes(5), statistic=statistic, label=f"{spec.name} {statistic}"
            )
            for spec in self._functions.specs
            for statistic in ("p50", "p95")
        ]
        return cloudwatch.GraphWidget(
            title="How long functions take, in milliseconds",
            left=metrics,
            width=THIRD,
            height=HIGH,
            left_y_axis=FROM_ZERO,
        )

    @staticmethod
    def _waiting(queues: Queues) -> cloudwatch.GraphWidget:
        every: dict[str, sqs.IQueue] = {
            **queues.follow_ups,
            "interruption": queues.interruption,
            "dead letters": queues.dead,
        }
        metrics = [
            queue.metric_approximate_number_of_messages_visible(period=PERIOD, label=name)
            for name, queue in every.items()
        ]
        return cloudwatch.GraphWidget(
            title="Messages that wait, by queue", left=metrics, width=THIRD, height=HIGH, left_y_axis=FROM_ZERO
        )
