"""Convert CustomResourceDefinitions to served resources."""

from datetime import datetime

from shared.crds.custom_resource import build_custom_resource
from shared.crds.definitions import Object
from sim.cluster.api_server.api_resources import ApiResource
from sim.cluster.api_server.metadata import format_time
from sim.cluster.api_server.rules.eviction import with_condition


def build_api_resource(definition: Object) -> ApiResource:
    """Return the resource that the API server serves for *definition*, in its storage version.

    Raises:
        Invalid: see `build_custom_resource`.
    """
    resource = build_custom_resource(definition)
    return ApiResource(
        plural=resource.plural,
        kind=resource.kind,
        group=resource.group,
        version=resource.version,
        namespaced=resource.is_namespaced,
        has_status=resource.has_status,
        counts_generations=True,
        schema=resource.schema,
    )


def with_established_conditions(definition: Object, now: datetime) -> Object:
    """Return *definition* with the conditions of a served CRD."""
    conditions: list[Object] = []
    for condition_type, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted")):
        condition = {"type": condition_type, "status": "True", "reason": reason, "lastTransitionTime": format_time(now)}
        conditions = with_condition(conditions, condition)
    return {**definition, "status": {"conditions": conditions}}
