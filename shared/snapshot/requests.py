"""What a pod asks for in all, by KEP-753.

Sidecars (init containers that restart always) start in order and stay. So while an ordinary init container runs it has
beside it the sidecars started before it; afterwards all sidecars run beside the regular containers. The pod needs the
most that any of these moments needs. A container that is being resized in place counts with the larger of what it
wants and what it has.
"""

from collections.abc import Iterator, Mapping

from shared.model.resources import CPU, MEMORY, NONE, PODS, Resources, largest, resources, total
from shared.snapshot.fields import amounts
from shared.snapshot.wire_pods import Amounts, Container, PodShape

_ONE_POD = resources({PODS: 1})


def requests_from_shape(shape: PodShape) -> Resources:
    """Answer the requests of the whole pod; `pods` is 1.

    Raises:
        ValueError: an amount is not a quantity.
    """
    aggregate = largest(_moments(shape))
    overhead = amounts("spec.overhead", shape.overhead)
    return total((_with_pod_level(aggregate, shape.resources), overhead, _ONE_POD))


def _moments(shape: PodShape) -> Iterator[Resources]:
    running = _running(shape)
    sidecars = NONE
    for container in shape.init_containers:
        own = _wanted("spec.initContainers", container, running)
        if container.restart_policy == "Always":
            sidecars += own
        else:
            yield sidecars + own
    yield total((sidecars, *(_wanted("spec.containers", container, running) for container in shape.containers)))


def _wanted(path: str, container: Container, running: Mapping[str, Resources]) -> Resources:
    where = f"{path}[{container.name}].resources"
    requests = amounts(f"{where}.requests", container.resources.requests)
    limits = amounts(f"{where}.limits", container.resources.limits)
    unsaid = {name: amount for name, amount in limits.amounts if name not in container.resources.requests}
    return largest((resources(dict(requests.amounts) | unsaid), running.get(container.name, NONE)))


def _running(shape: PodShape) -> dict[str, Resources]:
    return {
        status.name: largest(
            (
                amounts(f"status.containerStatuses[{status.name}].resources.requests", status.resources.requests),
                amounts(f"status.containerStatuses[{status.name}].allocatedResources", status.allocated_resources),
            )
        )
        for status in shape.statuses
    }


def _with_pod_level(aggregate: Resources, level: Amounts) -> Resources:
    requests = amounts("spec.resources.requests", level.requests)
    limits = amounts("spec.resources.limits", level.limits)
    unsaid = {
        name: amount for name, amount in limits.amounts if name not in level.requests and name not in aggregate.names()
    }
    said = {name: requests[name] for name in level.requests}
    return resources(dict(aggregate.amounts) | _shared(unsaid | said))


def _shared(some: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in some.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}
