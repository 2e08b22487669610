"""Objects of v1 in which fields stand as v1beta1 had them: what they can only mean, or what there is to correct."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from cli.conversion.accepted import complaints, unread
from cli.conversion.families import ALIASES
from cli.conversion.kubelets import kubelet
from cli.conversion.parts import Part
from cli.conversion.pools import Pool
from cli.conversion.references import CLASS, GROUP, MISTAKEN, TEMPLATE
from cli.conversion.remarks import Remarks

Object = dict[str, Any]
_OLD: Final = "WhenUnderutilized"
_NOW: Final = "WhenEmptyOrUnderutilized"


def mended(value: Object, remarks: Remarks) -> Pool | Object:
    """Answer *value*, of karpenter.sh/v1 or karpenter.k8s.aws/v1, as an API server takes it; itself if it does."""
    if not complaints(value) and not any(unread(value)):
        return value
    new = deepcopy(value)
    spec = _at(new, "spec")
    if value["kind"] == "EC2NodeClass":
        _images(spec, remarks)
        return new
    if value["kind"] != "NodePool":
        return new
    inner = _at(new, "spec", "template", "spec")
    _reference(inner, remarks)
    _disruption(spec, inner, remarks)
    path = ("spec", "template", "spec", "kubelet")
    own = kubelet(Part(inner, path[:-1], remarks).part("kubelet"))
    inner.pop("kubelet", None)
    pool = Pool(value=new, kubelet=own, kubelet_path=path)
    return pool if own is not None and pool.class_name else new


def other_class(value: Object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Iterate over what there is to know of a pool, or claim, whose machines are those of another autoscaler."""
    inner = _at(value, "spec") if value["kind"] == "NodeClaim" else _at(value, "spec", "template", "spec")
    group = _at(inner, "nodeClassRef").get("group")
    if value["kind"] in ("NodePool", "NodeClaim") and isinstance(group, str) and group not in ("", GROUP):
        path = (
            ("spec", "nodeClassRef") if value["kind"] == "NodeClaim" else ("spec", "template", "spec", "nodeClassRef")
        )
        yield path, f"is a class of {group}, of which Joiner makes no nodes: write that of an EC2NodeClass of {GROUP}"


def _at(value: Object, *keys: str) -> Object:
    """Answer the mapping at *keys*; one of its own, if there is none."""
    inner: Any = value
    for key in keys:
        inner = inner.get(key)
        if not isinstance(inner, dict):
            return {}
    return inner  # type: ignore[no-any-return] # it is a dict by now


def _images(spec: Object, remarks: Remarks) -> None:
    family = spec.get("amiFamily")
    if isinstance(family, str) and family in ALIASES and not spec.get("amiSelectorTerms"):
        spec["amiSelectorTerms"] = [{"alias": ALIASES[family]}]
        path = ("spec", "amiFamily")
        remarks.changed(path, f"chooses no images any more: amiSelectorTerms: [{{alias: {ALIASES[family]}}}] does")


def _reference(inner: Object, remarks: Remarks) -> None:
    old, path = inner.get("nodeClassRef"), ("spec", "template", "spec", "nodeClassRef")
    if not isinstance(old, Mapping) or not old.get("name"):
        return
    new = {key: value for key, value in old.items() if key != "apiVersion"}
    group = str(old.get("group") or old.get("apiVersion") or GROUP).partition("/")[0]
    if group in (GROUP, *MISTAKEN):
        kind = old.get("kind") or CLASS
        new |= {"group": GROUP, "kind": CLASS if kind == TEMPLATE else kind}
    if new != old:
        inner["nodeClassRef"] = new
        remarks.changed(path, f"has group {GROUP}, and kind, and no apiVersion")


def _disruption(spec: Object, inner: Object, remarks: Remarks) -> None:
    old, path = _at(spec, "disruption"), ("spec", "disruption")
    if old.get("consolidationPolicy") == _OLD:
        old["consolidationPolicy"] = _NOW
        remarks.changed((*path, "consolidationPolicy"), f"{_OLD} is {_NOW} now")
    if "expireAfter" in old and inner.get("expireAfter") in (None, old["expireAfter"]):
        inner["expireAfter"] = old.pop("expireAfter")
        remarks.changed((*path, "expireAfter"), "is template.spec.expireAfter now")
