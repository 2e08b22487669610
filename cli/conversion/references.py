"""Which node class a pool names, in each of the older APIs, and the one that a Provisioner has inline."""

from typing import Any, Final

from cli.conversion.classes import Defaults, from_inline
from cli.conversion.parts import Part

Object = dict[str, Any]
GROUP: Final = "karpenter.k8s.aws"
CLASS: Final = "EC2NodeClass"
REF: Final = {"group": GROUP, "kind": CLASS}
TEMPLATE: Final = "AWSNodeTemplate"
MISTAKEN: Final = ("karpenter.sh", "karpenter.aws")
"""Groups that were written in place of the right one, which nobody read."""


def of_beta(spec: Part) -> Object:
    """Answer `nodeClassRef` for that of v1beta1."""
    old = spec.part("nodeClassRef", "name")
    if old is None or not old.text("name"):
        if old is not None or not spec.holds("nodeClassRef"):
            spec.remarks.refuse(spec.at("nodeClassRef", "name"), "is missing: name an EC2NodeClass")
        if old is not None:
            old.end(("apiVersion", "group", "kind"))
        return REF | {"name": ""}
    group = old.text("apiVersion").partition("/")[0] or old.text("group") or GROUP
    kind = old.text("kind") or CLASS
    if group not in (GROUP, *MISTAKEN) or kind not in (CLASS, TEMPLATE):
        spec.remarks.refuse(old.path, f"{group} {kind} is no node class of AWS: name an EC2NodeClass of {GROUP}")
    elif group != GROUP:
        spec.remarks.changed(
            old.path, f"has group {GROUP} now: {group} has no node classes, and only the name was read"
        )
    elif not old.has("group"):
        spec.remarks.changed(old.path, "has group and kind now, and no apiVersion")
    old.end()
    return REF | {"name": old.text("name")}


def of_provisioner(spec: Part, own: str) -> str:
    """Answer the name of the node class of a Provisioner; *own* if it has that inline."""
    reference, provider = spec.part("providerRef", "name"), spec.raw("provider")
    if reference is not None and provider is not None:
        spec.remarks.refuse(spec.at("provider"), "stands beside providerRef: remove one of them")
    if reference is None:
        if provider is None and not spec.holds("providerRef"):
            spec.remarks.refuse(
                spec.at("providerRef"), "is missing: write `providerRef: {name: ...}` of an AWSNodeTemplate"
            )
        return own
    name, kind = reference.text("name"), reference.text("kind") or TEMPLATE
    reference.raw("apiVersion")
    reference.end()
    if (not name and not reference.holds("name")) or kind not in (TEMPLATE, CLASS):
        spec.remarks.refuse(reference.path, "names no AWSNodeTemplate: write its name, and no other kind")
    spec.remarks.changed(reference.path, f"is nodeClassRef now, with group {GROUP} and kind {CLASS}")
    return name


def inline(spec: Part, name: str, defaults: Defaults) -> tuple[Object | None, dict[str, str]]:
    """Answer the node class, called *name*, for a Provisioner's own `provider`, and what that says of the cluster."""
    provider = spec.part("provider")
    if provider is None:
        return None, {}
    if not provider.keys():
        spec.remarks.refuse(
            provider.path,
            "is empty, and a node class needs subnets, security groups and a role: write `providerRef: {name: NAME}` "
            f"and an EC2NodeClass NAME of {GROUP}/v1 with amiSelectorTerms: [{{alias: al2023@latest}}], role, and "
            "subnetSelectorTerms and securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]",
        )
        return None, {}
    if {"name"} <= set(provider.keys()) <= {"name", "kind", "apiVersion"}:
        text = provider.text("name")
        spec.remarks.refuse(provider.path, f"only names one: write it as providerRef: {{name: {text}}}")
        return None, {}
    knobs = _cluster(provider)
    return from_inline(provider, name, defaults, knobs.get("joiner:cluster", "")), knobs


def _cluster(provider: Part) -> dict[str, str]:
    """Answer the stack's settings for what the first versions had to be told of their cluster."""
    cluster = provider.part("cluster", "name")
    if cluster is None:
        return {}
    found = {"joiner:cluster": cluster.text("name"), "joiner:kube-endpoint": cluster.text("endpoint")}
    if cluster.has("caBundle"):
        provider.remarks.changed(cluster.at("caBundle"), "is needed no more: it is asked from EKS")
    cluster.end()
    found = {knob: text for knob, text in found.items() if text}
    said = ", ".join(f'"{knob}": "{text}"' for knob, text in found.items())
    provider.remarks.changed(cluster.path, f"is said to the stack: {said} in cdk.json")
    return found
