"""`joiner convert`: the result for older manifests, and the fields that are refused."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.convert.conversion import ConversionResult
from cli.convert.validation.schema_checks import list_schema_problems
from cli.main import main
from tests.unit.cli.convert.cli_old_objects import (
    CLASS_REF,
    POOL,
    REF,
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


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ({}, f"{POOL}.nodeClassRef", CLASS_REF),
        ({}, f"{POOL}.expireAfter", "Never"),
        ({"ttlSecondsUntilExpired": 2592000}, f"{POOL}.expireAfter", "2592000s"),
        ({}, "spec.disruption", {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}),
        (
            {"ttlSecondsAfterEmpty": 30},
            "spec.disruption",
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        ),
        (
            {"consolidation": {"enabled": True}},
            "spec.disruption",
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
        ),
        ({"consolidation": {"enabled": False}}, "spec.disruption.consolidateAfter", "Never"),
        ({"limits": {"resources": {"cpu": 1000, "nvidia.com/gpu": "2"}}}, "spec.limits.cpu", 1000),
        ({"weight": "50"}, "spec.weight", 50),
        ({"labels": {"team": True}}, "spec.template.metadata.labels", {"team": "true"}),
        (
            {"annotations": {"karpenter.sh/do-not-consolidate": "true"}},
            "spec.template.metadata.annotations",
            {"karpenter.sh/do-not-disrupt": "true"},
        ),
        (
            {"taints": [{"key": "a", "effect": "NoSchedule", "value": 1}]},
            f"{POOL}.taints",
            [{"key": "a", "value": "1", "effect": "NoSchedule"}],
        ),
        (
            {"startupTaints": [{"key": "a", "effect": "NoExecute"}]},
            f"{POOL}.startupTaints",
            [{"key": "a", "effect": "NoExecute"}],
        ),
    ],
)
def test_provisioner_field_is_converted_to_nodepool(spec: Object, path: str, expected: object) -> None:
    assert get_at_path(convert_to_one(make_provisioner(**spec)), path) == expected


def test_webhook_default_requirements_are_added_unless_set() -> None:
    needs = {
        requirement["key"]: requirement.get("values")
        for requirement in get_at_path(convert_to_one(make_provisioner()), f"{POOL}.requirements")
    }
    assert needs == {
        "kubernetes.io/os": ["linux"],
        "kubernetes.io/arch": ["amd64"],
        "karpenter.sh/capacity-type": ["on-demand"],
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
        "karpenter.k8s.aws/instance-generation": ["2"],
    }
    own_requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["t3"]},
        {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
    ]
    needs = {
        requirement["key"]: requirement["values"]
        for requirement in get_at_path(
            convert_to_one(make_provisioner(requirements=own_requirements)), f"{POOL}.requirements"
        )
    }
    assert needs == {
        "karpenter.sh/capacity-type": ["spot"],
        "karpenter.k8s.aws/instance-family": ["t3"],
        "kubernetes.io/arch": ["arm64"],
        "kubernetes.io/os": ["linux"],
    }


def test_well_known_label_becomes_a_requirement() -> None:
    pool = convert_to_one(
        make_provisioner(labels={"karpenter.sh/capacity-type": "spot", "karpenter.sh/provisioner-name": "x"})
    )
    needs = {requirement["key"]: requirement["values"] for requirement in get_at_path(pool, f"{POOL}.requirements")}
    assert needs["karpenter.sh/capacity-type"] == ["spot"]
    assert get_at_path(pool, "spec.template.metadata") is None


def test_numeric_requirement_values_are_quoted_and_reported() -> None:
    need = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": [4, 8]}
    result = convert(make_provisioner(requirements=[need]))
    assert get_at_path(result.objects[0].value, f"{POOL}.requirements.0.values") == ["4", "8"]
    assert "spec.requirements[0].values[0]" in {note.field for note in result.notes}


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"label": {"team": "a"}}, "spec.label", "did you mean labels"),
        ({"limits": {"cpu": 10}}, "spec.limits.cpu", "write limits.resources.cpu"),
        ({"limits": {"resources": {"cpu": "50%"}}}, "spec.limits.resources.cpu", "a quantity, not a percentage"),
        ({"limits": {"resources": {"cpu": "many"}}}, "spec.limits.resources.cpu", "write a quantity"),
        ({"weight": 200}, "spec.weight", "a higher weight has precedence"),
        ({"weight": "x"}, "spec.weight", "whole number"),
        ({"ttlSecondsAfterEmpty": -1}, "spec.ttlSecondsAfterEmpty", "0 or more"),
        ({"ttlSecondsUntilExpired": 0}, "spec.ttlSecondsUntilExpired", "write a time"),
        ({"ttlSecondsAfterEmpty": 30, "consolidation": {"enabled": True}}, "spec.ttlSecondsAfterEmpty", "remove one"),
        ({"consolidation": {"enabled": "maybe"}}, "spec.consolidation.enabled", "true or false"),
        ({"provider": {"a": "b"}}, "spec.provider", "remove one of the two"),
        ({"providerRef": {"name": "a", "kind": "Other"}}, "spec.providerRef", "does not name an AWSNodeTemplate"),
        ({"providerRef": None, "provider": {}}, "spec.provider", "alias: al2023@latest"),
        ({"kubeletConfiguration": {"podPerCore": 2}}, "spec.kubeletConfiguration.podPerCore", "podsPerCore"),
        (
            {"kubeletConfiguration": {"containerRuntime": "dockerd"}},
            "spec.kubeletConfiguration.containerRuntime",
            "run",
        ),
        (
            {"kubeletConfiguration": {"evictionSoft": {"memory.available": "5%"}}},
            "spec.kubeletConfiguration.evictionSoft.memory.available",
            "evictionSoftGracePeriod",
        ),
        (
            {"kubeletConfiguration": {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60}},
            "spec.kubeletConfiguration.imageGCHighThresholdPercent",
            "above imageGCLowThresholdPercent",
        ),
        ({"taints": [{"key": "a", "effect": "NoSchedul"}]}, "spec.taints[0].effect", "did you mean NoSchedule"),
        ({"taints": [{"effect": "NoSchedule"}]}, "spec.taints[0].key", "name the taint"),
        ({"taints": "a=b:NoSchedule"}, "spec.taints", "write a list"),
        ({"taints": ["a=b:NoSchedule"]}, "spec.taints[0]", "{key: a, value: b, effect: NoSchedule}"),
        ({"taints": ["a:NoSchedule"]}, "spec.taints[0]", "write {key: a, effect: NoSchedule}"),
        ({"taints": ["dedicated"]}, "spec.taints[0]", "name: value"),
        ({"labels": ["a"]}, "spec.labels", "name: value"),
        ({"labels": {"a": {"b": "c"}}}, "spec.labels.a", "write a text"),
        ({"labels": {"karpenter.sh/mine": "a"}}, "spec.labels.karpenter.sh/mine", "use another domain"),
    ],
)
def test_provisioner_field_without_equivalent_is_rejected_with_a_fix(spec: Object, field: str, remedy: str) -> None:
    assert remedy in list_refusals(make_provisioner(**spec))[field]


@pytest.mark.parametrize(
    ("need", "field", "remedy"),
    [
        ({"operator": "In", "values": ["a"]}, "key", "name a label"),
        ({"key": "a", "operator": "in", "values": ["a"]}, "operator", "did you mean In"),
        ({"key": "a", "operator": "=", "values": ["a"]}, "operator", "did you mean In"),
        ({"key": "a", "operator": "~", "values": ["a"]}, "operator", "write one of"),
        ({"key": "a", "operator": "In"}, "values", "at least one"),
        ({"key": "a", "operator": "Exists", "values": ["a"]}, "values", "write In"),
        ({"key": "a", "operator": "Gt", "values": ["x"]}, "values", "one whole number"),
        ({"key": "a", "operator": "In", "values": "a"}, "values", "write a list"),
        ({"key": "a", "operator": "In", "values": ["a, b"]}, "values[0]", '["a", "b"]'),
        ({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["ondemand"]}, "values[0]", "on-demand?"),
        ({"key": "kubernetes.io/arch", "operator": "In", "values": ["x86_64"]}, "values[0]", "amd64?"),
        ({"key": "kubernetes.io/os", "operator": "In", "values": ["beos"]}, "values[0]", "write one of"),
        ({"key": "karpenter.k8s.aws/instance-famly", "operator": "Exists"}, "key", "instance-family?"),
        ({"key": "karpenter.k8s.aws/instance-pods", "operator": "Gt", "values": ["9"]}, "key", "maxPods"),
        ({"key": "kubernetes.io/hostname", "operator": "Exists"}, "key", "remove the requirement"),
        ({"key": "karpenter.sh/provisioner-name", "operator": "Exists"}, "key", "remove the requirement"),
    ],
)
def test_invalid_requirement_is_rejected(need: Object, field: str, remedy: str) -> None:
    assert remedy in list_refusals(make_provisioner(requirements=[need]))[f"spec.requirements[0].{field}"]


def test_inline_provider_becomes_a_node_class_named_after_its_provisioner() -> None:
    provider = {"subnetSelector": {"karpenter.sh/discovery": "c"}, "securityGroupSelector": {"aws::ids": "sg-1"}}
    result = convert(make_provisioner("web", providerRef=None, provider=provider), role="nodes")
    node_class, pool = (obj.value for obj in result.objects)
    assert (node_class["kind"], node_class["metadata"], node_class["spec"]["role"]) == (
        "EC2NodeClass",
        {"name": "web"},
        "nodes",
    )
    assert get_at_path(pool, f"{POOL}.nodeClassRef.name") == "web"
    assert list_schema_problems(node_class) == list_schema_problems(pool) == []


HOPS = {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpTokens": "required"}


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ({}, "spec.amiSelectorTerms", [{"alias": "al2@latest"}]),
        ({"amiFamily": "Bottlerocket"}, "spec.amiSelectorTerms", [{"alias": "bottlerocket@latest"}]),
        ({"amiFamily": "Bottlerocket"}, "spec.amiFamily", None),
        ({"amiFamily": "Custom", "amiSelector": {"a": "b"}}, "spec.amiFamily", "Custom"),
        ({"amiSelector": {"aws-ids": "ami-1, ami-2"}}, "spec.amiSelectorTerms", [{"id": "ami-1"}, {"id": "ami-2"}]),
        (
            {"amiSelector": {"aws::name": "a,b", "aws::owners": "self", "k": "v"}},
            "spec.amiSelectorTerms",
            [{"tags": {"k": "v"}, "name": name, "owner": "self"} for name in ("a", "b")],
        ),
        (
            {"subnetSelector": {"a": "1,2", "b": "*"}},
            "spec.subnetSelectorTerms",
            [{"tags": {"a": one, "b": "*"}} for one in ("1", "2")],
        ),
        ({}, "spec.metadataOptions", HOPS | {"httpPutResponseHopLimit": 2}),
        (
            {"metadataOptions": {"httpPutResponseHopLimit": 1}},
            "spec.metadataOptions",
            HOPS | {"httpPutResponseHopLimit": 1},
        ),
        ({"tags": {"team": 1}}, "spec.tags", {"team": "1"}),
        ({"userData": "x", "detailedMonitoring": True}, "spec.detailedMonitoring", True),
        ({"context": "c"}, "spec.context", "c"),
        (
            {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "encrypted": True}}]},
            "spec.blockDeviceMappings",
            [{"deviceName": "/dev/xvda", "ebs": {"encrypted": True, "volumeSize": "50Gi"}}],
        ),
    ],
)
def test_awsnodetemplate_field_is_converted_to_ec2nodeclass(spec: Object, path: str, expected: object) -> None:
    assert get_at_path(convert_to_one(make_node_template(**spec)), path) == expected


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"launchTemplate": "mine"}, "spec.launchTemplate", "write their settings here"),
        ({"amiFamily": "Ubuntu"}, "spec.amiFamily", "name them, amiSelector"),
        ({"amiFamily": "Gentoo"}, "spec.amiFamily", "write one of"),
        ({"amiFamily": "Custom"}, "spec.amiSelectorTerms", "needs selected images"),
        ({"amiSelector": {"aws::name": "ami-123"}}, "spec.amiSelector[0]", "write `id: ami-123`"),
        ({"subnetSelector": {"aws-ids": "sg-1"}}, "spec.subnetSelector.aws-ids", "subnet-"),
        (
            {"subnetSelector": {"aws-ids": "subnet-1", "a": "b"}},
            "spec.subnetSelector.aws-ids",
            "cannot be used with other keys",
        ),
        ({"subnetSelector": {"a": ""}}, "spec.subnetSelector.a", "'*' for any"),
        (
            {"subnetSelector": {"a": ",".join("abcdefghijklmnopqrstuvwxyz01234")}},
            "spec.subnetSelector",
            "the maximum is 30",
        ),
        ({"tags": {"kubernetes.io/cluster/c": "owned"}}, "spec.tags.kubernetes.io/cluster/c", "remove it"),
        ({"role": "r"}, "spec.role", "remove one of the two"),
        (
            {"blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": 100}}]},
            "spec.blockDeviceMappings[0].ebs.volumeSize",
            "100Gi",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": "big"}}]},
            "spec.blockDeviceMappings[0].ebs.volumeSize",
            "as 100Gi",
        ),
        ({"blockDeviceMappings": [{"deviceName": "a"}]}, "spec.blockDeviceMappings[0].ebs", "is missing"),
    ],
)
def test_awsnodetemplate_field_without_equivalent_is_rejected(spec: Object, field: str, remedy: str) -> None:
    assert remedy in list_refusals(make_node_template(**spec))[field]


def test_awsnodetemplate_inherits_instance_profile_and_tags_from_global_settings() -> None:
    config = make_settings(**{"aws.defaultInstanceProfile": "all", "aws.tags": '{"team": "a", "env": "x"}'})
    node_class = convert_to_one(config, make_node_template(instanceProfile=None, tags={"env": "y"}))
    assert (node_class["spec"]["instanceProfile"], node_class["spec"]["tags"]) == ("all", {"team": "a", "env": "y"})


def test_missing_instance_profile_becomes_a_role_placeholder_with_a_warning() -> None:
    result = convert(make_node_template(instanceProfile=None))
    assert result.objects[0].value["spec"]["role"] == "${KARPENTER_NODE_ROLE}"
    assert [note.field for note in result.notes if note.level == "warning"] == ["spec.role"]


@pytest.mark.parametrize(
    ("disruption", "expected", "expiry"),
    [
        (None, {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}, None),
        (
            {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"},
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
            None,
        ),
        (
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "expireAfter": "Never"},
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            "Never",
        ),
        (
            {"consolidateAfter": "Never", "budgets": [{"nodes": "10%", "schedule": "@daily", "duration": "8h"}]},
            {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "Never",
                "budgets": [{"nodes": "10%", "schedule": "@daily", "duration": "8h"}],
            },
            None,
        ),
    ],
)
def test_v1beta1_disruption_settings_are_converted(
    disruption: Object | None, expected: Object, expiry: str | None
) -> None:
    pool = convert_to_one(make_beta_pool(disruption=disruption))
    assert pool["spec"]["disruption"] == expected
    assert get_at_path(pool, f"{POOL}.expireAfter") == expiry


@pytest.mark.parametrize(
    ("value", "field", "remedy"),
    [
        (
            make_beta_pool(disruption={"consolidationPolicy": "WhenEmpty"}),
            "spec.disruption.consolidateAfter",
            "write 30s",
        ),
        (make_beta_pool(disruption={"consolidateAfter": "30s"}), "spec.disruption.consolidateAfter", "WhenEmpty"),
        (make_beta_pool(disruption={"consolidationPolicy": "Often"}), "spec.disruption.consolidationPolicy", "one of"),
        (make_beta_pool(disruption={"budgets": [{"node": "1"}]}), "spec.disruption.budgets[0].node", "nodes"),
        (
            make_beta_pool(nodeClassRef={"apiVersion": "karpenter.azure.com/v1", "kind": "AKS", "name": "a"}),
            "spec.template.spec.nodeClassRef",
            "not a node class of AWS",
        ),
        (make_beta_class(amiFamily=None), "spec.amiFamily", "is missing"),
        (make_beta_class(amiSelectorTerms=[{"name": "ami-*****"}]), "spec.amiSelectorTerms[0].name", "`id: "),
        (make_beta_class(amiSelectorTerms=[{"id": "i-1"}]), "spec.amiSelectorTerms[0].id", "ami-"),
        (make_beta_class(subnetSelectorTerms=[{}]), "spec.subnetSelectorTerms[0]", "is empty"),
        (make_beta_class(instanceStorePolicy="RAID5"), "spec.instanceStorePolicy", "RAID0"),
        (make_object("karpenter.sh/v1alpha5", "Machine", {}), "kind", "remove it"),
        (make_object("karpenter.sh/v1alpha5", "NodePool", {}), "kind", "has no NodePool: write"),
    ],
)
def test_field_of_older_apis_without_equivalent_is_rejected(value: Object, field: str, remedy: str) -> None:
    assert remedy in list_refusals(value)[field]


@pytest.mark.parametrize(
    ("value", "field", "path", "converted", "comment"),
    [
        (
            make_provisioner(providerRef=None),
            "spec.providerRef",
            f"{POOL}.nodeClassRef.name",
            "${EC2NODECLASS_NAME}",
            "the name of an EC2NodeClass",
        ),
        (
            make_beta_pool(nodeClassRef=None),
            "spec.template.spec.nodeClassRef.name",
            f"{POOL}.nodeClassRef.name",
            "${EC2NODECLASS_NAME}",
            "the name of an EC2NodeClass",
        ),
        (
            make_node_template(subnetSelector=None),
            "spec.subnetSelector",
            "spec.subnetSelectorTerms",
            [{"tags": {"karpenter.sh/discovery": "${DISCOVERY_TAG}"}}],
            "the value of the discovery tag, usually the cluster's name",
        ),
        (
            make_object("karpenter.sh/v1alpha5", "Provisioner", REF, ""),
            "metadata.name",
            "metadata.name",
            "${OBJECT_NAME}",
            "a name for this object",
        ),
    ],
)
def test_missing_value_becomes_a_commented_placeholder_and_exits_with_1(
    value: Object, field: str, path: str, converted: object, comment: str, tmp_path: Path, capsys: Out
) -> None:
    file = tmp_path / "snippet.yaml"
    file.write_text(yaml.safe_dump(value))
    assert main(["convert", "-f", str(file)]) == 1
    output, error_output = capsys.readouterr()
    [document] = yaml.safe_load_all(output)
    assert get_at_path(document, path) == converted
    [line] = [line for line in output.splitlines() if "${" in line]
    assert line.endswith(f"}}  # replace with {comment}")
    [message] = [line for line in error_output.splitlines() if ": missing: " in line]
    assert f": {field}: set to the placeholder ${{" in message
    assert message.endswith(f": replace it with {comment}")


def test_v1beta1_node_class_keeps_its_images_and_hop_limit() -> None:
    node_class = convert_to_one(make_beta_class(amiSelectorTerms=[{"tags": {"a": "b"}}], associatePublicIPAddress=True))
    assert node_class["spec"]["amiFamily"] == "AL2"
    assert node_class["spec"]["metadataOptions"]["httpPutResponseHopLimit"] == 2
    assert convert_to_one(make_beta_class())["spec"]["amiSelectorTerms"] == [{"alias": "al2@latest"}]


def test_server_generated_fields_are_dropped() -> None:
    old = make_beta_class() | {"status": {"amis": []}}
    old["metadata"] |= {
        "uid": "1",
        "resourceVersion": "2",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "namespace": "x",
        "labels": {"kept": "yes"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "too"},
    }
    new = convert_to_one(old)
    assert new["metadata"] == {"name": "default", "labels": {"kept": "yes"}, "annotations": {"kept": "too"}}
    assert "status" not in new


def test_nodeclaim_is_converted_with_a_warning_about_applying_it() -> None:
    spec = {"nodeClassRef": {"name": "a"}, "requirements": [], "resources": {"requests": {"cpu": "1"}}}
    result = convert(make_object("karpenter.sh/v1beta1", "NodeClaim", spec))
    [claim] = result.objects
    assert claim.value["spec"]["resources"] == {"requests": {"cpu": "1"}}
    assert [note.level for note in result.notes if "launches an instance" in note.message] == ["warning"]


KUBELET = {"kubeletConfiguration": {"maxPods": 50, "containerRuntime": "containerd", "clusterDNS": ["10.0.0.10"]}}


def map_max_pods(result: ConversionResult) -> dict[str, object]:
    node_classes = [obj.value for obj in result.objects if obj.value["kind"] == "EC2NodeClass"]
    return {
        node_class["metadata"]["name"]: node_class["spec"].get("kubelet", {}).get("maxPods")
        for node_class in node_classes
    }


def map_node_classes(result: ConversionResult) -> dict[str, object]:
    node_pools = [obj.value for obj in result.objects if obj.value["kind"] == "NodePool"]
    return {
        node_pool["metadata"]["name"]: get_at_path(node_pool, f"{POOL}.nodeClassRef.name") for node_pool in node_pools
    }


def test_nodepool_kubelet_configuration_moves_to_its_node_class() -> None:
    result = convert(make_node_template(), make_provisioner(**KUBELET), make_provisioner("other", **KUBELET))
    assert map_max_pods(result) == {"default": 50}
    assert map_node_classes(result) == {"default": "default", "other": "default"}


def test_nodepools_with_different_kubelet_settings_get_separate_node_classes() -> None:
    second_pool = make_provisioner("other", kubeletConfiguration={"maxPods": 20})
    result = convert(make_node_template(), make_provisioner(**KUBELET), second_pool, make_provisioner("third"))
    assert map_max_pods(result) == {"default": None, "default-default": 50, "default-other": 20}
    assert map_node_classes(result) == {"default": "default-default", "other": "default-other", "third": "default"}


def test_kubelet_configuration_without_its_node_class_file_is_rejected() -> None:
    assert "add its file" in list_refusals(make_provisioner(**KUBELET))["spec.kubeletConfiguration"]


def test_v1_node_class_receives_the_kubelet_of_a_v1beta1_nodepool() -> None:
    node_class = make_object("karpenter.k8s.aws/v1", "EC2NodeClass", V1_CLASS | {"kubelet": {"maxPods": 10}})
    assert map_max_pods(convert(node_class, make_beta_pool(kubelet={"maxPods": 50}))) == {
        "default": 10,
        "default-default": 50,
    }


def test_pod_annotations_labels_and_selectors_are_converted() -> None:
    pod = {
        "metadata": {"annotations": {"karpenter.sh/do-not-evict": True, "other": "x"}},
        "spec": {
            "nodeSelector": {"karpenter.sh/provisioner-name": "a", "mine": "b"},
            "topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}],
            "affinity": {"terms": [{"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}]},
        },
    }
    cron = make_object("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": pod}}})
    new = get_at_path(convert_to_one(cron), "spec.jobTemplate.spec.template")
    assert new["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true", "other": "x"}
    assert new["spec"]["nodeSelector"] == {"karpenter.sh/nodepool": "a", "mine": "b"}
    assert new["spec"]["topologySpreadConstraints"] == [{"topologyKey": "topology.kubernetes.io/zone"}]
    assert get_at_path(new, "spec.affinity.terms.0.matchExpressions.0.key") == "kubernetes.io/os"


@pytest.mark.parametrize(
    ("annotations", "protection", "words"),
    [
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "true", "adds karpenter.sh/do-not-disrupt"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": False}, "true", "adds karpenter.sh/do-not-disrupt"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, None, "has no effect"),
        ({"cluster-autoscaler.kubernetes.io/enable-ds-eviction": "true"}, None, "has no effect"),
        (
            {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "2h"},
            "2h",
            "has no effect on Joiner",
        ),
    ],
)
def test_annotations_of_cluster_autoscaler_are_kept_and_translated(
    annotations: dict[str, Any], protection: str | None, words: str
) -> None:
    template = {"metadata": {"annotations": annotations}, "spec": {}}
    deployment = make_object("apps/v1", "Deployment", {"template": template})
    result = convert(deployment)
    converted_annotations = get_at_path(convert_to_one(deployment), "spec.template.metadata.annotations")
    assert converted_annotations.get("karpenter.sh/do-not-disrupt") == protection
    assert annotations.keys() <= converted_annotations.keys()
    assert any(words in note.message for note in result.notes)


def test_misspelled_annotation_gets_a_suggestion() -> None:
    result = convert(make_provisioner(annotations={"arpenter.sh/do-not-consolidate": "true"}))
    [note] = [note for note in result.notes if note.level == "warning"]
    assert "did you mean karpenter.sh/do-not-consolidate?" in note.message


def test_global_settings_become_stack_settings() -> None:
    setting_values = {
        "aws.clusterName": "prod",
        "aws.reservedENIs": "1",
        "batchMaxDuration": "10s",
        "aws.enablePodENI": "true",
    }
    result = convert(make_settings(**setting_values, **{"featureGates.driftEnabled": "true"}))
    assert result.stack_settings == {"cluster": "prod", "reserved-enis": "1"}
    assert (result.objects, {note.level for note in result.notes}) == ((), {"changed"})


def test_node_name_convention_setting_is_reported_as_changed() -> None:
    [note] = convert(make_settings(**{"aws.nodeNameConvention": "resource-name"})).notes
    assert (note.level, "the subnet decides" in note.message) == ("changed", True)


def test_controller_environment_becomes_stack_settings_and_replicas_get_a_warning() -> None:
    env = {
        "CLUSTER_NAME": "prod",
        "FEATURE_GATES": "Drift=true,NodeRepair=true",
        "AWS_FEATURE_GATES": "NodeClassCEL=true",
        "DISABLE_DRY_RUN": "true",
        "LOG_LEVEL": "debug",
        "INTERRUPTION_QUEUE": "prod",
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "CLUSTER_ENDPOINT": "",
    }
    listed = [{"name": name, "value": value} for name, value in env.items()]
    container: Object = {"image": "public.ecr.aws/karpenter/controller:1.9.0@sha256:1", "env": listed}
    deployment = make_object(
        "apps/v1", "Deployment", {"replicas": 2, "template": {"spec": {"containers": [container]}}}, "k"
    )
    result = convert(deployment)
    assert result.stack_settings == {
        "cluster": "prod",
        "feature-gates": "NodeRepair=true",
        "aws-feature-gates": "NodeClassCEL=true",
        "disable-dry-run": "true",
        "log-level": "DEBUG",
    }
    assert [obj.value for obj in result.objects] == [deployment]
    assert [note.field for note in result.notes if note.level == "warning"] == ["spec.replicas"]
    assert any("INTERRUPTION_QUEUE no longer needed" in note.message for note in result.notes)


def test_typographic_quotes_are_rejected() -> None:
    wrong = make_provisioner(labels={"team": "\u201ca\u201d"})
    assert any("typographic quotes" in note.message for note in convert(wrong).notes)


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("aws.assumeRoleARN", "arn", "deploy the stack"),
        ("aws.enableENILimitedPodDensity", "false", "maxPods: 110"),
        ("aws.tags", "team=a", "JSON object"),
        ("clusterNam", "x", "did you mean aws.clusterName? Correct or remove"),
        ("colour", "x", "correct or remove"),
    ],
)
def test_global_setting_without_equivalent_is_rejected(key: str, value: str, remedy: str) -> None:
    assert remedy in list_refusals(make_settings(**{key: value}))[f"data.{key}"]


def test_logging_configuration_without_equivalent_gets_a_warning() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config-logging"}}
    result = convert(config | {"data": {"zap-logger-config": "{}", "loglevel.webhook": "error"}})
    assert [note.level for note in result.notes] == ["warning", "warning"]


@pytest.mark.parametrize(
    ("data", "level"),
    [
        ({"loglevel.controller": "debug"}, "DEBUG"),
        ({"loglevel.controller": "loud"}, None),
        ({"zap-logger-config": '{"level": "warn", "encoding": "console"}'}, "WARNING"),
        ({"loglevel.controller": "error", "zap-logger-config": '{"level": "debug"}'}, "ERROR"),
    ],
)
def test_controller_log_level_becomes_a_stack_setting(data: dict[str, str], level: str | None) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config-logging"}, "data": data}
    messages = " ".join(note.message for note in convert(config).notes)
    assert (f"log-level: {level} in clusters/NAME.yaml" in messages) is (level is not None)


OLD = """# what we had
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  providerRef: {name: default}
  weight: 200
