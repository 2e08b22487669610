"""What EC2 and Health say on EventBridge, in its envelope: dicts that can be put on a bus as they are."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.model.ec2 import InstanceState
from sim.clock import Clock
from sim.cloud import chance

ACCOUNT: Final = "123456789012"
NOTICE: Final = timedelta(seconds=120)
"""Between a spot interruption warning and the end of the instance."""
Event = dict[str, Any]


class Events:
    """Publishes to whoever subscribed, at once and in the order of subscription."""

    def __init__(self, clock: Clock, seed: int, region: str) -> None:
        """Begin with no subscriber."""
        self._clock = clock
        self._seed = seed
        self._region = region
        self._sent = 0
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, callback: Callable[[Event], None]) -> None:
        """Call *callback* with every event from now on."""
        self._subscribers.append(callback)

    def state_changed(self, instance_id: str, state: InstanceState) -> None:
        """Say that an instance has a new state."""
        detail = {"instance-id": instance_id, "state": state}
        self._publish("aws.ec2", "EC2 Instance State-change Notification", [self._instance_arn(instance_id)], detail)

    def spot_interruption(self, instance_id: str, zone: str) -> None:
        """Warn that a spot instance has two minutes."""
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Spot Instance Interruption Warning", [arn], detail)

    def rebalance_recommendation(self, instance_id: str, zone: str) -> None:
        """Say that a spot instance is more likely than others to be interrupted."""
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Instance Rebalance Recommendation", [arn], {"instance-id": instance_id})

    def reservation_interruption(self, instance_id: str, zone: str) -> None:
        """Warn that the capacity which an instance has from a reservation is wanted back in two minutes."""
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        arn = f"arn:aws:ec2:{zone}:instance/{instance_id}"
        self._publish("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", [arn], detail)

    def scheduled_change(
        self, instance_ids: Sequence[str], start: datetime, end: datetime, *, is_over: bool = False
    ) -> None:
        """Say that the hardware below *instance_ids* is retired between *start* and *end*, or that it is not."""
        code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
        arn = f"arn:aws:health:{self._region}::event/EC2/{code}/{chance.uuid(self._seed, code, *instance_ids)}"
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

    def _publish(self, source: str, kind: str, resources: list[str], detail: Mapping[str, object]) -> None:
        self._sent += 1
        event: Event = {
            "version": "0",
            "id": chance.uuid(self._seed, "event", self._sent),
            "detail-type": kind,
            "source": source,
            "account": ACCOUNT,
            "time": f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}",
            "region": self._region,
            "resources": resources,
            "detail": dict(detail),
        }
        for callback in self._subscribers:
            callback(event)

    def _instance_arn(self, instance_id: str) -> str:
        return f"arn:aws:ec2:{self._region}:{ACCOUNT}:instance/{instance_id}"
