"""The custom resource that a CustomResourceDefinition defines, in its storage version."""

from collections.abc import Mapping
from typing import Any

import msgspec

from shared.crds.definitions import Object
from shared.crds.schema import Schema, parse_schema
from shared.errors import Invalid


class CustomResource(msgspec.Struct, frozen=True, kw_only=True):
    """The storage version of a CustomResourceDefinition."""

    plural: str
    kind: str
    group: str
    version: str
    is_namespaced: bool
    has_status: bool
    """There is a /status subresource."""
    json_schema: Mapping[str, Any]
    """The `openAPIV3Schema`."""
    schema: Schema


def build_custom_resource(definition: Object) -> CustomResource:
    """Return the custom resource of *definition*.

    Raises:
        Invalid: its name is not ``<plural>.<group>``, or it has no schema.
    """
    name, spec = definition["metadata"]["name"], definition.get("spec") or {}
    group, names = spec.get("group", ""), spec.get("names") or {}
    storage_version: dict[str, Any] = next(
        (version for version in spec.get("versions") or [] if version.get("storage")), {}
    )
    json_schema = (storage_version.get("schema") or {}).get("openAPIV3Schema")
    if name != f"{names.get('plural')}.{group}" or not json_schema:
        raise Invalid(f'CustomResourceDefinition "{name}" is invalid: its name or its schema', "Invalid")
    return CustomResource(
        plural=names["plural"],
        kind=names["kind"],
        group=group,
        version=storage_version["name"],
        is_namespaced=spec.get("scope") == "Namespaced",
        has_status="status" in (storage_version.get("subresources") or {}),
        json_schema=json_schema,
        schema=parse_schema(msgspec.json.encode(json_schema, order="sorted")),
    )