---
apiVersion: v1
kind: Service  # stays as it is
metadata:
  name: web
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: s}}
"""


def test_convert_prints_objects_and_reports_file_and_line(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLD)
    assert main(["convert", "-f", str(file)]) == 1
    out, error_output = capsys.readouterr()
    assert out.startswith("apiVersion: v1\nkind: Service  # stays as it is\n")
    assert [manifest["kind"] for manifest in yaml.safe_load_all(out)] == ["Service", "Secret"]
    assert f"{file}:7: refused: Provisioner default: spec.weight: is 200" in error_output


def test_converted_output_converts_to_itself(tmp_path: Path, capsys: Out) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(yaml.safe_dump_all([make_provisioner(**KUBELET), make_node_template()]))
    assert main(["convert", "-f", str(first)]) == 0
    once = capsys.readouterr().out
    second.write_text(once)
    assert main(["convert", "-f", str(second)]) == 0
    assert capsys.readouterr() == (once, "")


def test_json_output_has_objects_settings_and_notes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Out
) -> None:
    input_documents = json.dumps(
        [make_provisioner(), make_settings(**{"aws.clusterName": "c"}), {"no": "object"}]
    ).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input_documents.replace(b"}, {", b"}\n{")[1:-1])))
    settings_path = tmp_path / "settings.yaml"
    assert main(["convert", "-f", "-", "-o", "json", "--settings", str(settings_path)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [manifest["kind"] for manifest in document["objects"]] == ["NodePool"]
    assert yaml.safe_load(settings_path.read_text()) == document["settings"] == {"cluster": "c"}
    assert document["notes"][0]["level"] == "changed"
    assert len(document["unreadable"]) == 1


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ('a:\n- "x", "y"\n', 2, '["x", "y"]'),
        ("a:\n  - key: type: worker\n", 2, "write `key: type`"),
        ("a:\n\tb: c\n", 2, "spaces"),
    ],
)
def test_common_yaml_mistake_is_reported_with_line_and_fix(
    tmp_path: Path, capsys: Out, text: str, line: int, remedy: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    assert main(["convert", "-f", str(file)]) == 1
    error_output = capsys.readouterr().err
    assert f"{file}:{line}: not YAML" in error_output
    assert remedy in error_output


def test_unwritable_settings_path_is_reported(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(make_provisioner()))
    assert main(["convert", "-f", str(file), "--settings", str(tmp_path)]) == 1
    assert "choose a writable path" in capsys.readouterr().err


def test_convert_without_input_is_rejected(capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["convert"])
    assert raised.value.code == 2
    assert "no input: add -f FILE" in capsys.readouterr().err


def test_converted_example_passes_lint(tmp_path: Path, capsys: Out) -> None:
    assert main(["convert", "-f", "examples/older"]) == 0
    new = tmp_path / "new.yaml"
    new.write_text(capsys.readouterr().out)
    assert main(["lint", "-f", str(new)]) == 0
    assert capsys.readouterr().out == ""
