"""What is known of a stack: its resources, what happened to them, and the change sets that wait."""

from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any, Final

import msgspec

from sim.account.kinds.kind import Made
from sim.account.stacks.template import Template

STACK: Final = "AWS::CloudFormation::Stack"
DONE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "ROLLBACK_COMPLETE"}
)


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a stack, as it is now."""

    logical_id: str
    type: str
    made: Made
    properties: dict[str, Any]
    """Resolved."""
    needs: tuple[str, ...]
    deletion: str = "Delete"
    replacement: str = "Delete"
    """What becomes of it if another takes its place."""
    ordinal: int = 0
    status: str = "CREATE_COMPLETE"
    reason: str = ""
    at: datetime
    """When it was last changed."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a resource, or to the stack itself."""

    ordinal: int
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    token: str
    at: datetime


class ChangeSet(msgspec.Struct, kw_only=True):
    """Changes that somebody looks at before they are made; this one knows what has become of it."""

    name: str
    arn: str
    kind: str
    text: str
    template: Template
    given: dict[str, str]
    tags: list[dict[str, str]]
    role_arn: str
    changes: list[dict[str, Any]]
    at: datetime
    status: str = "CREATE_COMPLETE"
    reason: str = ""
    execution: str = "AVAILABLE"


class Stack:
    """One stack, which changes."""

    def __init__(self, name: str, arn: str, now: Callable[[], datetime]) -> None:
        """Be there, empty."""
        self.name, self.arn, self._now = name, arn, now
        self.created_at, self.updated_at = now(), None
        self.text = ""
        self.template: Template = {}
        self.given: dict[str, str] = {}
        self.tags: list[dict[str, str]] = []
        self.description = ""
        self.status, self.reason, self.is_protected = "REVIEW_IN_PROGRESS", "", False
        self.role_arn = ""
        self.resources: dict[str, Resource] = {}
        self.outputs: list[dict[str, str]] = []
        self.events: list[Event] = []
        self.change_sets: dict[str, ChangeSet] = {}
        self.token = ""
        self._telling = Lock()

    created_at: datetime
    updated_at: datetime | None

    @property
    def is_gone(self) -> bool:
        """Whether it has been deleted: only who knows its ARN can see it."""
        return self.status == "DELETE_COMPLETE"

    @property
    def is_busy(self) -> bool:
        """Whether something is being done to it."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def become(self, status: str, reason: str = "") -> None:
        """Have *status*, and tell so."""
        self.tell(self.name, self.arn, STACK, status, reason)
        self.status, self.reason = status, reason

    def tell(self, logical_id: str, physical_id: str, kind: str, status: str, reason: str = "") -> None:
        """Keep what happened."""
        with self._telling:
            self.events.append(
                Event(
                    ordinal=len(self.events) + 1,
                    logical_id=logical_id,
                    physical_id=physical_id,
                    type=kind,
                    status=status,
                    reason=reason,
                    token=self.token,
                    at=self._now(),
                )
            )

    def now(self) -> datetime:
        """Answer the present instant."""
        return self._now()
