"""Amounts in spec.kubelet that are expressions over the machine: what they come to on one instance type.

`maxPods` may be one, and what kubeReserved and systemReserved hold that is no quantity. In `maxPods`, `max_pods` is
what the type would have without it; elsewhere it is what came of that. What cannot be computed for a type is as if it
were not written; node classes are told so beforehand.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from shared.launch.cel import Expression, Kind, Value, expression
from shared.launch.kubelet import expressions
from shared.model.ec2 import InstanceTypeInfo
from shared.model.nodeclasses import EC2NodeClass, Kubelet
from shared.model.objects import Pairs, pairs

VARIABLES: Final[tuple[tuple[str, Kind], ...]] = (
    ("default_enis", "int"),
    ("instance_type", "string"),
    ("ips_per_eni", "int"),
    ("max_pods", "int"),
    ("memory_mib", "int"),
    ("vcpus", "int"),
)
_MOST_PODS: Final = 2**31 - 1


def _stepped(step: int, unit: str) -> Callable[[int], str]:
    return lambda amount: f"{math.ceil(amount / step) * step}{unit}"


_WRITTEN: Final = {
    "cpu": _stepped(10, "m"),
    "memory": _stepped(16, "Mi"),
    "ephemeral-storage": _stepped(1, "Gi"),
    "pid": _stepped(1, ""),
}


def settled(node_class: EC2NodeClass, info: InstanceTypeInfo, default_pods: int) -> Kubelet:
    """Answer what is read of spec.kubelet with the amounts that it comes to on machines like *info*."""
    kubelet = node_class.kubelet
    some = dict(expressions(node_class))
    wanted = _or_none(lambda: _pods(some["maxPods"], info, default_pods)) if "maxPods" in some else kubelet.max_pods
    pods = default_pods if wanted is None else wanted
    return msgspec.structs.replace(
        kubelet,
        max_pods=wanted,
        kube_reserved=_reserved("kubeReserved", kubelet.kube_reserved, some, info, pods),
        system_reserved=_reserved("systemReserved", kubelet.system_reserved, some, info, pods),
    )


def with_reserved(node_class: EC2NodeClass, kube: Pairs, system: Pairs) -> EC2NodeClass:
    """Answer *node_class* with amounts in place of expressions; () where there were none."""
    if not kube and not system:
        return node_class
    known = node_class.kubelet
    kubelet = msgspec.structs.replace(
        known, kube_reserved=kube or known.kube_reserved, system_reserved=system or known.system_reserved
    )
    return msgspec.structs.replace(node_class, kubelet=kubelet)


def unreadable(node_class: EC2NodeClass) -> Iterator[str]:
    """Iterate over expressions that are none, or whose parts do not fit together."""
    for path, text in expressions(node_class):
        try:
            _read(text)
        except ValueError as error:
            yield f"spec.kubelet.{path}: {text!r}: {error}"


def uncomputable(node_class: EC2NodeClass, infos: Iterable[InstanceTypeInfo], default_pods: int) -> Iterator[str]:
    """Iterate over expressions that come to no amount on one of *infos*, the first of them each."""
    some = tuple(infos)
    for path, text in expressions(node_class):
        for info in some:
            try:
                _amount(path, text, info, default_pods)
            except ValueError as error:
                yield f"spec.kubelet.{path}: {text!r}: on {info.name}: {error}"
                break


def _reserved(field: str, own: Pairs, some: dict[str, str], info: InstanceTypeInfo, pods: int) -> Pairs:
    found = dict(own)
    for path, text in some.items():
        start, _, name = path.partition(".")
        if start == field:
            amount = _or_none(lambda path=path, text=text: _amount(path, text, info, pods))  # type: ignore[misc]
            found |= {} if amount is None else {name: _WRITTEN[name](amount)}
    return pairs(found)


def _amount(path: str, text: str, info: InstanceTypeInfo, pods: int) -> int:
    if path == "maxPods":
        return _pods(text, info, pods)
    amount = _computed(text, info, pods)
    if amount < 0:
        raise ValueError(f"comes to {amount}, which is below zero")
    return amount


def _pods(text: str, info: InstanceTypeInfo, default_pods: int) -> int:
    amount = _computed(text, info, default_pods)
    if not 0 <= amount <= _MOST_PODS:
        raise ValueError(f"comes to {amount}, which is no number of pods")
    return amount


def _computed(text: str, info: InstanceTypeInfo, pods: int) -> int:
    known: dict[str, Value] = {
        "default_enis": info.maximum_interfaces,
        "instance_type": info.name,
        "ips_per_eni": info.ipv4_per_interface,
        "max_pods": pods,
        "memory_mib": info.memory_mib,
        "vcpus": info.vcpus,
    }
    found = _read(text).value(known)
    if not math.isfinite(found):
        raise ValueError(f"comes to {found}")
    return int(found)


def _read(text: str) -> Expression:
    found = expression(text, VARIABLES)
    if found.kind not in ("int", "double"):
        raise ValueError(f"is a {found.kind}: want a number")
    return found


def _or_none(computed: Callable[[], int]) -> int | None:
    try:
        return computed()
    except ValueError:
        return None
