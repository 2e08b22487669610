"""The interface of a resource provider: how a CloudFormation resource type is created, updated and deleted."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import msgspec

from sim.aws_account.function_runtime import AccountServices

Properties: TypeAlias = Mapping[str, Any]
"""The resolved properties of a resource."""


class PhysicalResource(msgspec.Struct, frozen=True, kw_only=True):
    """A created resource."""

    physical_id: str
    attributes: dict[str, Any] = {}
    """The values of `Fn::GetAtt`, by attribute."""
    ref_value: str = ""
    """The value of `Ref`, if it is not the physical id."""

    @property
    def ref(self) -> str:
        """The value of `Ref`."""
        return self.ref_value or self.physical_id


class Failed(Exception):
    """A resource could not be created, updated or deleted; the message says why."""


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The creation, update or deletion of a resource, with access to the services of the account."""

    services: AccountServices
    stack_name: str
    stack_id: str
    logical_id: str
    type: str
    properties: Properties
    old_properties: Properties = {}
    """The properties before an update."""
    resource: PhysicalResource
    """The resource to update or delete; its id is empty before the creation."""
    ordinal: int = 0
    """How many times the resource was replaced: the name of the replacement must differ."""
    update_policy: Properties = {}
    partial_resources: list[PhysicalResource] = msgspec.field(default_factory=list)
    """Resources that exist before the creation is complete: if it fails, they must be deleted."""

    @property
    def physical_id(self) -> str:
        """The id of the resource to update or delete, empty before the creation."""
        return self.resource.physical_id

    @property
    def removed_properties(self) -> AbstractSet[str]:
        """The names of the properties that an update removes."""
        return self.old_properties.keys() - self.properties.keys()

    def select_changes(self, *names: str) -> dict[str, Any]:
        """Return the properties in *names* that an update adds or changes."""
        return {
            key: value
            for key, value in select_keys(self.properties, *names).items()
            if self.old_properties.get(key) != value
        }

    def get_client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Return the boto3 client of *service* with the deployer's credentials."""
        return self.services.get_client(service)

    def record_partial(self, physical_id: str, /, **attributes: Any) -> PhysicalResource:  # noqa: ANN401 - attributes hold anything
        """Return a created resource that is not complete yet."""
        self.partial_resources.append(build_resource(physical_id, **attributes))
        return self.partial_resources[-1]

    def choose_name(self, name_property: str, max_length: int = 64) -> str:
        """Return the name of the existing resource, the one in *name_property*, or a generated name."""
        return self.physical_id or self.properties.get(name_property) or self.generate_name(max_length)

    def generate_name(self, max_length: int = 64) -> str:
        """Return a name like CloudFormation generates it: stack, logical id, twelve characters of a hash."""
        digest = sha256(f"{self.stack_id}/{self.logical_id}/{self.ordinal}".encode()).hexdigest()[:12].upper()
        available_length = max_length - len(digest) - 2
        resource = self.logical_id[: max(available_length // 2, available_length - len(self.stack_name))]
        return f"{self.stack_name[: available_length - len(resource)]}-{resource}-{digest}"

    def build_arn(self, service: str, name: str) -> str:
        """Return an ARN of *service* in this account and region."""
        return f"arn:aws:{service}:{self.services.region}:{self.services.account_id}:{name}"


class ResourceProvider:
    """The provider of a resource type; this base class creates nothing."""

    create_only_properties: ClassVar[frozenset[str]] = frozenset()
    """Properties that cannot be updated: a change needs a replacement."""
    is_immutable: ClassVar[bool] = False
    """Whether a change of any property needs a replacement."""
    delete_call: ClassVar[tuple[str, str, str] | None] = None
    """The service, the operation and the parameter for the physical id, if one API call deletes the resource.

    A parameter in the plural gets a list.
    """

    def needs_replacement(self, old_properties: Properties, new_properties: Properties) -> bool:
        """Return whether a change from *old_properties* to *new_properties* needs a replacement."""
        changed = {
            key
            for key in old_properties.keys() | new_properties.keys()
            if old_properties.get(key) != new_properties.get(key)
        }
        return self.is_immutable or bool(changed & self.create_only_properties)

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the resource.

        Raises:
            Failed: it could not be created.
            ClientError: a service refused.
        """
        return build_resource(request.generate_name())

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the resource to new properties, whose create-only properties are the old ones.

        The returned resource may have another physical id.

        Raises:
            Failed: it could not be updated.
            ClientError: a service refused.
        """
        return request.resource

    def delete(self, request: ResourceRequest) -> None:
        """Delete the resource; the caller handles resources that do not exist any more.

        Raises:
            Failed: it could not be deleted.
            ClientError: a service refused.
        """
        if self.delete_call is not None:
            service, operation, id_parameter = self.delete_call
            argument = [request.physical_id] if id_parameter.endswith("s") else request.physical_id
            getattr(request.get_client(service), operation)(**{id_parameter: argument})


class PutResourceProvider(ResourceProvider, ABC):
    """A provider of a resource type that is created and updated by the same API call."""

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Write the resource."""
        return self.write(request)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Write the resource again."""
        return self.write(request)

    @abstractmethod
    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the properties of a new or an existing resource."""


class ConfiguredResourceProvider(ResourceProvider, ABC):
    """A provider of a resource type that is created first, and then configured by the API calls of an update."""

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the resource, then configure it; if that fails, the created resource is deleted."""
        resource = self.create_unconfigured(request)
        request.partial_resources.append(resource)
        self.configure(request, resource.physical_id)
        return resource

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Configure the resource again."""
        self.configure(request, request.physical_id)
        return request.resource

    @abstractmethod
    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the resource without its configuration."""

    @abstractmethod
    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Write the configuration of a new or an existing resource; delete what an update removes."""


def build_resource(physical_id: str, /, **attributes: Any) -> PhysicalResource:  # noqa: ANN401 - attributes hold anything
    """Return a created resource with the values of `Fn::GetAtt`."""
    return PhysicalResource(physical_id=physical_id, attributes=attributes)


def remove_keys(properties: Properties, *names: str) -> dict[str, Any]:
    """Return *properties* without *names*."""
    return {key: value for key, value in properties.items() if key not in names}


def rename_keys(properties: Properties, names: Mapping[str, str]) -> dict[str, Any]:
    """Return *properties* with their keys renamed by *names* (old name to new name)."""
    return {names.get(key, key): value for key, value in properties.items()}


def select_keys(properties: Properties, *names: str) -> dict[str, Any]:
    """Return the *properties* in *names*; names without a property are skipped."""
    return {key: properties[key] for key in names if key in properties}


def convert_to_camel_case(value: Any) -> Any:  # noqa: ANN401 - documents hold anything
    """Return *value* with keys that start with a lowercase letter, as in many APIs."""
    if isinstance(value, dict):
        return {f"{key[0].lower()}{key[1:]}": convert_to_camel_case(item) for key, item in value.items()}
    return [convert_to_camel_case(item) for item in value] if isinstance(value, list) else value
