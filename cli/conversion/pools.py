"""Provisioner v1alpha5, NodePool and NodeClaim v1beta1 -> NodePool and NodeClaim v1."""

from typing import Any, Final

import msgspec

from cli.conversion import references
from cli.conversion.classes import Defaults
from cli.conversion.disruption import duration, expiry, of_beta, of_provisioner
from cli.conversion.elsewhere import AT_ROOT, IN_DISRUPTION, IN_POOL, IN_PROVISIONER, IN_TEMPLATE
from cli.conversion.kubelets import kubelet
from cli.conversion.metadata import annotations, metadata
from cli.conversion.needs import CHOOSES, constrains, labels_and_requirements, limits, requirements, taints
from cli.conversion.parts import Part
from cli.conversion.remarks import Path
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, OS

Object = dict[str, Any]
API: Final = "karpenter.sh/v1"
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
    knobs: dict[str, str] = {}
    """What it says of its cluster, as settings of the stack."""

    @property
    def class_name(self) -> str:
        """Answer which node class it names; "" for none."""
        reference = self.spec.get("nodeClassRef")
        return str(reference.get("name") or "") if isinstance(reference, dict) else ""

    @property
    def name(self) -> str:
        """Answer what it is called; "" if nobody said."""
        meta = self.value.get("metadata")
        return str(meta.get("name") or "") if isinstance(meta, dict) else ""

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
        "nodeClassRef": references.REF | {"name": references.of_provisioner(spec, own)},
        "requirements": _defaulted(spec, needs, labels),
        **_tainted(spec),
        "expireAfter": expiry(spec),
    }
    kubelets = kubelet(spec.part("kubeletConfiguration"))
    inline, knobs = references.inline(spec, own, defaults)
    new: Object = {
        "template": _template(labels, annotations(spec), inner),
        "disruption": of_provisioner(spec),
        **_amounts(spec),
    }
    spec.end(("labels", "annotations"), IN_PROVISIONER)
    _end(root)
    path = spec.at("kubeletConfiguration")
    return Pool(value=_pool(meta, new), kubelet=kubelets, kubelet_path=path, node_class=inline, knobs=knobs)


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
    for key in ("name", "creationTimestamp"):
        if not about.holds(key):
            about.raw(key)
    about.end()
    template.end(homes=IN_TEMPLATE)
    disruption.end(homes=IN_DISRUPTION)
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
    root.end(homes=AT_ROOT)


def _full(some: Object) -> Object:
    return {key: value for key, value in some.items() if value not in (None, {}, [], "")}


def _template(labels: dict[str, str], notes: dict[str, str], spec: Object) -> Object:
    about = _full({"labels": labels, "annotations": notes})
    return _full({"metadata": about, "spec": spec})


def _tainted(spec: Part) -> Object:
    return _full({field: taints(spec, field) for field in ("taints", "startupTaints")})


def _nodes(spec: Part, needs: list[Object]) -> tuple[Object, Object | None]:
    """Answer what a v1beta1 pool or claim says of its nodes, and of their kubelet."""
    inner: Object = {"nodeClassRef": references.of_beta(spec), "requirements": needs, **_tainted(spec)}
    own = kubelet(spec.part("kubelet"))
    spec.raw("resources")
    spec.end(homes=IN_TEMPLATE)
    return inner, own


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
