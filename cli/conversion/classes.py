"""AWSNodeTemplate v1alpha1, a Provisioner's inline provider and EC2NodeClass v1beta1 -> EC2NodeClass v1."""

from typing import Any, Final

from cli.conversion.metadata import metadata
from cli.conversion.parts import Part
from cli.conversion.selectors import GROUP, IMAGE, SUBNET, check_name, terms
from shared.model.units import parse_quantity

Object = dict[str, Any]
API: Final = "karpenter.k8s.aws/v1"
ROLE: Final = "${KARPENTER_NODE_ROLE}"
"""Stands where a role has to be written."""
ALIASES: Final = {
    "AL2": "al2@latest",
    "AL2023": "al2023@latest",
    "Bottlerocket": "bottlerocket@latest",
    "Windows2019": "windows2019@latest",
    "Windows2022": "windows2022@latest",
}
_FAMILIES: Final = (*ALIASES, "Custom")
_METADATA: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
"""Defaults of v1alpha1 and v1beta1; v1 has a hop limit of 1."""
_OURS: Final = ("karpenter.sh/managed-by", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim")
_OURS_TOO: Final = ("karpenter.sh/provisioner-name", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name")
_TEXTS: Final = ("kmsKeyID", "snapshotID", "volumeType")
_NUMBERS: Final = ("iops", "throughput", "volumeInitializationRate")
_EXCLUDED: Final = "securityGroupSelector, amiFamily, amiSelector, instanceProfile, blockDeviceMappings, userData"


class Defaults:
    """What ConfigMap karpenter-global-settings said for all node templates, and what the command line does."""

    def __init__(self, *, role: str = "", profile: str = "", tags: dict[str, str] | None = None) -> None:
        """Nothing, unless it is said."""
        self.role, self.profile, self.tags = role, profile, tags or {}


def from_template(root: Part, defaults: Defaults) -> Object:
    """Answer the EC2NodeClass for an AWSNodeTemplate."""
    meta, spec = metadata(root), _spec_of(root)
    _end(root)
    return _made(meta, _alpha(spec, defaults))


def from_inline(provider: Part, name: str, defaults: Defaults) -> Object:
    """Answer an EC2NodeClass called *name* for a Provisioner's own `provider`."""
    provider.remarks.changed(provider.path, f"is an EC2NodeClass of its own now, {name}")
    for key in ("apiVersion", "kind"):
        provider.raw(key)
    return _made({"name": name}, _alpha(provider, defaults))


def from_beta(root: Part) -> Object:
    """Answer EC2NodeClass v1 for that of v1beta1."""
    meta, spec = metadata(root), _spec_of(root)
    new: Object = {
        "amiFamily": "",
        "amiSelectorTerms": [_image_term(one) for one in spec.parts("amiSelectorTerms")],
        "subnetSelectorTerms": [_term(one, ("id",)) for one in spec.parts("subnetSelectorTerms")],
        "securityGroupSelectorTerms": [_term(one, ("id", "name")) for one in spec.parts("securityGroupSelectorTerms")],
    }
    family = spec.text("amiFamily")
    if not family:
        spec.remarks.refuse(spec.at("amiFamily"), f"is missing: write one of {', '.join(_FAMILIES)}")
    else:
        _image(spec, family, new)
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
    spec.end()
    _end(root)
    return _made(meta, new)


def _made(meta: Object, spec: Object) -> Object:
    kept = {key: value for key, value in spec.items() if value not in ("", [], {}, None)}
    return {"apiVersion": API, "kind": "EC2NodeClass", "metadata": meta, "spec": kept}


def _spec_of(root: Part) -> Part:
    spec = root.part("spec")
    if spec is None:
        root.remarks.refuse(("spec",), "is missing: write subnetSelectorTerms, securityGroupSelectorTerms, role")
        return Part({}, ("spec",), root.remarks)
    return spec


def _end(root: Part) -> None:
    for key in ("apiVersion", "kind", "status"):
        root.raw(key)
    root.end()


def _alpha(spec: Part, defaults: Defaults) -> Object:
    new: Object = {"amiFamily": "", "amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []}
    if spec.has("launchTemplate") or spec.has("launchTemplateName"):
        field = "launchTemplate" if spec.has("launchTemplate") else "launchTemplateName"
        spec.remarks.refuse(
            spec.at(field), f"nobody's own launch template can be used any more: write what it says here ({_EXCLUDED})"
        )
    images = spec.part("amiSelector")
    if images is not None:
        new["amiSelectorTerms"] = terms(images, IMAGE)
    family = spec.text("amiFamily")
    if not family:
        family = "AL2"
        spec.remarks.changed(spec.at("amiFamily"), "was AL2 where nobody said; EKS has no AL2 from 1.33 on")
    _image(spec, family, new)
    for old, field, ids in (
        ("subnetSelector", "subnetSelectorTerms", SUBNET),
        ("securityGroupSelector", "securityGroupSelectorTerms", GROUP),
    ):
        selector = spec.part(old)
        new[field] = [] if selector is None else terms(selector, ids)
        if selector is not None:
            spec.remarks.changed(spec.at(old), f"is {field} now")
        _need(new, field, spec, old)
    new |= _identity(spec, defaults)
    new |= _machine(spec, defaults.tags)
    spec.end()
    return new


def _need(new: Object, field: str, spec: Part, old: str = "") -> None:
    if not new[field]:
        example = "{tags: {karpenter.sh/discovery: CLUSTER}}"
        spec.remarks.refuse(spec.at(old or field), f"is missing, so nothing says which: write {field}: [{example}]")


def _image(spec: Part, family: str, new: Object) -> None:
    """Write family and terms: an alias where nobody chose images."""
    path = spec.at("amiFamily")
    if family == "Ubuntu":
        spec.remarks.refuse(path, "no family Ubuntu is left: write Custom, amiSelectorTerms and a userData of your own")
    elif family not in _FAMILIES:
        spec.remarks.refuse(path, f"is {family!r}: write one of {', '.join(_FAMILIES)}")
    elif new["amiSelectorTerms"]:
        new["amiFamily"] = family
    elif family == "Custom":
        spec.remarks.refuse(spec.at("amiSelectorTerms"), "is missing: Custom has no images of its own: name some")
    else:
        new["amiSelectorTerms"] = [{"alias": ALIASES[family]}]
        advice = "; al2023@latest is its successor, which also takes other user data" if family == "AL2" else ""
        spec.remarks.changed(path, f"{family} without chosen images is the alias {ALIASES[family]} now{advice}")


def _identity(spec: Part, defaults: Defaults) -> Object:
    """Answer role or instance profile."""
    role, profile = spec.text("role"), spec.text("instanceProfile")
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
    new["metadataOptions"] = _metadata_options(spec)
    new["blockDeviceMappings"] = [_device(one) for one in spec.parts("blockDeviceMappings")]
    return new


def _metadata_options(spec: Part) -> Object:
    old, new = spec.part("metadataOptions"), dict(_METADATA)
    if old is not None:
        for name in ("httpEndpoint", "httpProtocolIPv6", "httpTokens"):
            if old.has(name):
                new[name] = old.text(name)
        hops = old.number("httpPutResponseHopLimit")
        new["httpPutResponseHopLimit"] = 2 if hops is None else hops
        old.end()
    if old is None or not old.has("httpPutResponseHopLimit"):
        path = spec.at("metadataOptions", "httpPutResponseHopLimit")
        spec.remarks.changed(path, "2 is written out: it was the default, and is 1 in v1")
    return new


def _device(one: Part) -> Object:
    new: Object = {"deviceName": one.text("deviceName")}
    if (is_root := one.flag("rootVolume")) is not None:
        new["rootVolume"] = is_root
    old = one.part("ebs")
    if old is None:
        one.remarks.refuse(one.at("ebs"), "is missing: write volumeSize and volumeType")
        old = Part({}, one.at("ebs"), one.remarks)
    ebs: Object = {name: flag for name in ("deleteOnTermination", "encrypted") if (flag := old.flag(name)) is not None}
    ebs |= {name: number for name in _NUMBERS if (number := old.number(name)) is not None}
    ebs |= {name: text for name in _TEXTS if (text := old.text(name))}
    if old.has("volumeSize"):
        ebs["volumeSize"] = _size(old)
    old.end()
    one.end()
    return new | {"ebs": ebs}


def _size(ebs: Part) -> str:
    value = ebs.raw("volumeSize")
    try:
        amount = parse_quantity(str(value))
    except ValueError:
        ebs.remarks.refuse(ebs.at("volumeSize"), f"is {value!r}: write an amount, as 100Gi")
        return ""
    if amount < 1 << 30:
        ebs.remarks.refuse(ebs.at("volumeSize"), f"is {value} bytes, less than 1Gi: write {value}Gi, if that is meant")
    return str(value)


def _term(one: Part, fields: tuple[str, ...]) -> Object:
    new: Object = {name: text for name in fields if (text := one.text(name))}
    if tags := one.table("tags"):
        new["tags"] = tags
    one.end()
    if not new:
        one.remarks.refuse(one.path, f"is empty: write {', '.join(('tags', *fields))}")
    return new


def _image_term(one: Part) -> Object:
    new = _term(one, ("id", "name", "owner"))
    check_name(str(new.get("name", "")), one, "name")
    if "id" in new and not IMAGE.fullmatch(str(new["id"])):
        one.remarks.refuse(one.at("id"), f"{new['id']!r} is no id of an image: write one like ami-0123456789abcdef0")
    return new
