"""Why a NodePool cannot launch a node with the devices that the ResourceClaims of a pod request."""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.devices.allocation import MAX_SEARCH_STEPS, find_selector_error, is_search_stopped
from shared.decide.scheduling.devices.occupied_devices import DeviceOption
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate, TemplateRefusal
from shared.model.core.labels import DEVICES
from shared.state.dynamic_resources.pod_claims import DeviceDemand

_UNKNOWN_FIX: Final = (
    "Joiner learns them from the ResourceSlices of nodes with the same instance type and NodePool; to fix: start one "
    f"such node, or declare them with {DEVICES} on a NodeOverlay"
)


def explain_devices(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage
) -> TemplateRefusal | None:
    """Return why no instance type that holds the pod has its devices; None if some has, or the pod has no claims."""
    demand, devices = pod_class.device_demand, template.devices
    state = template.narrow(template.initial_state, stage.requirements)
    if demand is None or devices is None or state is None:
        return None
    fitting_types = template.filter_fitting_types(state.mask, pod_class.request_vector, pod_class.ports)
    if fitting_types & devices.find_fitting_types(demand, 1):
        return None
    options = [option for option in devices.options if option.mask & fitting_types and option.node_devices.devices]
    demand_text = describe_demand(demand)
    if not options:
        message = f"the devices of its instance types are not known ({demand_text}): {_UNKNOWN_FIX}"
        return TemplateRefusal(reason="NoDeviceFits", message=message)
    error = next((text for option in options if (text := find_selector_error(option.node_devices, demand))), "")
    if error:
        return TemplateRefusal(reason="NoDeviceFits", message=error)
    if any(is_search_stopped(option.node_devices, demand) for option in options):
        message = (
            f"the search for devices for {demand_text} was stopped after {MAX_SEARCH_STEPS:,} steps: simplify the claim"
        )
        return TemplateRefusal(reason="NoDeviceFits", message=message)
    notes = "".join(f"; {note}" for note in _list_notes(demand, options))
    message = (
        f"no instance type has free devices for {demand_text}{notes}: allow other instance types, or change the claim"
    )
    return TemplateRefusal(reason="NoDeviceFits", message=message)


def _list_notes(demand: DeviceDemand, options: Iterable[DeviceOption]) -> Iterator[str]:
    """Yield what is special about the devices of *options*: unsupported fields, attributes that a constraint lacks."""
    devices = [device for option in options for device in option.node_devices.devices]
    unsupported_fields = {device.unsupported for device in devices} - {""}
    if unsupported_fields:
        yield f"devices with {', '.join(sorted(unsupported_fields))} are not supported"
    constraint_attributes = {constraint.attribute for spec in demand.specs for constraint in spec.constraints}
    missing_attributes = constraint_attributes - {name for device in devices for name, *_ in device.attributes}
    if missing_attributes:
        yield f"the values of {', '.join(sorted(missing_attributes))} on new nodes are not known"


def list_pinned_kinds(pod_class: PodEquivalenceClass) -> str:
    """Return the kinds of objects of the pods that restrict their nodes: volumes, allocated ResourceClaims."""
    has_claims, has_volumes = bool(pod_class.spec.resource_claims), bool(pod_class.spec.volume_claims)
    if not has_claims:
        return "volumes"
    return "volumes and allocated ResourceClaims" if has_volumes else "allocated ResourceClaims"


def describe_demand(demand: DeviceDemand) -> str:
    """Return the requests of *demand*: counts and device classes.

    >>> from shared.model.core.devices import ClaimSpec, DeviceRequest
    >>> request = DeviceRequest(name="gpu", device_class="gpu.example.com", count=2)
    >>> describe_demand(DeviceDemand(generated=(ClaimSpec(requests=((request,),)),)))
    '2 gpu.example.com'
    """
    return ", ".join(
        " or ".join(
            f"{'all' if request.takes_all else request.count} {request.device_class}" for request in alternatives
        )
        for spec in demand.specs
        for alternatives in spec.requests
    )
