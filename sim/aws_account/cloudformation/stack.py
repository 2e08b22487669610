"""The state of a stack: its resources, events and change sets."""

from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any, Final

import msgspec

from sim.aws_account.cloudformation.template_parser import Template
from sim.aws_account.resource_types.resource_provider import PhysicalResource

STACK_TYPE: Final = "AWS::CloudFormation::Stack"
COMPLETE_STATUSES: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "ROLLBACK_COMPLETE"}
)


class StackResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a stack in its current state."""

    logical_id: str
    type: str
    physical_resource: PhysicalResource
    properties: dict[str, Any]
    """Resolved."""
    dependencies: tuple[str, ...]
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"
    """UpdateReplacePolicy: what happens to the old resource when it is replaced."""
    ordinal: int = 0
    status: str = "CREATE_COMPLETE"
    reason: str = ""
    updated_at: datetime
    """When it was last created or updated."""


class StackEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a resource, or of the stack itself."""

    ordinal: int
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    token: str
    at: datetime


class StackSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of a stack."""

    template_body: str
    template: Template
    parameters: dict[str, str]
    tags: list[dict[str, str]]
    role_arn: str
    """The role that CloudFormation assumes for the stack."""


class ChangeSet(msgspec.Struct, kw_only=True):
    """A set of changes to review before it is executed; its status fields change."""

    name: str
    arn: str
    spec: StackSpec
    changes: list[dict[str, Any]]
    created_at: datetime
    status: str = "CREATE_COMPLETE"
    reason: str = ""
    execution_status: str = "AVAILABLE"


class Stack:
    """A stack with its mutable state."""

    def __init__(self, name: str, arn: str, now: Callable[[], datetime]) -> None:
        """Start in REVIEW_IN_PROGRESS, without resources."""
        self.name, self.arn, self._read_clock = name, arn, now
        self.created_at, self.updated_at = now(), None
        self.template_body = ""
        self.template: Template = {}
        self.parameters: dict[str, str] = {}
        self.tags: list[dict[str, str]] = []
        self.description = ""
        self.status, self.reason, self.is_protected = "REVIEW_IN_PROGRESS", "", False
        self.role_arn = ""
        self.resources: dict[str, StackResource] = {}
        self.outputs: list[dict[str, str]] = []
        self.events: list[StackEvent] = []
        self.change_sets: dict[str, ChangeSet] = {}
        self.token = ""
        self._events_lock = Lock()

    created_at: datetime
    updated_at: datetime | None

    @property
    def is_deleted(self) -> bool:
        """Whether the stack is deleted: then it can be described only by its ARN."""
        return self.status == "DELETE_COMPLETE"

    @property
    def is_busy(self) -> bool:
        """Whether an operation is in progress."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def set_status(self, status: str, reason: str = "") -> None:
        """Set the status and record an event."""
        self.record_event(self.name, self.arn, STACK_TYPE, status, reason)
        self.status, self.reason = status, reason

    def record_event(
        self, logical_id: str, physical_id: str, resource_type: str, status: str, reason: str = ""
    ) -> None:
        """Record an event with the current time."""
        with self._events_lock:
            self.events.append(
                StackEvent(
                    ordinal=len(self.events) + 1,
                    logical_id=logical_id,
                    physical_id=physical_id,
                    type=resource_type,
                    status=status,
                    reason=reason,
                    token=self.token,
                    at=self._read_clock(),
                )
            )

    def get_time(self) -> datetime:
        """Return the current time."""
        return self._read_clock()
