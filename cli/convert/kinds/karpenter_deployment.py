"""Conversion of the environment of Karpenter's own Deployment to stack settings.

The Deployment itself must not run beside Joiner.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from cli.convert.fields.log_levels import LOG_LEVEL_SETTING, parse_zap_level
from cli.convert.reading.remarks import FieldPath, RemarkCollector

CONTROLLER_IMAGE: Final = "karpenter/controller"
_SETTING_BY_VARIABLE: Final = {
    "CLUSTER_NAME": "cluster",
    "CLUSTER_ENDPOINT": "kube-endpoint",
    "VM_MEMORY_OVERHEAD_PERCENT": "vm-memory-overhead-percent",
    "RESERVED_ENIS": "reserved-enis",
    "PREFERENCE_POLICY": "preference-policy",
    "MIN_VALUES_POLICY": "min-values-policy",
    "DISABLE_DRY_RUN": "disable-dry-run",
    "FEATURE_GATES": "feature-gates",
    "AWS_FEATURE_GATES": "aws-feature-gates",
    "LOG_LEVEL": LOG_LEVEL_SETTING,
}
_REASON_BY_OBSOLETE_VARIABLE: Final = {
    "INTERRUPTION_QUEUE": "the stack creates its own queue and EventBridge rules",
    "CLUSTER_CA_BUNDLE": "Joiner reads it from EKS",
    "EKS_CONTROL_PLANE": "Joiner reads the version from the API server",
    "ISOLATED_VPC": "docs/networking.md says what a network without a way out needs",
    "BATCH_MAX_DURATION": "pods are gathered from one invocation to the next",
    "BATCH_IDLE_DURATION": "pods are gathered from one invocation to the next",
}
_ASSUME_ROLE_VARIABLES: Final = ("ASSUME_ROLE_ARN", "ASSUME_ROLE_DURATION")
_REMOVED_GATES: Final = frozenset({"Drift"})
"""Feature gates that are always on by now, and that must not be set any more."""


def is_controller(value: Mapping[str, Any]) -> bool:
    """Return whether *value* is the Deployment of Karpenter's controller."""
    return value.get("kind") == "Deployment" and any(
        CONTROLLER_IMAGE in str(container.get("image", "")) for container in _list_containers(value)
    )


def convert_environment(value: Mapping[str, Any], remarks: RemarkCollector) -> dict[str, str]:
    """Return the stack settings for a controller's environment; add a remark for everything else of interest."""
    remarks.add_warning(("spec", "replicas"), "must be 0 while Joiner runs: both would launch nodes for the same pods")
    stack_settings: dict[str, str] = {}
    for container_index, container in enumerate(_list_containers(value)):
        for variable_index, variable in enumerate(_list_mappings(container.get("env"))):
            path = ("spec", "template", "spec", "containers", container_index, "env", variable_index)
            stack_settings |= _convert_variable(str(variable.get("name")), variable.get("value"), path, remarks)
    return stack_settings


def _convert_variable(name: str, value: object, path: FieldPath, remarks: RemarkCollector) -> dict[str, str]:
    if name in _ASSUME_ROLE_VARIABLES and value not in (None, ""):
        remarks.add_warning(
            path, f"{name} has no equivalent: the functions have their own IAM roles in the account of the nodes"
        )
    if name in _REASON_BY_OBSOLETE_VARIABLE:
        remarks.add_change(path, f"{name} no longer needed: {_REASON_BY_OBSOLETE_VARIABLE[name]}")
    if name not in _SETTING_BY_VARIABLE or value in (None, ""):
        return {}
    text = _CONVERTER_BY_VARIABLE.get(name, str)(str(value))
    if not text:
        return {}
    remarks.add_change(
        path, f"{name} is a stack setting now: {_SETTING_BY_VARIABLE[name]}: {text} in clusters/NAME.yaml"
    )
    return {_SETTING_BY_VARIABLE[name]: text}


def _filter_feature_gates(text: str) -> str:
    """Return the feature gates that still exist.

    >>> _filter_feature_gates("Drift=true, NodeRepair=false")
    'NodeRepair=false'
    """
    gates = (gate.strip() for gate in text.split(","))
    return ",".join(gate for gate in gates if gate.partition("=")[0] not in _REMOVED_GATES)


_CONVERTER_BY_VARIABLE: Final[dict[str, Callable[[str], str]]] = {
    "FEATURE_GATES": _filter_feature_gates,
    "LOG_LEVEL": parse_zap_level,
}
"""Variables with a value that is spelled differently now."""


def _list_containers(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    node: Any = value
    for key in ("spec", "template", "spec"):
        node = node.get(key) if isinstance(node, dict) else None
    return _list_mappings(node.get("containers")) if isinstance(node, dict) else []


def _list_mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
