"""Evaluation of the expressions in spec.kubelet for one instance type.

`maxPods` may be an expression, and values of kubeReserved and systemReserved that are no quantities. In `maxPods`, the
variable `max_pods` is the value that the type would have without it; elsewhere it is the evaluated maxPods. An
expression that cannot be evaluated for a type is ignored there; the node class's status reports it first.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from shared.decide.launch.kubelet.cel_operators import CelExpression, CelType, CelValue
from shared.decide.launch.kubelet.cel_parser import parse_expression
from shared.decide.launch.kubelet.configuration import list_expressions
from shared.model.core.metadata import Pairs, build_pairs
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass, KubeletConfiguration

EXPRESSION_VARIABLES: Final[tuple[tuple[str, CelType], ...]] = (
    ("default_enis", "int"),
    ("instance_type", "string"),
    ("ips_per_eni", "int"),
    ("max_pods", "int"),
    ("memory_mib", "int"),
    ("vcpus", "int"),
)
_MAX_PODS_LIMIT: Final = 2**31 - 1


def _format_rounded_up(step: int, unit: str) -> Callable[[int], str]:
    return lambda amount: f"{math.ceil(amount / step) * step}{unit}"


_FORMAT_BY_RESOURCE: Final = {
    "cpu": _format_rounded_up(10, "m"),
    "memory": _format_rounded_up(16, "Mi"),
    "ephemeral-storage": _format_rounded_up(1, "Gi"),
    "pid": _format_rounded_up(1, ""),
}


def evaluate_kubelet(node_class: EC2NodeClass, info: InstanceTypeInfo, default_pods: int) -> KubeletConfiguration:
    """Return spec.kubelet with its expressions replaced by their values for the instance type *info*."""
    kubelet = node_class.kubelet
    expression_by_path = dict(list_expressions(node_class))
    max_pods = (
        _get_or_none(lambda: _evaluate_max_pods(expression_by_path["maxPods"], info, default_pods))
        if "maxPods" in expression_by_path
        else kubelet.max_pods
    )
    pods = default_pods if max_pods is None else max_pods
    return msgspec.structs.replace(
        kubelet,
        max_pods=max_pods,
        kube_reserved=_evaluate_reserved("kubeReserved", kubelet.kube_reserved, expression_by_path, info, pods),
        system_reserved=_evaluate_reserved("systemReserved", kubelet.system_reserved, expression_by_path, info, pods),
    )


def with_reserved(node_class: EC2NodeClass, kube_reserved: Pairs, system_reserved: Pairs) -> EC2NodeClass:
    """Return *node_class* with the evaluated *kube_reserved* and *system_reserved*; () keeps the written ones."""
    if not kube_reserved and not system_reserved:
        return node_class
    own_kubelet = node_class.kubelet
    kubelet = msgspec.structs.replace(
        own_kubelet,
        kube_reserved=kube_reserved or own_kubelet.kube_reserved,
        system_reserved=system_reserved or own_kubelet.system_reserved,
    )
    return msgspec.structs.replace(node_class, kubelet=kubelet)


def find_invalid_expressions(node_class: EC2NodeClass) -> Iterator[str]:
    """Yield a problem for each expression that cannot be parsed or has a type error."""
    for path, text in list_expressions(node_class):
        try:
            _parse_number_expression(text)
        except ValueError as error:
            yield f"spec.kubelet.{path}: {text!r}: {error}"


def find_failing_expressions(
    node_class: EC2NodeClass, infos: Iterable[InstanceTypeInfo], default_pods: int
) -> Iterator[str]:
    """Yield, for each expression, a problem for the first of *infos* on which it has no valid value."""
    instance_types = tuple(infos)
    for path, text in list_expressions(node_class):
        for info in instance_types:
            try:
                _evaluate_amount(path, text, info, default_pods)
            except ValueError as error:
                yield f"spec.kubelet.{path}: {text!r}: on {info.name}: {error}"
                break


def _evaluate_reserved(
    section_name: str, written_amounts: Pairs, expression_by_path: dict[str, str], info: InstanceTypeInfo, pods: int
) -> Pairs:
    amounts = dict(written_amounts)
    for path, text in expression_by_path.items():
        section, _, name = path.partition(".")
        if section == section_name:
            amount = _get_or_none(lambda path=path, text=text: _evaluate_amount(path, text, info, pods))  # type: ignore[misc]
            amounts |= {} if amount is None else {name: _FORMAT_BY_RESOURCE[name](amount)}
    return build_pairs(amounts)


def _evaluate_amount(path: str, text: str, info: InstanceTypeInfo, pods: int) -> int:
    if path == "maxPods":
        return _evaluate_max_pods(text, info, pods)
    amount = _evaluate_number(text, info, pods)
    if amount < 0:
        raise ValueError(f"evaluates to {amount}, which is below zero")
    return amount


def _evaluate_max_pods(text: str, info: InstanceTypeInfo, default_pods: int) -> int:
    amount = _evaluate_number(text, info, default_pods)
    if not 0 <= amount <= _MAX_PODS_LIMIT:
        raise ValueError(f"evaluates to {amount}, which is not a number of pods")
    return amount


def _evaluate_number(text: str, info: InstanceTypeInfo, pods: int) -> int:
    values: dict[str, CelValue] = {
        "default_enis": info.maximum_interfaces,
        "instance_type": info.name,
        "ips_per_eni": info.ipv4_per_interface,
        "max_pods": pods,
        "memory_mib": info.memory_mib,
        "vcpus": info.vcpus,
    }
    result = _parse_number_expression(text).evaluate(values)
    if not math.isfinite(result):
        raise ValueError(f"evaluates to {result}")
    return int(result)


def _parse_number_expression(text: str) -> CelExpression:
    parsed = parse_expression(text, EXPRESSION_VARIABLES)
    if parsed.value_type not in ("int", "double"):
        raise ValueError(f"is a {parsed.value_type}: must be a number")
    return parsed


def _get_or_none(evaluate: Callable[[], int]) -> int | None:
    try:
        return evaluate()
    except ValueError:
        return None
