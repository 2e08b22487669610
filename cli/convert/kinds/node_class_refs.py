"""Conversion of node class references in the older APIs, and of a Provisioner's inline node class."""

from typing import Any, Final

from cli.convert.kinds.node_classes import NodeClassDefaults, convert_inline_provider
from cli.convert.reading.field_reader import MappingReader
from cli.convert.reading.missing_values import NODE_CLASS_NAME

JsonObject = dict[str, Any]
NODE_CLASS_GROUP: Final = "karpenter.k8s.aws"
NODE_CLASS_KIND: Final = "EC2NodeClass"
NODE_CLASS_REF: Final = {"group": NODE_CLASS_GROUP, "kind": NODE_CLASS_KIND}
NODE_TEMPLATE_KIND: Final = "AWSNodeTemplate"
MISTAKEN_GROUPS: Final = ("karpenter.sh", "karpenter.aws")
"""Wrong groups that were accepted because no controller read the group."""


def convert_beta_node_class_ref(spec: MappingReader) -> JsonObject:
    """Return `nodeClassRef` for that of v1beta1."""
    reference = spec.read_mapping("nodeClassRef", "name")
    if reference is None or not reference.read_text("name"):
        path = spec.get_path("nodeClassRef", "name")
        is_absent = reference is not None or not spec.is_set("nodeClassRef")
        if reference is not None:
            reference.refuse_unread_keys(("apiVersion", "group", "kind"))
        return NODE_CLASS_REF | {"name": spec.remarks.add_missing(path, NODE_CLASS_NAME) if is_absent else ""}
    group = reference.read_text("apiVersion").partition("/")[0] or reference.read_text("group") or NODE_CLASS_GROUP
    kind = reference.read_text("kind") or NODE_CLASS_KIND
    if group not in (NODE_CLASS_GROUP, *MISTAKEN_GROUPS) or kind not in (NODE_CLASS_KIND, NODE_TEMPLATE_KIND):
        spec.remarks.add_refusal(
            reference.path, f"{group} {kind} is not a node class of AWS: use an EC2NodeClass of {NODE_CLASS_GROUP}"
        )
    elif group != NODE_CLASS_GROUP:
        spec.remarks.add_change(reference.path, f"group changed to {NODE_CLASS_GROUP}: {group} has no node classes")
    elif not reference.has("group"):
        spec.remarks.add_change(reference.path, "apiVersion replaced with group and kind")
    reference.refuse_unread_keys()
    return NODE_CLASS_REF | {"name": reference.read_text("name")}


def convert_provider_ref(spec: MappingReader, inline_name: str) -> str:
    """Return the name of a Provisioner's node class; *inline_name* if its provider is inline."""
    reference, provider = spec.read_mapping("providerRef", "name"), spec.read_raw("provider")
    if reference is not None and provider is not None:
        spec.remarks.add_refusal(spec.get_path("provider"), "cannot be used with providerRef: remove one of the two")
    if reference is None:
        if provider is None and not spec.is_set("providerRef"):
            return spec.remarks.add_missing(spec.get_path("providerRef"), NODE_CLASS_NAME)
        return inline_name
    name, kind = reference.read_text("name"), reference.read_text("kind") or NODE_TEMPLATE_KIND
    reference.read_raw("apiVersion")
    reference.refuse_unread_keys()
    if (not name and not reference.is_set("name")) or kind not in (NODE_TEMPLATE_KIND, NODE_CLASS_KIND):
        spec.remarks.add_refusal(
            reference.path, "does not name an AWSNodeTemplate: write its name, without another kind"
        )
    spec.remarks.add_change(
        reference.path, f"renamed to nodeClassRef, with group {NODE_CLASS_GROUP} and kind {NODE_CLASS_KIND}"
    )
    return name


def convert_inline_fields(
    spec: MappingReader, name: str, defaults: NodeClassDefaults
) -> tuple[JsonObject | None, dict[str, str]]:
    """Return the node class *name* for a Provisioner's inline `provider`, and the stack settings of its cluster."""
    provider = spec.read_mapping("provider")
    if provider is None:
        return None, {}
    if not provider.list_keys():
        spec.remarks.add_refusal(
            provider.path,
            "is empty, but a node class needs subnets, security groups and a role: write `providerRef: {name: NAME}` "
            f"and an EC2NodeClass NAME of {NODE_CLASS_GROUP}/v1 with amiSelectorTerms: [{{alias: al2023@latest}}], "
            "role, and subnetSelectorTerms and securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]",
        )
        return None, {}
    if {"name"} <= set(provider.list_keys()) <= {"name", "kind", "apiVersion"}:
        text = provider.read_text("name")
        spec.remarks.add_refusal(provider.path, f"is only a reference: write it as providerRef: {{name: {text}}}")
        return None, {}
    stack_settings = _convert_cluster(provider)
    return convert_inline_provider(provider, name, defaults, stack_settings.get("cluster", "")), stack_settings


def _convert_cluster(provider: MappingReader) -> dict[str, str]:
    """Return the stack settings for the cluster fields that the first versions needed."""
    cluster = provider.read_mapping("cluster", "name")
    if cluster is None:
        return {}
    stack_settings = {
        "cluster": cluster.read_text("name"),
        "kube-endpoint": cluster.read_text("endpoint"),
    }
    if cluster.has("caBundle"):
        provider.remarks.add_change(cluster.get_path("caBundle"), "no longer needed: Joiner reads it from EKS")
    cluster.refuse_unread_keys()
    stack_settings = {setting: text for setting, text in stack_settings.items() if text}
    description = ", ".join(f"{setting}: {text}" for setting, text in stack_settings.items())
    provider.remarks.add_change(cluster.path, f"moved to the stack settings: {description} in clusters/NAME.yaml")
    return stack_settings
