"""Provisioner v1alpha5, NodePool and NodeClaim v1beta1 -> NodePool and NodeClaim v1."""

from typing import Any, Final

import msgspec

from cli.conversion.classes import Defaults, from_inline
from cli.conversion.disruption import duration, expiry, of_beta, of_provisioner
from cli.conversion.elsewhere import IN_POOL, IN_PROVISIONER, IN_TEMPLATE
from cli.conversion.kubelets import kubelet
from cli.conversion.metadata import annotations, metadata
from cli.conversion.needs import CHOOSES, constrains, labels_and_requirements, limits, requirements, taints
from cli.conversion.parts import Part
from cli.conversion.remarks import Path
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, OS

Object = dict[str, Any]
API: Final = "karpenter.sh/v1"
GROUP: Final = "karpenter.k8s.aws"
CLASS: Final = "EC2NodeClass"
_REF: Final = {"group": GROUP, "kind": CLASS}
_MONTH: Final = "720h"
_MOST_WEIGHT: Final = 100
_OF_OTHERS: Final = frozenset((HOSTNAME,))
"""What not even a claim may ask for; a pool's name stands in each."""
_CATEGORY, _GENERATION = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation"


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool, or a claim, and what its node class has to say for it."""

    value: Object
    kubelet: Object | None = None
    kubelet_path: Path = ()
    """Where it stood."""
    node_class: Object | None = None
    """That of an inline provider."""

    @property
    def class_name(self) -> str:
        """Answer which node class it names."""
        return str(self.spec["nodeClassRef"]["name"])

    @property
    def spec(self) -> Object:
        """Answer what its nodes are made from."""
        spec: Object = self.value["spec"]
        return spec if self.value["kind"] == "NodeClaim" else spec["template"]["spec"]


def from_provisioner(root: Part, defaults: Defaults) -> Pool:
    """Answer the NodePool for a Provisioner."""
    meta, spec = metadata(root), root.part("spec") or Part({}, ("spec",), root.remarks)
    own = str(meta.get("name", ""))
    while own in defaults.taken:
        own += "-inline"
    labels, needs = labels_and_requirements(spec, spec.table("labels"), spec.at("labels"))
    needs += requirements(spec)
    inner: Object = {
        "nodeClassRef": _REF | {"name": _provider_name(spec, own)},
        "requirements": _defaulted(spec, needs, labels),
        **_tainted(spec),
        "expireAfter": expiry(spec),
    }
    kubelets = kubelet(spec.part("kubeletConfiguration"))
    inline = _inline(spec, own, defaults)
    new: Object = {
        "template": _template(labels, annotations(spec), inner),
        "disruption": of_provisioner(spec),
        **_amounts(spec),
    }
    spec.end(("labels", "annotations"), IN_PROVISIONER)
    _end(root)
    path = spec.at("kubeletConfiguration")
    return Pool(value=_pool(meta, new), kubelet=kubelets, kubelet_path=path, node_class=inline)


def from_beta(root: Part) -> Pool:
    """Answer NodePool v1 for that of v1beta1."""
    meta, spec = metadata(root), root.part("spec") or Part({}, ("spec",), root.remarks)
    template = spec.part("template") or Part({}, spec.at("template"), root.remarks)
    about = template.part("metadata") or Part({}, template.at("metadata"), root.remarks)
    labels, needs = labels_and_requirements(about, about.table("labels"), about.at("labels"))
    nodes = template.part("spec") or Part({}, template.at("spec"), root.remarks)
    inner, own = _nodes(nodes, needs + requirements(nodes))
    disruption = spec.part("disruption") or Part({}, spec.at("disruption"), root.remarks)
    if (lives := duration(disruption, "expireAfter")) not in ("", _MONTH):
        inner["expireAfter"] = lives
    if lives:
        root.remarks.changed(
            disruption.at("expireAfter"), "is template.spec.expireAfter now; what is old goes, whatever budgets say"
        )
    new: Object = {"template": _template(labels, annotations(about), inner), "disruption": of_beta(disruption)}
    new["limits"] = limits(spec.part("limits"))
    new["weight"] = _weight(spec)
    about.end()
    template.end(homes=IN_TEMPLATE)
    disruption.end()
    spec.end(homes=IN_POOL)
    _end(root)
    return Pool(value=_pool(meta, _full(new)), kubelet=own, kubelet_path=template.at("spec", "kubelet"))


def from_beta_claim(root: Part) -> Pool:
    """Answer NodeClaim v1 for that of v1beta1."""
    meta, spec = metadata(root), root.part("spec") or Part({}, ("spec",), root.remarks)
    inner, own = _nodes(spec, requirements(spec, _OF_OTHERS))
    amounts = spec.part("resources")
    if amounts is not None:
        inner["resources"] = {"requests": limits(amounts.part("requests"))}
        amounts.end()
    _end(root)
    root.remarks.warn((), "a NodeClaim that is applied is a machine that is launched: apply pools instead")
    return Pool(
        value={"apiVersion": API, "kind": "NodeClaim", "metadata": meta, "spec": inner},
        kubelet=own,
        kubelet_path=spec.at("kubelet"),
    )


def _pool(meta: Object, spec: Object) -> Object:
    return {"apiVersion": API, "kind": "NodePool", "metadata": meta, "spec": spec}


def _end(root: Part) -> None:
    for key in ("apiVersion", "kind", "status"):
        root.raw(key)
    root.end()


def _full(some: Object) -> Object:
    return {key: value for key, value in some.items() if value not in (None, {}, [], "")}


def _template(labels: dict[str, str], notes: dict[str, str], spec: Object) -> Object:
    about = _full({"labels": labels, "annotations": notes})
    return _full({"metadata": about, "spec": spec})


def _tainted(spec: Part) -> Object:
    return _full({field: taints(spec, field) for field in ("taints", "startupTaints")})


def _nodes(spec: Part, needs: list[Object]) -> tuple[Object, Object | None]:
    """Answer what a v1beta1 pool or claim says of its nodes, and of their kubelet."""
    inner: Object = {"nodeClassRef": _reference(spec), "requirements": needs, **_tainted(spec)}
    own = kubelet(spec.part("kubelet"))
    spec.raw("resources")
    spec.end(homes=IN_TEMPLATE)
    return inner, own


def _reference(spec: Part) -> Object:
    old = spec.part("nodeClassRef")
    if old is None or not old.text("name"):
        spec.remarks.refuse(spec.at("nodeClassRef", "name"), "is missing: name an EC2NodeClass")
        return _REF | {"name": ""}
    group = old.text("apiVersion").partition("/")[0] or old.text("group") or GROUP
    kind = old.text("kind") or CLASS
    if group != GROUP or kind not in (CLASS, "AWSNodeTemplate"):
        spec.remarks.refuse(old.path, f"{group} {kind} is no node class of AWS: name an EC2NodeClass of {GROUP}")
    elif not old.has("group"):
        spec.remarks.changed(old.path, "has group and kind now, and no apiVersion")
    old.end()
    return _REF | {"name": old.text("name")}


def _provider_name(spec: Part, own: str) -> str:
    reference, provider = spec.part("providerRef"), spec.raw("provider")
    if reference is not None and provider is not None:
        spec.remarks.refuse(spec.at("provider"), "stands beside providerRef: remove one of them")
    if reference is None:
        if provider is None:
            spec.remarks.refuse(
                spec.at("providerRef"), "is missing: write `providerRef: {name: ...}` of an AWSNodeTemplate"
            )
        return own
    name, kind = reference.text("name"), reference.text("kind") or "AWSNodeTemplate"
    reference.raw("apiVersion")
    reference.end()
    if not name or kind not in ("AWSNodeTemplate", CLASS):
        spec.remarks.refuse(reference.path, "names no AWSNodeTemplate: write its name, and no other kind")
    spec.remarks.changed(reference.path, f"is nodeClassRef now, with group {GROUP} and kind {CLASS}")
    return name


def _inline(spec: Part, name: str, defaults: Defaults) -> Object | None:
    provider = spec.part("provider")
    if provider is None:
        return None
    if not provider.keys():
        spec.remarks.refuse(
            provider.path,
            "is empty, and a node class needs subnets, security groups and a role: write `providerRef: {name: NAME}` "
            f"and an EC2NodeClass NAME of {GROUP}/v1 with amiSelectorTerms: [{{alias: al2023@latest}}], role, and "
            "subnetSelectorTerms and securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]",
        )
        return None
    return from_inline(provider, name, defaults)


def _defaulted(spec: Part, needs: list[Object], labels: dict[str, str]) -> list[Object]:
    """Write out what the webhook of v1alpha5 added."""
    keys = {str(one.get("key")) for one in needs} | set(labels)
    more = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in ((OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, ON_DEMAND))
        if key not in keys
    ]
    if not constrains(keys, CHOOSES):
        more.append({"key": _CATEGORY, "operator": "In", "values": ["c", "m", "r"]})
        more.append({"key": _GENERATION, "operator": "Gt", "values": ["2"]})
    for one in more:
        said = f"{one['key']} {one['operator']} {', '.join(one['values'])}"
        spec.remarks.changed(spec.at("requirements"), f"{said} is written out: it held where nobody said otherwise")
    return needs + more


def _amounts(spec: Part) -> Object:
    old = spec.part("limits")
    found: Object = {}
    if old is not None:
        found = limits(old.part("resources"))
        for name in ("cpu", "memory"):
            if old.has(name):
                old.remarks.refuse(
                    old.at(name),
                    f"stood outside of limits.resources, so it limited nothing: write limits.resources.{name}",
                )
        old.end()
        if found:
            spec.remarks.changed(old.at("resources"), "is limits itself now")
    return _full({"limits": found, "weight": _weight(spec)})


def _weight(spec: Part) -> int | None:
    weight = spec.number("weight")
    if weight is not None and not 0 <= weight <= _MOST_WEIGHT:
        spec.remarks.refuse(spec.at("weight"), f"is {weight}: write 1 to 100: higher comes first, it is no percentage")
    return weight or None
