"""Conversion of AWSNodeTemplate v1alpha1, inline providers and EC2NodeClass v1beta1 to EC2NodeClass v1."""

from typing import Any, Final

from cli.convert.fields.ami_families import AMI_FAMILIES, convert_ami_family
from cli.convert.fields.devices import convert_block_device, convert_metadata_options
from cli.convert.fields.metadata import convert_metadata
from cli.convert.fields.relocated_fields import (
    FIXES_AT_ROOT,
    FIXES_IN_NODE_CLASS,
    FIXES_IN_NODE_TEMPLATE,
    FIXES_IN_TERM,
)
from cli.convert.fields.selector_terms import (
    IMAGE_ID_PATTERN,
    SECURITY_GROUP_ID_PATTERN,
    SUBNET_ID_PATTERN,
    check_image_name,
    convert_selector,
    read_selector,
)
from cli.convert.reading.field_reader import MappingReader, choose_fix
from cli.convert.reading.missing_values import DISCOVERY_TAG, NODE_ROLE, describe_missing_value
from cli.convert.validation.semantic_checks import parse_iam_name

JsonObject = dict[str, Any]
API_VERSION: Final = "karpenter.k8s.aws/v1"
_RESERVED_TAGS: Final = ("karpenter.sh/managed-by", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim")
_MORE_RESERVED_TAGS: Final = ("karpenter.sh/provisioner-name", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name")
_SUBNET_FIELDS: Final = ("subnetSelector", "subnetSelectorTerms")
_SECURITY_GROUP_FIELDS: Final = ("securityGroupSelector", "securityGroupSelectorTerms")
_UBUNTU_ROOT_DEVICE: Final = {
    "deviceName": "/dev/sda1",
    "rootVolume": True,
    "ebs": {"encrypted": True, "volumeType": "gp3", "volumeSize": "20Gi"},
}
"""The default root device of Ubuntu images."""
_AMI_FIX: Final = "write one like ami-0123456789abcdef0"
_REPLACED_FIELDS: Final = (
    "securityGroupSelector, amiFamily, amiSelector, instanceProfile, blockDeviceMappings, userData"
)


class NodeClassDefaults:
    """Defaults of node classes, from ConfigMap karpenter-global-settings and from the command line."""

    def __init__(self, *, role: str = "", profile: str = "", tags: dict[str, str] | None = None) -> None:
        """Set the defaults; all are empty unless given."""
        self.role, self.profile, self.tags = role, profile, tags or {}
        self.node_class_names: frozenset[str] = frozenset()
        """Names of the node classes that exist besides those built for inline providers."""


def convert_node_template(root: MappingReader, defaults: NodeClassDefaults) -> JsonObject:
    """Return the EC2NodeClass for an AWSNodeTemplate."""
    converted_metadata, spec = convert_metadata(root), _read_spec(root)
    _finish_root(root)
    return _build_node_class(converted_metadata, {} if spec is None else _convert_alpha_spec(spec, defaults))


def convert_inline_provider(
    provider: MappingReader, name: str, defaults: NodeClassDefaults, cluster: str = ""
) -> JsonObject:
    """Return an EC2NodeClass called *name* for a Provisioner's inline `provider`, for *cluster* if that is known."""
    provider.remarks.add_change(provider.path, f"moved to a separate EC2NodeClass, {name}")
    return _build_node_class({"name": name}, _convert_alpha_spec(provider, defaults, cluster))


def convert_beta_node_class(root: MappingReader) -> JsonObject:
    """Return the EC2NodeClass v1 for one of v1beta1."""
    converted_metadata, spec = convert_metadata(root), _read_spec(root)
    _finish_root(root)
    return _build_node_class(converted_metadata, {} if spec is None else _convert_beta_spec(spec))


def _convert_beta_spec(spec: MappingReader) -> JsonObject:
    converted: JsonObject = {
        "amiFamily": "",
        "amiSelectorTerms": [_convert_image_term(reader) for reader in spec.read_mappings("amiSelectorTerms")],
        "subnetSelectorTerms": [_convert_term(reader, ("id",)) for reader in spec.read_mappings("subnetSelectorTerms")],
        "securityGroupSelectorTerms": [
            _convert_term(reader, ("id", "name")) for reader in spec.read_mappings("securityGroupSelectorTerms")
        ],
    }
    family = spec.read_text("amiFamily")
    if not family:
        spec.remarks.add_refusal(spec.get_path("amiFamily"), f"is missing: write one of {', '.join(AMI_FAMILIES)}")
    else:
        convert_ami_family(spec, family, converted)
    converted |= _convert_identity(spec, NodeClassDefaults())
    for field in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
        _require_terms(converted, field, spec)
    if (policy := spec.read_text("instanceStorePolicy")) == "RAID0":
        converted["instanceStorePolicy"] = policy
    elif policy:
        spec.remarks.add_refusal(spec.get_path("instanceStorePolicy"), f"is {policy!r}: write RAID0, or remove it")
    if (is_public := spec.read_boolean("associatePublicIPAddress")) is not None:
        converted["associatePublicIPAddress"] = is_public
    converted |= _convert_common_fields(spec, {})
    spec.refuse_unread_keys(fixes=FIXES_IN_NODE_CLASS)
    return converted


def _build_node_class(converted_metadata: JsonObject, spec: JsonObject) -> JsonObject:
    set_fields = {key: value for key, value in spec.items() if value not in ("", [], {}, None)}
    return {"apiVersion": API_VERSION, "kind": "EC2NodeClass", "metadata": converted_metadata, "spec": set_fields}


def _read_spec(root: MappingReader) -> MappingReader | None:
    spec = root.read_mapping("spec")
    if spec is None:
        root.remarks.add_refusal(("spec",), "is missing: write the subnets, the security groups and the role")
    return spec


def _finish_root(root: MappingReader) -> None:
    for key in ("apiVersion", "kind", "status"):
        root.read_raw(key)
    root.refuse_unread_keys(fixes=FIXES_AT_ROOT)


def _convert_alpha_spec(spec: MappingReader, defaults: NodeClassDefaults, cluster: str = "") -> JsonObject:
    converted: JsonObject = {
        "amiFamily": "",
        "amiSelectorTerms": [],
        "subnetSelectorTerms": [],
        "securityGroupSelectorTerms": [],
    }
    for key in ("apiVersion", "kind"):
        spec.read_raw(key)
    if spec.has("launchTemplate") or spec.has("launchTemplateName"):
        field = "launchTemplate" if spec.has("launchTemplate") else "launchTemplateName"
        message = f"launch templates are no longer supported: write their settings here ({_REPLACED_FIELDS})"
        spec.remarks.add_refusal(spec.get_path(field), message)
    images = read_selector(spec, "amiSelector", IMAGE_ID_PATTERN)
    if images is not None:
        converted["amiSelectorTerms"] = convert_selector(images, IMAGE_ID_PATTERN)
    family = spec.read_text("amiFamily")
    if not family:
        family = "AL2"
        message = "set to AL2, the default of v1alpha1; EKS has no AL2 images from version 1.33 on"
        spec.remarks.add_change(spec.get_path("amiFamily"), message)
    convert_ami_family(spec, family, converted)
    for old_field, field, ids in (
        ("subnetSelector", "subnetSelectorTerms", SUBNET_ID_PATTERN),
        ("securityGroupSelector", "securityGroupSelectorTerms", SECURITY_GROUP_ID_PATTERN),
    ):
        selector = read_selector(spec, old_field, ids)
        converted[field] = [] if selector is None else convert_selector(selector, ids)
        if selector is not None:
            spec.remarks.add_change(spec.get_path(old_field), f"is {field} now")
        elif cluster and not spec.is_set(old_field):
            converted[field] = [{"tags": {f"kubernetes.io/cluster/{cluster}": "*"}}]
            spec.remarks.add_change(spec.get_path(old_field), "set to the former default: the cluster's tag")
        _require_terms(converted, field, spec, old_field)
    converted |= _convert_identity(spec, defaults)
    converted |= _convert_common_fields(spec, defaults.tags)
    spec.refuse_unread_keys(fixes=FIXES_IN_NODE_TEMPLATE)
    return converted


def _require_terms(converted: JsonObject, field: str, spec: MappingReader, old_field: str = "") -> None:
    equivalent_fields = _SUBNET_FIELDS if field.startswith("subnet") else _SECURITY_GROUP_FIELDS
    if not converted[field] and not any(spec.is_set(equivalent_field) for equivalent_field in equivalent_fields):
        tag_value = spec.remarks.add_missing(spec.get_path(old_field or field), DISCOVERY_TAG)
        converted[field] = [{"tags": {"karpenter.sh/discovery": tag_value}}]


def _convert_identity(spec: MappingReader, defaults: NodeClassDefaults) -> JsonObject:
    """Return the role or the instance profile."""
    role, profile = (_read_iam_name(spec, field) for field in ("role", "instanceProfile"))
    if role and profile:
        spec.remarks.add_refusal(spec.get_path("role"), "cannot be used with instanceProfile: remove one of the two")
    if role or profile:
        return {"role": role, "instanceProfile": profile}
    if defaults.profile:
        spec.remarks.add_change(spec.get_path("instanceProfile"), "set from aws.defaultInstanceProfile")
        return {"instanceProfile": defaults.profile}
    if defaults.role:
        return {"role": defaults.role}
    spec.remarks.add_warning(spec.get_path("role"), f"{describe_missing_value(NODE_ROLE)}, or add --role")
    return {"role": NODE_ROLE}


def _read_iam_name(spec: MappingReader, field: str) -> str:
    text = spec.read_text(field)
    if name := parse_iam_name(text):
        spec.remarks.add_refusal(spec.get_path(field), f"must be a name, not an ARN: write {name}")
    return text


def _convert_common_fields(spec: MappingReader, default_tags: dict[str, str]) -> JsonObject:
    """Return the fields that both older APIs spell the same way."""
    converted: JsonObject = {name: spec.read_text(name) for name in ("userData", "context")}
    own_tags = spec.read_text_map("tags")
    for key in own_tags:
        if key in (*_RESERVED_TAGS, *_MORE_RESERVED_TAGS) or key.startswith("kubernetes.io/cluster/"):
            spec.remarks.add_refusal(spec.get_path("tags", key), "is reserved for the autoscaler: remove it")
    if default_tags:
        spec.remarks.add_change(spec.get_path("tags"), "merged with aws.tags")
    converted["tags"] = default_tags | own_tags
    if (is_detailed := spec.read_boolean("detailedMonitoring")) is not None:
        converted["detailedMonitoring"] = is_detailed
    converted["metadataOptions"] = convert_metadata_options(spec)
    converted["blockDeviceMappings"] = [
        convert_block_device(device_reader) for device_reader in spec.read_mappings("blockDeviceMappings")
    ]
    if spec.read_text("amiFamily") == "Ubuntu" and not converted["blockDeviceMappings"]:
        converted["blockDeviceMappings"] = [_UBUNTU_ROOT_DEVICE]
        spec.remarks.add_change(spec.get_path("blockDeviceMappings"), "set to the former default for Ubuntu: /dev/sda1")
    return converted


def _convert_term(reader: MappingReader, fields: tuple[str, ...]) -> JsonObject:
    term: JsonObject = {name: text for name in fields if (text := reader.read_text(name))}
    if "," in term.get("id", ""):
        examples = ", ".join(f"{{id: {part.strip()}}}" for part in term["id"].split(","))
        reader.remarks.add_refusal(reader.get_path("id"), f"has several IDs: write one term for each:  [{examples}]")
    if tags := reader.read_text_map("tags"):
        term["tags"] = tags
    reader.refuse_unread_keys(fixes=FIXES_IN_TERM)
    if not term and {*fields, "tags"}.issuperset(reader.list_keys()):
        reader.remarks.add_refusal(reader.path, f"is empty: write {', '.join(('tags', *fields))}")
    return term


def _convert_image_term(reader: MappingReader) -> JsonObject:
    term = _convert_term(reader, ("id", "name", "owner"))
    check_image_name(str(term.get("name", "")), reader, "name")
    if "id" in term and "," not in term["id"] and not IMAGE_ID_PATTERN.fullmatch(str(term["id"])):
        reader.remarks.add_refusal(
            reader.get_path("id"), f"{term['id']!r} is not an image ID: {choose_fix(term['id'], _AMI_FIX)}"
        )
    return term
