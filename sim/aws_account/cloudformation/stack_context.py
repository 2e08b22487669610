"""The stack during an operation: access to the account's services, and the recording of its resources and events."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from sim.aws_account.cloudformation.stack import Stack, StackResource
from sim.aws_account.cloudformation.template_parser import InvalidTemplate
from sim.aws_account.function_runtime import AccountServices
from sim.aws_account.resource_types.resource_provider import Failed, PhysicalResource, ResourceProvider, ResourceRequest

RESOURCE_ERRORS: Final = (Failed, InvalidTemplate, ClientError, BotoCoreError, KeyError)
"""Errors that mean that a resource operation failed."""


class StackContext:
    """One stack during an operation."""

    def __init__(
        self, stack: Stack, services: AccountServices, find_provider: Callable[[str], ResourceProvider]
    ) -> None:
        """Operate on *stack* with *services*; *find_provider* returns the provider of a resource type."""
        self.stack, self.find_provider, self._services = stack, find_provider, services
        self.physical_resources: dict[str, PhysicalResource] = {
            name: resource.physical_resource for name, resource in stack.resources.items()
        }
        """By logical id; grows during the operation."""

    def build_request(self, stack_resource: StackResource, /, **changes: Any) -> ResourceRequest:  # noqa: ANN401 - fields of the request
        """Return the request for the provider of *stack_resource*, with *changes* of its fields."""
        fields: dict[str, Any] = {
            "services": self._services,
            "stack_name": self.stack.name,
            "stack_id": self.stack.arn,
            "logical_id": stack_resource.logical_id,
            "type": stack_resource.type,
            "properties": stack_resource.properties,
            "resource": stack_resource.physical_resource,
            "ordinal": stack_resource.ordinal,
        }
        return ResourceRequest(**(fields | changes))

    def record_event(self, resource: StackResource, status: str, reason: str = "") -> None:
        """Record an event of *resource*."""
        self.stack.record_event(
            resource.logical_id, resource.physical_resource.physical_id, resource.type, status, reason
        )

    def put_resource(self, resource: StackResource) -> None:
        """Store *resource* under its logical id."""
        self.stack.resources[resource.logical_id] = resource
        self.physical_resources[resource.logical_id] = resource.physical_resource

    def remove_resource(self, resource: StackResource) -> None:
        """Remove *resource* from the stack, unless it was replaced."""
        if self.is_current(resource):
            del self.stack.resources[resource.logical_id]
            self.physical_resources.pop(resource.logical_id, None)

    def set_resource_status(self, resource: StackResource, status: str, reason: str) -> None:
        """Set the status of *resource* in the stack, unless it was replaced."""
        if self.is_current(resource):
            self.stack.resources[resource.logical_id] = msgspec.structs.replace(resource, status=status, reason=reason)

    def is_current(self, resource: StackResource) -> bool:
        """Return whether *resource* is the one that the stack has under its logical id."""
        current = self.stack.resources.get(resource.logical_id)
        return current is not None and current.physical_resource.physical_id == resource.physical_resource.physical_id


def describe_error(error: Exception) -> str:
    """Return the status reason of a resource that failed with *error*."""
    if isinstance(error, ClientError):
        with suppress(KeyError):
            error_json = error.response["Error"]
            return f"{error_json['Message']} (Service: {error.operation_name}, Status Code: {error_json['Code']})"
    if isinstance(error, KeyError):
        return f"Model validation failed: required key [{error.args[0]}] not found"
    return str(error)
