"""Objects of older Karpenters, as short as they can be, and what becomes of them."""

from typing import Any

from cli.conversion.accepted import complaints
from cli.conversion.convert import Conversion, convert
from cli.conversion.sources import Written

Object = dict[str, Any]
POOL = "spec.template.spec"
REF = {"providerRef": {"name": "default"}}
TERMS = {"subnetSelector": {"Name": "private"}, "securityGroupSelector": {"Name": "nodes"}}
BETA_TERMS = {"subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"name": "nodes"}]}
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


V1_CLASS = BETA_TERMS | {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]}


def made(api: str, kind: str, spec: Object, name: str = "default") -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def provisioner(name: str = "default", /, **spec: object) -> Object:
    return made("karpenter.sh/v1alpha5", "Provisioner", REF | spec, name)


def node_template(name: str = "default", /, **spec: object) -> Object:
    return made("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", {"instanceProfile": "p"} | TERMS | spec, name)


def beta_pool(name: str = "default", /, disruption: Object | None = None, **inner: object) -> Object:
    spec: Object = {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": []} | inner}}
    more = {} if disruption is None else {"disruption": disruption}
    return made("karpenter.sh/v1beta1", "NodePool", spec | more, name)


def beta_class(**spec: object) -> Object:
    return made("karpenter.k8s.aws/v1beta1", "EC2NodeClass", {"amiFamily": "AL2", "role": "r"} | BETA_TERMS | spec)


def settings(**data: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"}, "data": data}


def converted(*values: Object, role: str = "") -> Conversion:
    return convert([Written(value=value, file="old.yaml") for value in values], role)


def only(*values: Object) -> Object:
    """Answer the one object that becomes of *values*, which an API server would take."""
    done = converted(*values)
    assert [note for note in done.notes if note.level == "refused"] == []
    [one] = done.objects
    assert complaints(one.value) == []
    return one.value  # type: ignore[no-any-return]


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key)] if key.isdecimal() and isinstance(value, list) else value.get(key)
    return value


def refusals(*values: Object) -> dict[str, str]:
    done = converted(*values)
    refused = {note.field: note.message for note in done.notes if note.level == "refused"}
    names = {(note.kind, note.name) for note in done.notes if note.level == "refused"}
    kept = {(one.value["kind"], one.value["metadata"]["name"]) for one in done.objects}
    assert names.isdisjoint(kept), "what is refused is left out"
    return refused
