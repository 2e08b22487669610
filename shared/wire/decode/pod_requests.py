"""The total resource requests of a pod, by KEP-753.

Sidecars (init containers with restartPolicy Always) start in order and keep running. While an ordinary init container
runs, the sidecars started before it run beside it; afterwards, all sidecars run beside the regular containers. The pod
requests the maximum over these phases. A container that is being resized in place counts with the larger of its desired
and its allocated resources.
"""

from collections.abc import Iterator, Mapping

from shared.model.core.resources import (
    CPU,
    MEMORY,
    NONE,
    PODS,
    Resources,
    build_resources,
    compute_max_resources,
    sum_resources,
)
from shared.wire.decode.field_errors import parse_resource_list
from shared.wire.schema.pods import ContainerJson, PodSpecKey, ResourceRequirementsJson

_ONE_POD_RESOURCES = build_resources({PODS: 1})


def compute_pod_requests(spec_key: PodSpecKey) -> Resources:
    """Return the requests of the whole pod; `pods` is 1.

    Raises:
        ValueError: an amount is not a quantity.
    """
    aggregate = compute_max_resources(_iterate_phase_requests(spec_key))
    overhead = parse_resource_list("spec.overhead", spec_key.overhead)
    return sum_resources((_with_pod_level(aggregate, spec_key.resources), overhead, _ONE_POD_RESOURCES))


def _iterate_phase_requests(spec_key: PodSpecKey) -> Iterator[Resources]:
    allocated_requests = _compute_allocated_requests(spec_key)
    sidecar_requests = NONE
    for container in spec_key.init_containers:
        container_requests = _compute_container_requests("spec.initContainers", container, allocated_requests)
        if container.restart_policy == "Always":
            sidecar_requests += container_requests
        else:
            yield sidecar_requests + container_requests
    yield sum_resources(
        (
            sidecar_requests,
            *(
                _compute_container_requests("spec.containers", container, allocated_requests)
                for container in spec_key.containers
            ),
        )
    )


def _compute_container_requests(
    path: str, container: ContainerJson, allocated_requests: Mapping[str, Resources]
) -> Resources:
    resources_path = f"{path}[{container.name}].resources"
    requests = parse_resource_list(f"{resources_path}.requests", container.resources.requests)
    limits = parse_resource_list(f"{resources_path}.limits", container.resources.limits)
    defaulted_requests = {name: amount for name, amount in limits.amounts if name not in container.resources.requests}
    return compute_max_resources(
        (build_resources(dict(requests.amounts) | defaulted_requests), allocated_requests.get(container.name, NONE))
    )


def _compute_allocated_requests(spec_key: PodSpecKey) -> dict[str, Resources]:
    return {
        status.name: compute_max_resources(
            (
                parse_resource_list(
                    f"status.containerStatuses[{status.name}].resources.requests", status.resources.requests
                ),
                parse_resource_list(
                    f"status.containerStatuses[{status.name}].allocatedResources", status.allocated_resources
                ),
            )
        )
        for status in spec_key.statuses
    }


def _with_pod_level(aggregate: Resources, pod_level: ResourceRequirementsJson) -> Resources:
    requests = parse_resource_list("spec.resources.requests", pod_level.requests)
    limits = parse_resource_list("spec.resources.limits", pod_level.limits)
    defaulted_requests = {
        name: amount
        for name, amount in limits.amounts
        if name not in pod_level.requests and name not in aggregate.list_names()
    }
    pod_level_requests = {name: requests[name] for name in pod_level.requests}
    return build_resources(
        dict(aggregate.amounts) | _select_pod_level_resources(defaulted_requests | pod_level_requests)
    )


def _select_pod_level_resources(requests: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}
