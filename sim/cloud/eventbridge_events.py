"""Events of EC2 and AWS Health on EventBridge, in its envelope: dicts that can be put on a bus unchanged."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.model.ec2.types import InstanceState
from sim.cloud import seeded_random
from sim.time.virtual_clock import Clock

ACCOUNT_ID: Final = "123456789012"
INTERRUPTION_DELAY: Final = timedelta(seconds=120)
"""Time between a spot interruption warning and the termination of the instance."""
EventBridgeEvent = dict[str, Any]


class EventBus:
    """Publishes events to the subscribers, immediately and in the order of subscription."""

    def __init__(self, clock: Clock, seed: int, region: str) -> None:
        """Create the bus without subscribers."""
        self._clock = clock
        self._seed = seed
        self._region = region
        self._event_count = 0
        self._subscribers: list[Callable[[EventBridgeEvent], None]] = []

    def subscribe(self, callback: Callable[[EventBridgeEvent], None]) -> None:
        """Call *callback* with every event from now on."""
        self._subscribers.append(callback)

    def publish_state_change(self, instance_id: str, state: InstanceState) -> None:
        """Publish that an instance has a new state."""
        detail = {"instance-id": instance_id, "state": state}
        self._publish(
            "aws.ec2", "EC2 Instance State-change Notification", [self._build_instance_arn(instance_id)], detail
        )

    def publish_spot_interruption(self, instance_id: str, zone: str) -> None:
        """Publish the two-minute warning of a spot instance."""
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Spot Instance Interruption Warning", [arn], detail)

    def publish_rebalance_recommendation(self, instance_id: str, zone: str) -> None:
        """Publish that a spot instance has an elevated risk of interruption."""
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Instance Rebalance Recommendation", [arn], {"instance-id": instance_id})

    def publish_reservation_interruption(self, instance_id: str, zone: str) -> None:
        """Publish the two-minute warning that EC2 reclaims the capacity reservation of an instance."""
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", [arn], detail)

    def publish_scheduled_change(
        self, instance_ids: Sequence[str], start: datetime, end: datetime, *, is_over: bool = False
    ) -> None:
        """Publish that the hardware of *instance_ids* is retired between *start* and *end*.

        Or that this is canceled.
        """
        code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
        event_id = seeded_random.build_uuid(self._seed, code, *instance_ids)
        arn = f"arn:aws:health:{self._region}::event/EC2/{code}/{event_id}"
        detail = {
            "eventArn": arn,
            "service": "EC2",
            "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange",
            "statusCode": "closed" if is_over else "upcoming",
            "startTime": f"{start:%a, %d %b %Y %H:%M:%S GMT}",
            "endTime": f"{end:%a, %d %b %Y %H:%M:%S GMT}",
            "eventDescription": [{"language": "en_US", "latestDescription": "The hardware is to be retired."}],
            "affectedEntities": [{"entityValue": instance_id, "tags": {}} for instance_id in instance_ids],
        }
        self._publish("aws.health", "AWS Health Event", list(instance_ids), detail)

    def _publish(self, source: str, detail_type: str, resources: list[str], detail: Mapping[str, object]) -> None:
        self._event_count += 1
        event: EventBridgeEvent = {
            "version": "0",
            "id": seeded_random.build_uuid(self._seed, "event", self._event_count),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT_ID,
            "time": f"{self._clock.get_time():%Y-%m-%dT%H:%M:%SZ}",
            "region": self._region,
            "resources": resources,
            "detail": dict(detail),
        }
        for callback in self._subscribers:
            callback(event)

    def _build_instance_arn(self, instance_id: str) -> str:
        return f"arn:aws:ec2:{self._region}:{ACCOUNT_ID}:instance/{instance_id}"
