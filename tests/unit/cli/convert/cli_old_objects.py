"""Minimal objects of older Karpenter versions, and their conversion."""

from typing import Any

from cli.convert.conversion import ConversionResult, convert_objects
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.schema_checks import list_schema_problems

Object = dict[str, Any]
POOL = "spec.template.spec"
REF = {"providerRef": {"name": "default"}}
TERMS = {"subnetSelector": {"Name": "private"}, "securityGroupSelector": {"Name": "nodes"}}
BETA_TERMS = {"subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"name": "nodes"}]}
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


V1_CLASS = BETA_TERMS | {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]}


def make_object(api: str, kind: str, spec: Object, name: str = "default") -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def make_provisioner(name: str = "default", /, **spec: object) -> Object:
    return make_object("karpenter.sh/v1alpha5", "Provisioner", REF | spec, name)


def make_node_template(name: str = "default", /, **spec: object) -> Object:
    return make_object("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", {"instanceProfile": "p"} | TERMS | spec, name)


def make_beta_pool(name: str = "default", /, disruption: Object | None = None, **inner: object) -> Object:
    spec: Object = {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": []} | inner}}
    disruption_fields = {} if disruption is None else {"disruption": disruption}
    return make_object("karpenter.sh/v1beta1", "NodePool", spec | disruption_fields, name)


def make_beta_class(**spec: object) -> Object:
    return make_object(
        "karpenter.k8s.aws/v1beta1", "EC2NodeClass", {"amiFamily": "AL2", "role": "r"} | BETA_TERMS | spec
    )


def make_settings(**data: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"}, "data": data}


def convert(*values: Object, role: str = "") -> ConversionResult:
    return convert_objects([SourceObject(value=value, file="old.yaml") for value in values], role)


def convert_to_one(*values: Object) -> Object:
    """Return the only object that *values* are converted to, which an API server would accept."""
    result = convert(*values)
    assert [note for note in result.notes if note.level == "refused"] == []
    [converted_object] = result.objects
    assert list_schema_problems(converted_object.value) == []
    return converted_object.value  # type: ignore[no-any-return]


def get_at_path(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key)] if key.isdecimal() and isinstance(value, list) else value.get(key)
    return value


def list_refusals(*values: Object) -> dict[str, str]:
    result = convert(*values)
    refused = {note.field: note.message for note in result.notes if note.level == "refused"}
    names = {(note.kind, note.name) for note in result.notes if note.level == "refused"}
    converted_names = {(obj.value["kind"], obj.value["metadata"]["name"]) for obj in result.objects}
    assert names.isdisjoint(converted_names), "what is refused is left out"
    return refused
