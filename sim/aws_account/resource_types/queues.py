"""SQS queues and their policies."""

import json
from collections.abc import Mapping
from typing import Final

from sim.aws_account.resource_types.resource_provider import (
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    remove_keys,
    select_keys,
)

_DEFAULT_ATTRIBUTES: Final = {
    "DelaySeconds": "0",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "RedrivePolicy": "",
    "VisibilityTimeout": "30",
}


class QueueProvider(ResourceProvider):
    """AWS::SQS::Queue."""

    create_only_properties = frozenset({"QueueName", "FifoQueue"})
    delete_call = ("sqs", "delete_queue", "QueueUrl")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the queue."""
        name, attributes = request.choose_name("QueueName", 80), _build_attributes(request.properties)
        url = request.get_client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return build_resource(url, Arn=request.build_arn("sqs", name), QueueName=name, QueueUrl=url)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the attributes; removed attributes get their defaults."""
        defaults = select_keys(_DEFAULT_ATTRIBUTES, *request.removed_properties)
        attributes = _build_attributes(request.properties) | defaults
        request.get_client("sqs").set_queue_attributes(QueueUrl=request.physical_id, Attributes=attributes)
        return request.resource


def _build_attributes(properties: Properties) -> dict[str, str]:
    return {key: _format_attribute(value) for key, value in remove_keys(properties, "QueueName", "Tags").items()}


def _format_attribute(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class QueuePolicyProvider(PutResourceProvider):
    """AWS::SQS::QueuePolicy."""

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Set the policy of each queue."""
        self._write_policy(request, json.dumps(request.properties["PolicyDocument"]))
        return build_resource(request.physical_id or request.generate_name())

    def delete(self, request: ResourceRequest) -> None:
        """Remove the policy of each queue."""
        self._write_policy(request, "")

    def _write_policy(self, request: ResourceRequest, policy: str) -> None:
        for url in request.properties["Queues"]:
            request.get_client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
