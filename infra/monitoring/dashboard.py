"""The CloudWatch dashboard: pending pods, nodes and their cost, decisions, and the health of the functions.

The metrics of Lambda and SQS cost nothing, and all other widgets query the logs: no metric is paid for a graph.
"""

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions.functions import Functions
from infra.monitoring.alarms import Alarms
from infra.monitoring.queries import FIRST_QUERIES, FULL_WIDTH, LAST_QUERIES, THIRD_WIDTH, Query
from infra.settings.settings import StackOptions
from infra.triggers.queues import Queues

METRIC_PERIOD: Final = cdk.Duration.minutes(1)
WIDGET_HEIGHT: Final = 6
ZERO_BASED_AXIS: Final = cloudwatch.YAxisProps(min=0, show_units=False)
"""The titles contain the units."""


class Dashboard(Construct):
    """One dashboard, named ``joiner-<cluster>``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: StackOptions,
        functions: Functions,
        queues: Queues,
        alarms: Alarms,
    ) -> None:
        """Create the dashboard and its widgets."""
        super().__init__(scope, construct_id)
        self._functions = functions
        page = cloudwatch.Dashboard(self, "Page", dashboard_name=f"joiner-{options.cluster}")
        page.add_widgets(cloudwatch.AlarmStatusWidget(alarms=alarms.alarms, width=FULL_WIDTH, title="Alarms"))
        page.add_widgets(
            *self._build_query_widgets(FIRST_QUERIES), self._build_latency_widget(), self._build_queue_widget(queues)
        )
        page.add_widgets(*self._build_query_widgets(LAST_QUERIES))

    def _build_query_widgets(self, queries: Iterable[Query]) -> list[cloudwatch.IWidget]:
        groups = [self._functions[spec.name].log_group.log_group_name for spec in self._functions.specs]
        return [
            cloudwatch.LogQueryWidget(
                title=query.title,
                log_group_names=groups,
                query_lines=list(query.lines),
                view=query.view,
                width=query.width,
                height=WIDGET_HEIGHT,
            )
            for query in queries
        ]

    def _build_latency_widget(self) -> cloudwatch.GraphWidget:
        metrics = [
            self._functions[spec.name].metric_duration(
                period=cdk.Duration.minutes(5), statistic=statistic, label=f"{spec.name} {statistic}"
            )
            for spec in self._functions.specs
            for statistic in ("p50", "p95")
        ]
        return cloudwatch.GraphWidget(
            title="Function duration (ms)",
            left=metrics,
            width=THIRD_WIDTH,
            height=WIDGET_HEIGHT,
            left_y_axis=ZERO_BASED_AXIS,
        )

    @staticmethod
    def _build_queue_widget(queues: Queues) -> cloudwatch.GraphWidget:
        queue_by_name: dict[str, sqs.IQueue] = {
            **queues.follow_ups,
            "interruption": queues.interruption,
            "dead letters": queues.dead_letters,
        }
        metrics = [
            queue.metric_approximate_number_of_messages_visible(period=METRIC_PERIOD, label=name)
            for name, queue in queue_by_name.items()
        ]
        return cloudwatch.GraphWidget(
            title="Messages by queue",
            left=metrics,
            width=THIRD_WIDTH,
            height=WIDGET_HEIGHT,
            left_y_axis=ZERO_BASED_AXIS,
        )
