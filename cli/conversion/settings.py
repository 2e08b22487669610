"""ConfigMaps karpenter-global-settings and config-logging -> knobs of the stack, as cdk.json has them."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
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
_ROLE: Final = "aws.assumeRoleARN"
_DRIFT: Final = "featureGates.driftEnabled"
_TAG: Final = "aws.tags."
"""How tags were written before v0.23: each has a key of its own."""
_LEVELS: Final = "logs are JSON in CloudWatch"


def knobs(root: Part) -> dict[str, str]:
    """Answer the stack's settings for a ConfigMap; what is of no use any more is told."""
    data = root.part("data") or Part({}, ("data",), root.remarks)
    found: dict[str, str] = {}
    for key in data.keys():  # noqa: SIM118 - no mapping
        path, remarks = data.at(key), root.remarks
        if isinstance(inner := data.raw(key), Mapping):
            remarks.refuse(path, f"is an object, and settings are texts: {_as_texts(key, inner)}")
            continue
        value = data.text(key)
        if key in _KNOBS and value:
            found[_KNOBS[key]] = value
            remarks.changed(path, f'is a knob of the stack: "{_KNOBS[key]}": "{value}" in cdk.json')
        elif level := _level(key, value):
            found.setdefault(KNOB, level)
            remarks.changed(path, f'is a knob of the stack: "{KNOB}": "{level}" in cdk.json; {_LEVELS}')
        elif key == "zap-logger-config" or key.startswith("loglevel."):
            remarks.warn(path, f"has no equivalent: {_LEVELS}")
        else:
            _no_knob(key, value, data)
    return found


def _as_texts(key: str, inner: Mapping[str, Any]) -> str:
    """Answer how *inner*, which stands under *key* as in the values of the chart, is written as texts."""
    if key == "aws.tags":
        return f"write aws.tags: '{json.dumps(dict(inner), default=str)}'"
    return "write " + ", ".join(f"{key}.{name}: {json.dumps(str(value))}" for name, value in inner.items())


def _no_knob(key: str, value: str, data: Part) -> None:
    """Tell what became of a setting that is none of the stack."""
    path, remarks = data.at(key), data.remarks
    if key in ("aws.defaultInstanceProfile", "aws.tags") or key.startswith(_TAG):
        remarks.changed(path, "is written into each EC2NodeClass that is made from an AWSNodeTemplate here")
    elif key in _REFUSED and data.text(_ROLE):
        remarks.refuse(path, f"has no equivalent: {_REFUSED[key]}")
    elif key in _REFUSED or key in _KNOBS:
        remarks.changed(path, "is needed no more: it says nothing")
    elif key == _DRIFT and value == "false":
        remarks.warn(path, f"kept nodes that had drifted: {_GONE[key]}")
    elif key in _GONE:
        remarks.changed(path, f"is needed no more: {_GONE[key]}")
    elif key == "aws.enableENILimitedPodDensity":
        _density(value, data)
    else:
        close = get_close_matches(key, [*_KNOBS, *_GONE], n=1)
        hint = f"did you mean {close[0]}? Correct or remove it" if close else "correct or remove it"
        remarks.refuse(path, f"is no setting that Karpenter ever had: {hint}")


def _level(key: str, value: str) -> str:
    """Answer how much functions are to tell; "" where *key* is about something else."""
    if key == "zap-logger-config":
        return level_in(value)
    return level_from(value) if key == "loglevel.controller" else ""


def defaults_in(root: Part, role: str) -> Defaults:
    """Answer what a ConfigMap says for all node templates."""
    data = root.part("data") or Part({}, ("data",), root.remarks)
    text = "" if isinstance(data.raw("aws.tags"), Mapping) else data.text("aws.tags")
    tags = {key.removeprefix(_TAG): data.text(key) for key in data.keys() if key.startswith(_TAG)}  # noqa: SIM118 - no mapping
    if text:
        tags |= _tags(text, data)
    return Defaults(role=role, profile=data.text("aws.defaultInstanceProfile"), tags=tags)


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
