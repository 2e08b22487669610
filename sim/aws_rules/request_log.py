"""The requests that functions make: their kinds, and those that AWS would reject."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from sim.aws_rules.problem import RejectedRequest, RequestProblem
from sim.aws_rules.request_validation import find_problem

JOINER_TAG_FILTERS: Final = ("tag:eks:eks-cluster-name", "tag:joiner.dev/launch-group")
"""Filters on tags that Joiner sets; other tags are the user's choice."""
USER_TAG_FILTER: Final = "tag:<key>"
SELECTING_PARAMETERS: Final = (
    "CapacityReservationIds",
    "DryRun",
    "GroupIds",
    "GroupNames",
    "InstanceIds",
    "LaunchTemplateNames",
    "Owners",
)
"""Parameters that, like filters, select what a request is about."""
_OPAQUE_PARAMETERS: Final = ("ExpressionAttributeNames", "ExpressionAttributeValues", "Item", "Key")
"""Parameters whose members are names of the caller."""


class RequestKind(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What the requests of one purpose have in common."""

    call: str
    """Service and operation, as ``ec2:DescribeInstances``."""
    selection: tuple[str, ...] = ()
    """The filters and the parameters that select resources, sorted."""


class RequestUse(msgspec.Struct, kw_only=True):
    """Where the requests of one kind come from, and everything that they contain."""

    functions: set[str]
    parameters: set[str]


class RequestLog:
    """Checks requests, and records their kinds."""

    def __init__(self) -> None:
        """Start empty."""
        self.use_by_kind: dict[RequestKind, RequestUse] = {}
        self.on_rejection: Callable[[RejectedRequest], None] = lambda _: None
        """Called with each request that AWS would reject."""
        self.rejections: list[RejectedRequest] = []
        """The requests that AWS would reject, oldest first."""

    def check_request(
        self, function: str, service: str, operation: str, parameters: Mapping[str, Any]
    ) -> RequestProblem | None:
        """Record a request; return the reason for which AWS rejects it, None if it accepts it."""
        call = f"{service}:{operation}"
        self._record_use(function, call, parameters)
        problem = find_problem(service, operation, parameters)
        if problem is not None:
            self.rejections.append(RejectedRequest(function=function, call=call, problem=problem))
            self.on_rejection(self.rejections[-1])
        return problem

    def _record_use(self, function: str, call: str, parameters: Mapping[str, Any]) -> None:
        kind = RequestKind(call=call, selection=_list_selection(parameters))
        use = self.use_by_kind.get(kind)
        if use is None:
            use = self.use_by_kind[kind] = RequestUse(functions=set(), parameters=set())
        use.functions.add(function)
        use.parameters.update(list_parameter_paths(parameters))

    def merge(self, log: "RequestLog") -> None:
        """Add everything that *log* has recorded."""
        for kind, use in log.use_by_kind.items():
            own_use = self.use_by_kind.setdefault(kind, RequestUse(functions=set(), parameters=set()))
            own_use.functions |= use.functions
            own_use.parameters |= use.parameters
        self.rejections += log.rejections


def list_parameter_paths(parameters: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the path of each parameter: ``LaunchTemplateData.Monitoring.Enabled``, ``Filters[].Name``."""
    for name, value in parameters.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and name not in _OPAQUE_PARAMETERS:
            yield from list_parameter_paths(value, f"{path}.")
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
            yield from _list_element_paths(value, path)
        else:
            yield path


def _list_element_paths(elements: Iterable[Mapping[str, Any]], path: str) -> Iterator[str]:
    flat_elements = {tuple(element): element for element in elements if not _is_nested(element)}
    nested_elements = [element for element in elements if _is_nested(element)]
    for element in (*flat_elements.values(), *nested_elements):
        yield from list_parameter_paths(element, f"{path}[].")


def _is_nested(element: Mapping[str, Any]) -> bool:
    return any(isinstance(value, (Mapping, list, tuple)) for value in element.values())


def _list_selection(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    filter_names = {item["Name"] for item in parameters.get("Filters", ()) if "Name" in item}
    filters = {
        USER_TAG_FILTER if name.startswith("tag:") and name not in JOINER_TAG_FILTERS else name for name in filter_names
    }
    return tuple(sorted(filters.union(name for name in SELECTING_PARAMETERS if parameters.get(name))))
