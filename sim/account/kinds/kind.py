"""What a type of resource is to CloudFormation: how one is made, changed and taken away."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

Said: TypeAlias = Mapping[str, Any]
"""The properties of a resource, resolved."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that is there."""

    physical_id: str
    attributes: dict[str, Any] = {}
    """What `Fn::GetAtt` gives."""
    reference: str = ""
    """What `Ref` gives, where that is not its id."""

    @property
    def ref(self) -> str:
        """Answer what `Ref` gives."""
        return self.reference or self.physical_id


class Failed(Exception):
    """A resource could not be made, changed or taken away; the message says why."""


class Services(Protocol):
    """What resources are made of."""

    region: str
    number: str

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in which stack a resource is."""

    services: Services
    stack_name: str
    stack_id: str
    logical_id: str
    type: str
    ordinal: int = 0
    """How many times this one has been replaced: two of them need two names."""
    update_policy: Said = {}
    begun: list[Made] = msgspec.field(default_factory=list)
    """What is there before all of it is: if the rest fails it has to be taken away."""

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""
        return self.services.client(service)

    def named(self, longest: int = 64) -> str:
        """Answer a name that nobody chose, as CloudFormation makes it up: stack, resource, twelve letters."""
        digest = sha256(f"{self.stack_id}/{self.logical_id}/{self.ordinal}".encode()).hexdigest()[:12].upper()
        room = longest - len(digest) - 2
        resource = self.logical_id[: max(room // 2, room - len(self.stack_name))]
        return f"{self.stack_name[: room - len(resource)]}-{resource}-{digest}"

    def arn(self, service: str, name: str) -> str:
        """Answer an ARN of this account and region."""
        return f"arn:aws:{service}:{self.services.region}:{self.services.number}:{name}"


class Kind:
    """A type of resource; as it stands, one of which nothing is made."""

    fixed: ClassVar[frozenset[str]] = frozenset()
    """Properties that cannot be changed: a new resource takes the place of the old one."""
    all_fixed: ClassVar[bool] = False
    """Whether that is so of all of them."""

    def replaces(self, old: Said, new: Said) -> bool:
        """Whether a change from *old* to *new* needs another resource."""
        changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        return self.all_fixed or bool(changed & self.fixed)

    def create(self, at: Place, said: Said) -> Made:
        """Make one.

        Raises:
            Failed: it could not be made.
            ClientError: a service refused.
        """
        del said
        return Made(physical_id=at.named())

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change *made* from *old* to *new*, none of which is fixed; what is answered may have another id.

        Raises:
            Failed: it could not be changed.
            ClientError: a service refused.
        """
        del at, old, new
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away; one that is gone already is none of our business.

        Raises:
            Failed: it could not be taken away.
            ClientError: a service refused.
        """


class Setting(Kind, ABC):
    """A type whose properties are written by one call, the first time as any other time."""

    def create(self, at: Place, said: Said) -> Made:
        """Write it."""
        return self.write(at, said, None)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Write it again."""
        del old
        return self.write(at, new, made)

    @abstractmethod
    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write what *said* says; *before* is what was there."""


def without(said: Said, *names: str) -> dict[str, Any]:
    """Answer *said* without *names*."""
    return {key: value for key, value in said.items() if key not in names}


def renamed(said: Said, names: Mapping[str, str]) -> dict[str, Any]:
    """Answer *said* with the keys of *names*, by what they are to be called."""
    return {names.get(key, key): value for key, value in said.items()}


def only(said: Said, *names: str) -> dict[str, Any]:
    """Answer those of *names* that *said* has."""
    return {key: said[key] for key in names if key in said}
