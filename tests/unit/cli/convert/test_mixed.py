"""`joiner convert`: objects that mix two versions, have no version, or are nearly right."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.unit.cli.convert.cli_old_objects import (
    CLASS_REF,
    POOL,
    REF,
    TERMS,
    V1_CLASS,
    convert,
    convert_to_one,
    get_at_path,
    list_refusals,
    make_beta_class,
    make_beta_pool,
    make_node_template,
    make_object,
    make_provisioner,
    make_settings,
)

Object = dict[str, Any]
Out = pytest.CaptureFixture[str]


def make_current_pool(**inner: object) -> Object:
    spec = {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": []} | inner}}
    return make_object("karpenter.sh/v1", "NodePool", spec)


def test_v1_nodepool_with_v1beta1_fields_is_converted_to_v1() -> None:
    old = make_current_pool(kubelet={"maxPods": 9})
    old["spec"]["disruption"] = {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "24h"}
    result = convert(old, make_object("karpenter.k8s.aws/v1", "EC2NodeClass", V1_CLASS))
    pool, node_class = (obj.value for obj in result.objects)
    assert pool["spec"]["disruption"] == {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    assert get_at_path(pool, POOL) == {"nodeClassRef": CLASS_REF, "requirements": [], "expireAfter": "24h"}
    assert get_at_path(node_class, "spec.kubelet.maxPods") == 9
    assert [note.level for note in result.notes if note.level == "refused"] == []


@pytest.mark.parametrize(
    ("value", "field", "remedy"),
    [
        (
            make_current_pool(nodeClassRef={"group": "karpenter.azure.com", "name": "a"}),
            "spec.template.spec.nodeClassRef.kind",
            "",
        ),
        (make_current_pool(nodeClassRef={}), "spec.template.spec.nodeClassRef.name", "write it"),
        (
            make_current_pool(nodeClassRef=CLASS_REF, requirments=[]),
            "spec.template.spec.requirments",
            "did you mean requirements?",
        ),
        (make_current_pool(nodeClassRef=CLASS_REF, zzz=[]), "spec.template.spec.zzz", "correct or remove it"),
        (
            make_current_pool(nodeClassRef=CLASS_REF, taints=[{"key": "a"}]),
            "spec.template.spec.taints[0].effect",
            "write it",
        ),
        (
            make_object("karpenter.sh/v1", "NodePool", {"template": {"spec": {"nodeClassRef": CLASS_REF}}}, "A_b"),
            "metadata.name",
            "a-b",
        ),
        (make_object("karpenter.sh/v1", "NodeClaim", {}), "spec", ""),
        (make_object("karpenter.k8s.aws/v1", "EC2NodeClass", {"role": "r"}), "spec", ""),
        (
            make_object("karpenter.k8s.aws/v1", "EC2NodeClass", {"amiFamily": "Custom"} | V1_CLASS | {"x": 1}),
            "spec.x",
            "remove",
        ),
        (make_object("karpenter.sh/v1", "Provisioner", {}), "kind", "apiVersion: karpenter.sh/v1alpha5"),
        (make_object("karpenter.sh/v1alpha1", "InstanceType", {}), "kind", "remove it"),
        (make_object("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer", {}), "kind", "remove it"),
    ],
)
def test_field_not_supported_by_v1_is_rejected(value: Object, field: str, remedy: str) -> None:
    refused_fields = list_refusals(value)
    assert any(
        refused_field.startswith(field) and remedy in message for refused_field, message in refused_fields.items()
    ) or remedy in str(refused_fields)
    assert refused_fields


def test_v1_node_class_without_ami_selector_gets_the_alias_of_its_ami_family() -> None:
    old = {key: value for key, value in V1_CLASS.items() if key != "amiSelectorTerms"} | {"amiFamily": "AL2023"}
    new = convert_to_one(make_object("karpenter.k8s.aws/v1", "EC2NodeClass", old))
    assert get_at_path(new, "spec.amiSelectorTerms") == [{"alias": "al2023@latest"}]


def test_provisioner_and_nodepool_of_the_same_name_are_rejected() -> None:
    result = convert(make_provisioner(), make_beta_pool())
    [note] = [note for note in result.notes if note.level == "refused"]
    assert (note.field, len(result.objects)) == ("metadata.name", 1)
    assert "rename or remove" in note.message


def test_duplicate_provisioner_name_is_kept_with_a_warning() -> None:
    result = convert(make_provisioner(), make_provisioner(weight=3))
    [note] = [note for note in result.notes if note.level == "warning"]
    assert (note.field, len(result.objects)) == ("metadata.name", 2)


def test_identical_duplicate_objects_are_both_kept() -> None:
    assert len(convert(make_provisioner(), make_provisioner()).objects) == 2


def test_node_class_for_an_inline_provider_avoids_existing_names() -> None:
    inline = make_object("karpenter.sh/v1alpha5", "Provisioner", {"provider": TERMS | {"instanceProfile": "p"}})
    result = convert(inline, make_node_template())
    names = [obj.value["metadata"]["name"] for obj in result.objects if obj.value["kind"] == "EC2NodeClass"]
    assert names == ["default-inline", "default"]
    assert get_at_path(result.objects[1].value, f"{POOL}.nodeClassRef.name") == "default-inline"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("My_Pool", "my-pool"), ("a" * 64, "63 at most"), ("${NAME}", "envsubst"), ("-", "small letters")],
)
def test_invalid_object_name_is_rejected_with_a_fix(name: str, remedy: str) -> None:
    assert remedy in list_refusals(make_object("karpenter.sh/v1alpha5", "Provisioner", REF, name))["metadata.name"]


@pytest.mark.parametrize(
    ("value", "field", "remedy"),
    [
        (make_beta_pool(disruption={"expireAfter": "30d"}), "spec.disruption.expireAfter", "write 720h"),
        (make_beta_pool(disruption={"expireAfter": "${TTL}"}), "spec.disruption.expireAfter", "envsubst"),
        (
            make_beta_pool(disruption={"budgets": [{"nodes": "1", "duration": "8h"}]}),
            "spec.disruption.budgets[0].duration",
            "schedule",
        ),
        (make_beta_pool(providerRef={"name": "a"}), "spec.template.spec.providerRef", "as nodeClassRef"),
        (make_beta_class(role="arn:aws:iam::1:role/nodes"), "spec.role", "write nodes"),
        (make_beta_class(subnetSelector={"a": "b"}), "spec.subnetSelector", "subnetSelectorTerms: [{tags"),
        (make_beta_class(amiFamily="bottlerocket"), "spec.amiFamily", "did you mean Bottlerocket?"),
        (make_beta_class(amiFamily="Ubuntu"), "spec.amiFamily", "name them"),
        (
            make_beta_class(subnetSelectorTerms=[{"id": "subnet-1,subnet-2"}]),
            "spec.subnetSelectorTerms[0].id",
            "{id: subnet-2}",
        ),
        (make_node_template(amiSelector={"name": "ami-1"}), "spec.amiSelector.name", "aws::ids: ami-1"),
        (
            make_node_template(subnetSelector={"aws-ids": ["subnet-1", "subnet-2"]}),
            "spec.subnetSelector.aws-ids",
            '"subnet-1,subnet-2"',
        ),
        (make_node_template(amiSelector={"aws-ids": "${AMI}"}), "spec.amiSelector.aws-ids", "envsubst"),
        (
            make_node_template(blockDeviceMappings=[{"volumeSize": "1Gi", "ebs": {}}]),
            "spec.blockDeviceMappings[0].volumeSize",
            "ebs",
        ),
        (make_provisioner(nodeClassRef={}), "spec.nodeClassRef", "as providerRef"),
        (make_provisioner(limits="cpu:10"), "spec.limits", "`cpu: 10`, with a space"),
        (make_provisioner(requirements={"key": "a"}), "spec.requirements", "`- ` before `key`"),
        (make_provisioner(requirements=[{"a": "b"}]), "spec.requirements[0].key", 'values: ["b"]'),
        (
            make_provisioner(requirements=[{"key": "a", "operator": "In", "values": 2}]),
            "spec.requirements[0].values",
            'values: ["2"]',
        ),
    ],
)
def test_suggested_fix_matches_the_api_version_of_the_input(value: Object, field: str, remedy: str) -> None:
    assert remedy in list_refusals(value)[field]


def test_ubuntu_ami_family_becomes_al2_with_its_root_device() -> None:
    new = convert_to_one(make_beta_class(amiFamily="Ubuntu", amiSelectorTerms=[{"id": "ami-1"}]))
    assert get_at_path(new, "spec.amiFamily") == "AL2"
    assert [mapping["deviceName"] for mapping in get_at_path(new, "spec.blockDeviceMappings")] == ["/dev/sda1"]


def test_empty_global_settings_are_ignored() -> None:
    setting_values = {
        "aws.assumeRoleARN": "",
        "aws.assumeRoleDuration": "15m",
        "aws.clusterEndpoint": "",
        "aws.clusterName": "c",
    }
    result = convert(make_settings(**setting_values))
    assert (result.stack_settings, {note.level for note in result.notes}) == ({"cluster": "c"}, {"changed"})


def test_disabled_drift_feature_gate_gets_a_warning() -> None:
    [note] = convert(make_settings(**{"featureGates.driftEnabled": "false"})).notes
    assert (note.level, "Drifted" in note.message) == ("warning", True)


def test_global_tag_settings_move_to_node_class_tags() -> None:
    node_class = convert_to_one(make_settings(**{"aws.tags.team": "a"}), make_node_template())
    assert get_at_path(node_class, "spec.tags.team") == "a"


def test_disruption_taint_toleration_is_converted() -> None:
    spec = {
        "tolerations": [
            {"key": "karpenter.sh/disruption", "value": "disrupting", "effect": "NoSchedule"},
            {"key": "a"},
            3,
        ]
    }
    new = convert_to_one(make_object("v1", "Pod", spec))
    assert new["spec"]["tolerations"][0] == {
        "key": "karpenter.sh/disrupted",
        "operator": "Exists",
        "effect": "NoSchedule",
    }


def test_controller_assume_role_environment_gets_a_warning() -> None:
    container: Object = {"image": "karpenter/controller:1", "env": [{"name": "ASSUME_ROLE_ARN", "value": "arn"}]}
    result = convert(make_object("apps/v1", "Deployment", {"template": {"spec": {"containers": [container]}}}))
    assert any("the functions have their own IAM roles" in note.message for note in result.notes)


def test_quoted_tag_values_keep_their_original_spelling(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    old = make_node_template(tags={"a": "A", "b": "B"})
    file.write_text(yaml.safe_dump(old).replace("a: A", "a: 1.10").replace("b: B", "b: no"))
    assert main(["convert", "-f", str(file)]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["spec"]["tags"] == {"a": "1.10", "b": "no"}


def test_schema_error_is_reported_at_the_line_of_its_field(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(make_node_template(metadataOptions={"httpTokens": "Required"})))
    assert main(["convert", "-f", str(file)]) == 1
    line = 1 + file.read_text().splitlines().index("    httpTokens: Required")
    assert (
        f"{file}:{line}: refused: AWSNodeTemplate default: spec.metadataOptions.httpTokens" in capsys.readouterr().err
    )


def test_nodeclaim_requirement_may_name_its_nodepool() -> None:
    spec = {
        "nodeClassRef": {"name": "a"},
        "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"]}],
    }
    new = convert_to_one(make_object("karpenter.sh/v1beta1", "NodeClaim", spec))
    assert get_at_path(new, "spec.requirements.0.key") == "karpenter.sh/nodepool"
