"""SQS: queues and their policies."""

import json
from collections.abc import Mapping
from typing import Final

from sim.account.kinds.kind import Kind, Made, Place, Said, Setting, without


class Queue(Kind):
    """AWS::SQS::Queue."""

    fixed = frozenset({"QueueName", "FifoQueue"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("QueueName") or at.named(80)
        url = at.client("sqs").create_queue(QueueName=name, Attributes=_attributes(said))["QueueUrl"]
        attributes = {"Arn": at.arn("sqs", name), "QueueName": name, "QueueUrl": url}
        return Made(physical_id=url, attributes=attributes)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change its attributes; those no longer said are what they are by themselves."""
        defaults = {key: _DEFAULTS[key] for key in old.keys() - new.keys() if key in _DEFAULTS}
        attributes = _attributes(new) | defaults
        at.client("sqs").set_queue_attributes(QueueUrl=made.physical_id, Attributes=attributes)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with all messages."""
        del said
        at.client("sqs").delete_queue(QueueUrl=made.physical_id)


_DEFAULTS: Final = {
    "DelaySeconds": "0",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "RedrivePolicy": "",
    "VisibilityTimeout": "30",
}


def _attributes(said: Said) -> dict[str, str]:
    return {key: _worded(value) for key, value in without(said, "QueueName", "Tags").items()}


def _worded(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class QueuePolicy(Setting):
    """AWS::SQS::QueuePolicy."""

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write the document to each queue."""
        for url in said["Queues"]:
            document = {"Policy": json.dumps(said["PolicyDocument"])}
            at.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=document)
        return before or Made(physical_id=at.named())

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Leave each queue without."""
        del made
        for url in said["Queues"]:
            at.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
