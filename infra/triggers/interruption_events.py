"""EventBridge rules that send EC2 events to the interruption queue; the function filters the instances of Joiner.

Events that need no reaction (an instance is running) are not matched, because they would only cost an invocation.
"""

from typing import Any, Final

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

EVENT_TYPE_BY_RULE: Final = {
    "ScheduledChange": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "RebalanceRecommendation": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceStateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservationInterruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
DETAIL_FILTER_BY_RULE: Final[dict[str, dict[str, Any]]] = {
    "ScheduledChange": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
    "InstanceStateChange": {"state": ["shutting-down", "stopped", "stopping", "terminated"]},
}
"""The event details that a rule requires; rules without an entry match all events of their type."""


class CloudEvents(Construct):
    """One rule per event type."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, queue: sqs.IQueue, dead_letter_queue: sqs.IQueue
    ) -> None:
        """Send each event to *queue*, or to *dead_letter_queue* if the queue does not accept it for a day."""
        super().__init__(scope, construct_id)
        for title, (source, detail_type) in EVENT_TYPE_BY_RULE.items():
            events.Rule(
                self,
                title,
                description=f"Joiner, {cluster}: sends {detail_type} events to the interruption queue",
                event_pattern=events.EventPattern(
                    source=[source], detail_type=[detail_type], detail=DETAIL_FILTER_BY_RULE.get(title)
                ),
                targets=[targets.SqsQueue(queue, dead_letter_queue=dead_letter_queue)],
            )
