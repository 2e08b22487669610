"""What AWS announces about instances, carried to the interruption queue; which are ours, the function finds out.

Announcements that ask for nothing (an instance runs) are left on the bus: they would only cost a call.
"""

from typing import Any, Final

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

ANNOUNCEMENTS: Final = {
    "ScheduledChange": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "StateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
DETAILS: Final[dict[str, dict[str, Any]]] = {
    "ScheduledChange": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
    "StateChange": {"state": ["shutting-down", "stopped", "stopping", "terminated"]},
}
"""What of an announcement must be so; of the others everything is wanted."""


class CloudEvents(Construct):
    """One rule per announcement."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, queue: sqs.IQueue, dead: sqs.IQueue
    ) -> None:
        """Send each to *queue*, or to *dead* if that does not take it for a day."""
        super().__init__(scope, construct_id)
        for title, (source, detail_type) in ANNOUNCEMENTS.items():
            events.Rule(
                self,
                title,
                description=f"Joiner, {cluster}: {detail_type}, to the interruption queue",
                event_pattern=events.EventPattern(
                    source=[source], detail_type=[detail_type], detail=DETAILS.get(title)
                ),
                targets=[targets.SqsQueue(queue, dead_letter_queue=dead)],
            )
