"""Conversion of ConfigMaps karpenter-global-settings and config-logging to stack settings."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.fields.log_levels import LOG_LEVEL_SETTING, parse_zap_config, parse_zap_level
from cli.convert.kinds.node_classes import NodeClassDefaults
from cli.convert.reading.field_reader import MappingReader

GLOBAL_CONFIG_MAP: Final = "karpenter-global-settings"
LOGGING_CONFIG_MAP: Final = "config-logging"
_SETTING_BY_KEY: Final = {
    "aws.clusterName": "cluster",
    "aws.clusterEndpoint": "kube-endpoint",
    "aws.vmMemoryOverheadPercent": "vm-memory-overhead-percent",
    "aws.reservedENIs": "reserved-enis",
}
_REASON_BY_OBSOLETE_KEY: Final = {
    "batchMaxDuration": "pods are gathered from one invocation to the next",
    "batchIdleDuration": "pods are gathered from one invocation to the next",
    "featureGates.driftEnabled": (
        "drift is always on: a budget {nodes: '0', reasons: [Drifted]} in spec.disruption of a pool keeps its nodes"
    ),
    "aws.interruptionQueueName": "the stack creates its own queue and EventBridge rules",
    "aws.enablePodENI": "instance types that support it always offer vpc.amazonaws.com/pod-eni",
    "aws.isolatedVPC": "set the settings subnets, security-groups, and price-list if no pricing answers",
    "aws.clusterCABundle": "Joiner reads it from EKS",
    "aws.nodeNameConvention": "a node is named like its instance: the subnet decides between IP and resource name",
}
_REFUSED_KEYS: Final = {
    "aws.assumeRoleARN": "the functions have roles of their own: deploy the stack into the account of the nodes",
    "aws.assumeRoleDuration": "the functions have roles of their own: remove it",
}
_ASSUME_ROLE_KEY: Final = "aws.assumeRoleARN"
_DRIFT_KEY: Final = "featureGates.driftEnabled"
_TAG_PREFIX: Final = "aws.tags."
"""Prefix of the keys of tags before v0.23, one key per tag."""
_LOGS_NOTE: Final = "logs are JSON in CloudWatch"


def convert_config_map(root: MappingReader) -> dict[str, str]:
    """Return the stack settings for a ConfigMap; add a remark for each obsolete setting."""
    data = root.read_mapping("data") or MappingReader({}, ("data",), root.remarks)
    stack_settings: dict[str, str] = {}
    for key in data.list_keys():
        path, remarks = data.get_path(key), root.remarks
        if isinstance(nested_settings := data.read_raw(key), Mapping):
            remarks.add_refusal(
                path, f"is an object, but settings are strings: {_format_as_texts(key, nested_settings)}"
            )
            continue
        value = data.read_text(key)
        if key in _SETTING_BY_KEY and value:
            stack_settings[_SETTING_BY_KEY[key]] = value
            remarks.add_change(path, f"is a stack setting now: {_SETTING_BY_KEY[key]}: {value} in clusters/NAME.yaml")
        elif level := _parse_log_level(key, value):
            stack_settings.setdefault(LOG_LEVEL_SETTING, level)
            remarks.add_change(
                path, f"is a stack setting now: {LOG_LEVEL_SETTING}: {level} in clusters/NAME.yaml; {_LOGS_NOTE}"
            )
        elif key == "zap-logger-config" or key.startswith("loglevel."):
            remarks.add_warning(path, f"has no equivalent: {_LOGS_NOTE}")
        else:
            _remark_other_setting(key, value, data)
    return stack_settings


def _format_as_texts(key: str, nested_settings: Mapping[str, Any]) -> str:
    """Return *nested_settings*, the object in *key* as in the chart's values, as text settings."""
    if key == "aws.tags":
        return f"write aws.tags: '{json.dumps(dict(nested_settings), default=str)}'"
    return "write " + ", ".join(f"{key}.{name}: {json.dumps(str(value))}" for name, value in nested_settings.items())


def _remark_other_setting(key: str, value: str, data: MappingReader) -> None:
    """Add a remark on a setting that is not a stack setting."""
    path, remarks = data.get_path(key), data.remarks
    if key in ("aws.defaultInstanceProfile", "aws.tags") or key.startswith(_TAG_PREFIX):
        remarks.add_change(path, "moved to each EC2NodeClass converted from an AWSNodeTemplate")
    elif key in _REFUSED_KEYS and data.read_text(_ASSUME_ROLE_KEY):
        remarks.add_refusal(path, f"has no equivalent: {_REFUSED_KEYS[key]}")
    elif key in _REFUSED_KEYS or key in _SETTING_BY_KEY:
        remarks.add_change(path, "no longer needed: it is empty")
    elif key == _DRIFT_KEY and value == "false":
        remarks.add_warning(path, f"disabled drift: {_REASON_BY_OBSOLETE_KEY[key]}")
    elif key in _REASON_BY_OBSOLETE_KEY:
        remarks.add_change(path, f"no longer needed: {_REASON_BY_OBSOLETE_KEY[key]}")
    elif key == "aws.enableENILimitedPodDensity":
        _convert_pod_density(value, data)
    else:
        close = get_close_matches(key, [*_SETTING_BY_KEY, *_REASON_BY_OBSOLETE_KEY], n=1)
        hint = f"did you mean {close[0]}? Correct or remove it" if close else "correct or remove it"
        remarks.add_refusal(path, f"unknown setting: {hint}")


def _parse_log_level(key: str, value: str) -> str:
    """Return the functions' log level; "" if *key* is not about the log level."""
    if key == "zap-logger-config":
        return parse_zap_config(value)
    return parse_zap_level(value) if key == "loglevel.controller" else ""


def read_defaults(root: MappingReader, role: str) -> NodeClassDefaults:
    """Return the defaults for all node templates in a ConfigMap."""
    data = root.read_mapping("data") or MappingReader({}, ("data",), root.remarks)
    text = "" if isinstance(data.read_raw("aws.tags"), Mapping) else data.read_text("aws.tags")
    tags = {
        key.removeprefix(_TAG_PREFIX): data.read_text(key) for key in data.list_keys() if key.startswith(_TAG_PREFIX)
    }
    if text:
        tags |= _parse_tags(text, data)
    return NodeClassDefaults(role=role, profile=data.read_text("aws.defaultInstanceProfile"), tags=tags)


def _parse_tags(text: str, data: MappingReader) -> dict[str, str]:
    try:
        parsed_tags: Any = json.loads(text)
    except ValueError:
        parsed_tags = None
    if not isinstance(parsed_tags, dict) or not all(isinstance(value, str) for value in parsed_tags.values()):
        data.remarks.add_refusal(data.get_path("aws.tags"), 'must be a JSON object of strings, such as {"team": "a"}')
        return {}
    return parsed_tags


def _convert_pod_density(value: str, data: MappingReader) -> None:
    path = data.get_path("aws.enableENILimitedPodDensity")
    if value == "false":
        data.remarks.add_refusal(
            path, "false allowed 110 pods on every node: write spec.kubelet.maxPods: 110 in each EC2NodeClass"
        )
    else:
        data.remarks.add_change(
            path, "no longer needed: network interfaces limit the number of pods unless maxPods is set"
        )
