"""Karpenter's own Deployment: the settings in its environment -> knobs of the stack; it itself must not run beside."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from cli.conversion.levels import KNOB, level_from
from cli.conversion.remarks import Path, Remarks

IMAGE: Final = "karpenter/controller"
_KNOBS: Final = {
    "CLUSTER_NAME": "joiner:cluster",
    "CLUSTER_ENDPOINT": "joiner:kube-endpoint",
    "VM_MEMORY_OVERHEAD_PERCENT": "joiner:vm-memory-overhead-percent",
    "RESERVED_ENIS": "joiner:reserved-enis",
    "PREFERENCE_POLICY": "joiner:preference-policy",
    "MIN_VALUES_POLICY": "joiner:min-values-policy",
    "DISABLE_DRY_RUN": "joiner:disable-dry-run",
    "FEATURE_GATES": "joiner:feature-gates",
    "AWS_FEATURE_GATES": "joiner:aws-feature-gates",
    "LOG_LEVEL": KNOB,
}
_GONE: Final = {
    "INTERRUPTION_QUEUE": "the stack makes a queue of its own, with the rules that fill it",
    "CLUSTER_CA_BUNDLE": "it is asked from EKS",
    "EKS_CONTROL_PLANE": "the version is asked from the API server",
    "ISOLATED_VPC": "docs/networking.md says what a network without a way out needs",
    "BATCH_MAX_DURATION": "pods are gathered from one invocation to the next",
    "BATCH_IDLE_DURATION": "pods are gathered from one invocation to the next",
}
_OWN_ROLES: Final = ("ASSUME_ROLE_ARN", "ASSUME_ROLE_DURATION")
_CLOSED: Final = frozenset({"Drift"})
"""Gates that stand open by now, and that nobody may name any more."""


def is_controller(value: Mapping[str, Any]) -> bool:
    """Whether *value* is the Deployment that Karpenter runs in."""
    return value.get("kind") == "Deployment" and any(IMAGE in str(one.get("image", "")) for one in _containers(value))


def knobs(value: Mapping[str, Any], remarks: Remarks) -> dict[str, str]:
    """Answer the stack's settings for a controller's environment; what else there is to know is told."""
    remarks.warn(("spec", "replicas"), "must be 0 while Joiner works: both would answer the same pods with nodes")
    found: dict[str, str] = {}
    for place, container in enumerate(_containers(value)):
        for number, one in enumerate(_listed(container.get("env"))):
            path = ("spec", "template", "spec", "containers", place, "env", number)
            found |= _knob(str(one.get("name")), one.get("value"), path, remarks)
    return found


def _knob(name: str, value: object, path: Path, remarks: Remarks) -> dict[str, str]:
    if name in _OWN_ROLES and value not in (None, ""):
        remarks.warn(path, f"{name} has no equivalent: functions have roles of their own, in the account of the nodes")
    if name in _GONE:
        remarks.changed(path, f"{name} is needed no more: {_GONE[name]}")
    if name not in _KNOBS or value in (None, ""):
        return {}
    text = _READ.get(name, str)(str(value))
    if not text:
        return {}
    remarks.changed(path, f'{name} is a knob of the stack: "{_KNOBS[name]}": "{text}" in cdk.json')
    return {_KNOBS[name]: text}


def _gates(text: str) -> str:
    """Answer the gates that can still be opened or closed.

    >>> _gates("Drift=true, NodeRepair=false")
    'NodeRepair=false'
    """
    some = (gate.strip() for gate in text.split(","))
    return ",".join(gate for gate in some if gate.partition("=")[0] not in _CLOSED)


_READ: Final[dict[str, Callable[[str], str]]] = {"FEATURE_GATES": _gates, "LOG_LEVEL": level_from}
"""What is written otherwise by now."""


def _containers(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    at: Any = value
    for key in ("spec", "template", "spec"):
        at = at.get(key) if isinstance(at, dict) else None
    return _listed(at.get("containers")) if isinstance(at, dict) else []


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
