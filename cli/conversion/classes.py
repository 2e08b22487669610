"""AWSNodeTemplate v1alpha1, a Provisioner's inline provider and EC2NodeClass v1beta1 -> EC2NodeClass v1."""

from typing import Any, Final

from cli.conversion.beyond import name_in
from cli.conversion.devices import device, metadata_options
from cli.conversion.elsewhere import AT_ROOT, IN_CLASS, IN_TEMPLATE_CLASS, IN_TERM
from cli.conversion.families import FAMILIES, choose
from cli.conversion.metadata import metadata
from cli.conversion.parts import Part, remedy
from cli.conversion.selectors import GROUP, IMAGE, SUBNET, check_name, selected, terms

Object = dict[str, Any]
API: Final = "karpenter.k8s.aws/v1"
ROLE: Final = "${KARPENTER_NODE_ROLE}"
"""Stands where a role has to be written."""
_OURS: Final = ("karpenter.sh/managed-by", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim")
_OURS_TOO: Final = ("karpenter.sh/provisioner-name", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name")
_SUBNETS: Final = ("subnetSelector", "subnetSelectorTerms")
_GROUPS: Final = ("securityGroupSelector", "securityGroupSelectorTerms")
_UBUNTU_ROOT: Final = {
    "deviceName": "/dev/sda1",
    "rootVolume": True,
    "ebs": {"encrypted": True, "volumeType": "gp3", "volumeSize": "20Gi"},
}
"""What images of Ubuntu had, where nobody said."""
_AMI: Final = "write one like ami-0123456789abcdef0"
_EXCLUDED: Final = "securityGroupSelector, amiFamily, amiSelector, instanceProfile, blockDeviceMappings, userData"


class Defaults:
    """What ConfigMap karpenter-global-settings said for all node templates, and what the command line does."""

    def __init__(self, *, role: str = "", profile: str = "", tags: dict[str, str] | None = None) -> None:
        """Nothing, unless it is said."""
        self.role, self.profile, self.tags = role, profile, tags or {}
        self.taken: frozenset[str] = frozenset()
        """Names of node classes that stand beside those that are made for inline providers."""


def from_template(root: Part, defaults: Defaults) -> Object:
    """Answer the EC2NodeClass for an AWSNodeTemplate."""
    meta, spec = metadata(root), _spec_of(root)
    _end(root)
    return _made(meta, {} if spec is None else _alpha(spec, defaults))


def from_inline(provider: Part, name: str, defaults: Defaults, cluster: str = "") -> Object:
    """Answer an EC2NodeClass called *name* for a Provisioner's own `provider`, of *cluster* if that is said."""
    provider.remarks.changed(provider.path, f"is an EC2NodeClass of its own now, {name}")
    return _made({"name": name}, _alpha(provider, defaults, cluster))


def from_beta(root: Part) -> Object:
    """Answer EC2NodeClass v1 for that of v1beta1."""
    meta, spec = metadata(root), _spec_of(root)
    _end(root)
    return _made(meta, {} if spec is None else _beta(spec))


def _beta(spec: Part) -> Object:
    new: Object = {
        "amiFamily": "",
        "amiSelectorTerms": [_image_term(one) for one in spec.parts("amiSelectorTerms")],
        "subnetSelectorTerms": [_term(one, ("id",)) for one in spec.parts("subnetSelectorTerms")],
        "securityGroupSelectorTerms": [_term(one, ("id", "name")) for one in spec.parts("securityGroupSelectorTerms")],
    }
    family = spec.text("amiFamily")
    if not family:
        spec.remarks.refuse(spec.at("amiFamily"), f"is missing: write one of {', '.join(FAMILIES)}")
    else:
        choose(spec, family, new)
    new |= _identity(spec, Defaults())
    for field in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
        _need(new, field, spec)
    if (policy := spec.text("instanceStorePolicy")) == "RAID0":
        new["instanceStorePolicy"] = policy
    elif policy:
        spec.remarks.refuse(spec.at("instanceStorePolicy"), f"is {policy!r}: write RAID0, or remove it")
    if (is_public := spec.flag("associatePublicIPAddress")) is not None:
        new["associatePublicIPAddress"] = is_public
    new |= _machine(spec, {})
    spec.end(homes=IN_CLASS)
    return new


def _made(meta: Object, spec: Object) -> Object:
    kept = {key: value for key, value in spec.items() if value not in ("", [], {}, None)}
    return {"apiVersion": API, "kind": "EC2NodeClass", "metadata": meta, "spec": kept}


def _spec_of(root: Part) -> Part | None:
    spec = root.part("spec")
    if spec is None:
        root.remarks.refuse(("spec",), "is missing: write which subnets and security groups, and which role")
    return spec


def _end(root: Part) -> None:
    for key in ("apiVersion", "kind", "status"):
        root.raw(key)
    root.end(homes=AT_ROOT)


def _alpha(spec: Part, defaults: Defaults, cluster: str = "") -> Object:
    new: Object = {"amiFamily": "", "amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []}
    for key in ("apiVersion", "kind"):
        spec.raw(key)
    if spec.has("launchTemplate") or spec.has("launchTemplateName"):
        field = "launchTemplate" if spec.has("launchTemplate") else "launchTemplateName"
        spec.remarks.refuse(
            spec.at(field), f"nobody's own launch template can be used any more: write what it says here ({_EXCLUDED})"
        )
    images = selected(spec, "amiSelector", IMAGE)
    if images is not None:
        new["amiSelectorTerms"] = terms(images, IMAGE)
    family = spec.text("amiFamily")
    if not family:
        family = "AL2"
        spec.remarks.changed(spec.at("amiFamily"), "was AL2 where nobody said; EKS has no AL2 from 1.33 on")
    choose(spec, family, new)
    for old, field, ids in (
        ("subnetSelector", "subnetSelectorTerms", SUBNET),
        ("securityGroupSelector", "securityGroupSelectorTerms", GROUP),
    ):
        selector = selected(spec, old, ids)
        new[field] = [] if selector is None else terms(selector, ids)
        if selector is not None:
            spec.remarks.changed(spec.at(old), f"is {field} now")
        elif cluster and not spec.holds(old):
            new[field] = [{"tags": {f"kubernetes.io/cluster/{cluster}": "*"}}]
            spec.remarks.changed(spec.at(old), "those with the cluster's tag are written out: they were the default")
        _need(new, field, spec, old)
    new |= _identity(spec, defaults)
    new |= _machine(spec, defaults.tags)
    spec.end(homes=IN_TEMPLATE_CLASS)
    return new


def _need(new: Object, field: str, spec: Part, old: str = "") -> None:
    there, tags = old or field, "karpenter.sh/discovery: CLUSTER"
    others = _SUBNETS if field.startswith("subnet") else _GROUPS
    if not new[field] and not any(spec.holds(one) for one in others):
        example = f"{old}: {{{tags}}}" if old else f"{field}: [{{tags: {{{tags}}}}}]"
        spec.remarks.refuse(spec.at(there), f"is missing, so nothing says which: write {example}")


def _identity(spec: Part, defaults: Defaults) -> Object:
    """Answer role or instance profile."""
    role, profile = (_name_of(spec, field) for field in ("role", "instanceProfile"))
    if role and profile:
        spec.remarks.refuse(spec.at("role"), "stands beside instanceProfile: remove one of them")
    if role or profile:
        return {"role": role, "instanceProfile": profile}
    if defaults.profile:
        spec.remarks.changed(spec.at("instanceProfile"), "is written out: it came from aws.defaultInstanceProfile")
        return {"instanceProfile": defaults.profile}
    if defaults.role:
        return {"role": defaults.role}
    spec.remarks.warn(spec.at("role"), f"is missing: replace {ROLE} by the name of your nodes' role, or give --role")
    return {"role": ROLE}


def _name_of(spec: Part, field: str) -> str:
    text = spec.text(field)
    if name := name_in(text):
        spec.remarks.refuse(spec.at(field), f"is an ARN, and a name is asked for: write {name}")
    return text


def _machine(spec: Part, defaults: dict[str, str]) -> Object:
    """Answer what both older APIs say in the same way."""
    new: Object = {name: spec.text(name) for name in ("userData", "context")}
    own = spec.table("tags")
    for key in own:
        if key in (*_OURS, *_OURS_TOO) or key.startswith("kubernetes.io/cluster/"):
            spec.remarks.refuse(spec.at("tags", key), "is written by the autoscaler itself: remove it")
    if defaults:
        spec.remarks.changed(spec.at("tags"), "has those of aws.tags, too")
    new["tags"] = defaults | own
    if (detailed := spec.flag("detailedMonitoring")) is not None:
        new["detailedMonitoring"] = detailed
    new["metadataOptions"] = metadata_options(spec)
    new["blockDeviceMappings"] = [device(one) for one in spec.parts("blockDeviceMappings")]
    if spec.text("amiFamily") == "Ubuntu" and not new["blockDeviceMappings"]:
        new["blockDeviceMappings"] = [_UBUNTU_ROOT]
        spec.remarks.changed(spec.at("blockDeviceMappings"), "/dev/sda1 is written out: it was the default of Ubuntu")
    return new


def _term(one: Part, fields: tuple[str, ...]) -> Object:
    new: Object = {name: text for name in fields if (text := one.text(name))}
    if "," in new.get("id", ""):
        some = ", ".join(f"{{id: {part.strip()}}}" for part in new["id"].split(","))
        one.remarks.refuse(one.at("id"), f"is several with commas: write a term for each: [{some}]")
    if tags := one.table("tags"):
        new["tags"] = tags
    one.end(homes=IN_TERM)
    if not new and {*fields, "tags"}.issuperset(one.keys()):
        one.remarks.refuse(one.path, f"is empty: write {', '.join(('tags', *fields))}")
    return new


def _image_term(one: Part) -> Object:
    new = _term(one, ("id", "name", "owner"))
    check_name(str(new.get("name", "")), one, "name")
    if "id" in new and "," not in new["id"] and not IMAGE.fullmatch(str(new["id"])):
        one.remarks.refuse(one.at("id"), f"{new['id']!r} is no id of an image: {remedy(new['id'], _AMI)}")
    return new
