"""ConfigMaps karpenter-global-settings and config-logging -> knobs of the stack, as cdk.json has them."""

import json
from typing import Any, Final

from cli.conversion.classes import Defaults
from cli.conversion.levels import KNOB, level_from, level_in
from cli.conversion.parts import Part

GLOBAL: Final = "karpenter-global-settings"
LOGGING: Final = "config-logging"
_KNOBS: Final = {
    "aws.clusterName": "joiner:cluster",
    "aws.clusterEndpoint": "joiner:kube-endpoint",
    "aws.vmMemoryOverheadPercent": "joiner:vm-memory-overhead-percent",
    "aws.reservedENIs": "joiner:reserved-enis",
}
_GONE: Final = {
    "batchMaxDuration": "pods are gathered from one invocation to the next",
    "batchIdleDuration": "pods are gathered from one invocation to the next",
    "featureGates.driftEnabled": (
        "drift is always on: a budget {nodes: '0', reasons: [Drifted]} in spec.disruption of a pool keeps its nodes"
    ),
    "aws.interruptionQueueName": "the stack makes a queue of its own, with the rules that fill it",
    "aws.enablePodENI": "types offer vpc.amazonaws.com/pod-eni wherever the machine can",
    "aws.isolatedVPC": "set joiner:subnets, joiner:security-groups, and joiner:price-list if no pricing answers",
    "aws.clusterCABundle": "it is asked from EKS",
    "aws.nodeNameConvention": "a node is called as its machine is: its subnet says whether by address or by id",
}
_REFUSED: Final = {
    "aws.assumeRoleARN": "the functions have roles of their own: deploy the stack into the account of the nodes",
    "aws.assumeRoleDuration": "the functions have roles of their own: remove it",
}
_LEVELS: Final = "logs are JSON in CloudWatch"


def knobs(root: Part) -> dict[str, str]:
    """Answer the stack's settings for a ConfigMap; what is of no use any more is told."""
    data = root.part("data") or Part({}, ("data",), root.remarks)
    found: dict[str, str] = {}
    for key in data.keys():  # noqa: SIM118 - no mapping
        value, path, remarks = data.text(key), data.at(key), root.remarks
        if key in _KNOBS:
            found[_KNOBS[key]] = value
            remarks.changed(path, f'is a knob of the stack: "{_KNOBS[key]}": "{value}" in cdk.json')
        elif key in _GONE:
            remarks.changed(path, f"is needed no more: {_GONE[key]}")
        elif key in _REFUSED:
            remarks.refuse(path, f"has no equivalent: {_REFUSED[key]}")
        elif key in ("aws.defaultInstanceProfile", "aws.tags"):
            remarks.changed(path, "is written into each EC2NodeClass that is made from an AWSNodeTemplate here")
        elif key == "aws.enableENILimitedPodDensity":
            _density(value, data)
        elif level := _level(key, value):
            found.setdefault(KNOB, level)
            remarks.changed(path, f'is a knob of the stack: "{KNOB}": "{level}" in cdk.json; {_LEVELS}')
        elif key == "zap-logger-config" or key.startswith("loglevel."):
            remarks.warn(path, f"has no equivalent: {_LEVELS}")
        else:
            remarks.refuse(path, "is no setting that Karpenter ever had: correct or remove it")
    return found


def _level(key: str, value: str) -> str:
    """Answer how much functions are to tell; "" where *key* is about something else."""
    if key == "zap-logger-config":
        return level_in(value)
    return level_from(value) if key == "loglevel.controller" else ""


def defaults_in(root: Part, role: str) -> Defaults:
    """Answer what a ConfigMap says for all node templates."""
    data = root.part("data") or Part({}, ("data",), root.remarks)
    tags = data.text("aws.tags")
    return Defaults(role=role, profile=data.text("aws.defaultInstanceProfile"), tags=_tags(tags, data) if tags else {})


def _tags(text: str, data: Part) -> dict[str, str]:
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        data.remarks.refuse(data.at("aws.tags"), 'is no JSON object of texts: write {"team": "a"}, for example')
        return {}
    return found


def _density(value: str, data: Part) -> None:
    path = data.at("aws.enableENILimitedPodDensity")
    if value == "false":
        data.remarks.refuse(
            path, "false let every node have 110 pods: write spec.kubelet.maxPods: 110 in each EC2NodeClass"
        )
    else:
        data.remarks.changed(path, "is needed no more: pods are limited by network interfaces unless maxPods says so")
