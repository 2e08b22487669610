"""CustomResourceDefinitions: from the object to a served resource."""

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from shared.errors import Invalid
from shared.kube.definitions import definitions
from sim.cluster.api_kinds import Object, Resource
from sim.cluster.api_meta import instant
from sim.cluster.eviction import with_condition
from sim.cluster.schema import Schema


@lru_cache(maxsize=1)
def shipped_definitions() -> tuple[Object, ...]:
    """Answer our own CRDs, sorted by name."""
    return tuple(msgspec.yaml.decode(text) for text in definitions())


def defined_resource(definition: Object) -> Resource:
    """Answer what *definition* lets the server serve: its storage version.

    Raises:
        Invalid: its name is not ``<plural>.<group>``, or it has no schema.
    """
    name, spec = definition["metadata"]["name"], definition.get("spec") or {}
    group, names = spec.get("group", ""), spec.get("names") or {}
    version: dict[str, Any] = next((each for each in spec.get("versions") or [] if each.get("storage")), {})
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if name != f"{names.get('plural')}.{group}" or not schema:
        raise Invalid(f'CustomResourceDefinition "{name}" is invalid: its name or its schema', "Invalid")
    return Resource(
        plural=names["plural"],
        kind=names["kind"],
        group=group,
        version=version["name"],
        namespaced=spec.get("scope") == "Namespaced",
        has_status="status" in (version.get("subresources") or {}),
        counts_generations=True,
        schema=_schema(msgspec.json.encode(schema, order="sorted")),
    )


@lru_cache(maxsize=64)
def _schema(encoded: bytes) -> Schema:
    return Schema(msgspec.json.decode(encoded))


def established(definition: Object, now: datetime) -> Object:
    """Answer *definition* with the conditions of one that is served."""
    conditions: list[Object] = []
    for kind, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted")):
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": instant(now)}
        conditions = with_condition(conditions, condition)
    return {**definition, "status": {"conditions": conditions}}
