"""Where a stack is changed: what its resources are made of and by, and what is known of each as it comes and goes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from sim.account.kinds.kind import Failed, Kind, Made, Place, Services
from sim.account.stacks.stack import Resource, Stack
from sim.account.stacks.template import InvalidTemplate

REFUSALS: Final = (Failed, InvalidTemplate, ClientError, BotoCoreError, KeyError)
"""What becomes of a resource that cannot be as somebody wants it."""


class Site:
    """One stack under change."""

    def __init__(self, stack: Stack, services: Services, kinds: Callable[[str], Kind]) -> None:
        """Let *stack* change, by *services*; *kinds* finds a type by its name."""
        self.stack, self.kinds, self._services = stack, kinds, services
        self.made: dict[str, Made] = {name: one.made for name, one in stack.resources.items()}
        """By logical id; grows while it deploys."""

    def place(self, resource: Resource, policy: Mapping[str, object]) -> Place:
        """Answer where *resource* is made, changed or taken away; *policy* is its update policy."""
        return Place(
            services=self._services,
            stack_name=self.stack.name,
            stack_id=self.stack.arn,
            logical_id=resource.logical_id,
            type=resource.type,
            ordinal=resource.ordinal,
            update_policy=policy,
        )

    def tell(self, one: Resource, status: str, reason: str = "") -> None:
        """Keep that something happened to *one*."""
        self.stack.tell(one.logical_id, one.made.physical_id, one.type, status, reason)

    def keep(self, resource: Resource) -> None:
        """Have *resource* be what the stack has by its name."""
        self.stack.resources[resource.logical_id] = resource
        self.made[resource.logical_id] = resource.made

    def forget(self, one: Resource) -> None:
        """Have the stack know nothing of *one*, unless another has taken its place."""
        if self.is_current(one):
            del self.stack.resources[one.logical_id]
            self.made.pop(one.logical_id, None)

    def mark(self, one: Resource, status: str, reason: str) -> None:
        """Have the stack know what became of *one*, unless another has taken its place."""
        if self.is_current(one):
            self.stack.resources[one.logical_id] = msgspec.structs.replace(one, status=status, reason=reason)

    def is_current(self, one: Resource) -> bool:
        """Whether *one* is what the stack has by its name."""
        current = self.stack.resources.get(one.logical_id)
        return current is not None and current.made.physical_id == one.made.physical_id


def reason_of(error: Exception) -> str:
    """Answer what a stack says of a refusal."""
    if isinstance(error, ClientError):
        with suppress(KeyError):
            said = error.response["Error"]
            return f"{said['Message']} (Service: {error.operation_name}, Status Code: {said['Code']})"
    if isinstance(error, KeyError):
        return f"Model validation failed: required key [{error.args[0]}] not found"
    return str(error)
