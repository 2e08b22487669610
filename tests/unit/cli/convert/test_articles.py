"""`joiner convert` and `joiner lint` on manifests from articles: complete, half copied, or one level wrong."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.convert.reading.fixes import suggest_fix
from cli.main import main
from shared.crds.definitions import load_shipped_crds
from tests.unit.cli.convert.cli_old_objects import (
    CLASS_REF,
    POOL,
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
OLDEST = {"instanceProfile": "p", "cluster": {"name": "shop", "endpoint": "https://shop"}}
PROVIDER = {"providerRef": None, "provider": OLDEST}
TYPED = {"apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS"}
EBS = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 100}}


def make_kubelet_provisioner(**config: object) -> Object:
    return make_provisioner(kubeletConfiguration=config)


def make_beta_pool_with(*path: str, **fields: object) -> Object:
    """Return a v1beta1 NodePool with *fields* at *path*."""
    pool = make_beta_pool()
    inner = pool["spec"]
    for key in path:
        inner = inner.setdefault(key, {})
    inner |= fields
    return pool


def make_current_pool(**spec: object) -> Object:
    template = {"spec": {"nodeClassRef": CLASS_REF, "requirements": []}}
    return make_object("karpenter.sh/v1", "NodePool", {"template": template} | spec)


def make_current_class(**spec: object) -> Object:
    return make_object("karpenter.k8s.aws/v1", "EC2NodeClass", V1_CLASS | spec)


@pytest.mark.parametrize("api", ["karpenter.sh/v1alpha4", "karpenter.sh/v1alpha5"])
def test_provider_cluster_becomes_subnet_selectors_and_stack_settings(api: str) -> None:
    result = convert(make_provisioner("web", **PROVIDER) | {"apiVersion": api})
    node_class, pool = (obj.value for obj in result.objects)
    by_tag = [{"tags": {"kubernetes.io/cluster/shop": "*"}}]
    assert node_class["spec"]["subnetSelectorTerms"] == node_class["spec"]["securityGroupSelectorTerms"] == by_tag
    assert result.stack_settings == {"cluster": "shop", "kube-endpoint": "https://shop"}
    assert get_at_path(pool, f"{POOL}.nodeClassRef.name") == "web"


def test_explicit_subnet_selector_overrides_the_provider_cluster() -> None:
    provider = OLDEST | TYPED | {"subnetSelector": {"a": "b"}}
    node_class, _ = (obj.value for obj in convert(make_provisioner(providerRef=None, provider=provider)).objects)
    assert node_class["spec"]["subnetSelectorTerms"] == [{"tags": {"a": "b"}}]


@pytest.mark.parametrize(
    ("old", "path", "expected"),
    [
        (make_node_template(**TYPED), "spec.instanceProfile", "p"),
        (
            make_node_template(amiSelector={"aws::owners": "self"}),
            "spec.amiSelectorTerms",
            [{"name": "*", "owner": "self"}],
        ),
        (
            make_beta_pool_with("template", metadata={"creationTimestamp": None, "name": None}),
            "spec.template.metadata",
            None,
        ),
        (
            make_beta_pool(
                nodeClassRef={"apiVersion": "karpenter.sh/v1beta1", "kind": "EC2NodeClass", "name": "default"}
            ),
            f"{POOL}.nodeClassRef",
            CLASS_REF,
        ),
        (make_beta_pool(resources={}), f"{POOL}.resources", None),
        (
            make_beta_pool_with("disruption", budgets=[{"nodes": "1", "reasons": ["Empty"]}]),
            "spec.disruption.budgets.0.reasons",
            ["Empty"],
        ),
        (make_beta_class(instanceStorePolicy="RAID0"), "spec.instanceStorePolicy", "RAID0"),
        (
            make_beta_class(
                blockDeviceMappings=[{"deviceName": "a", "rootVolume": True, "ebs": {"volumeSize": "9Gi"}}]
            ),
            "spec.blockDeviceMappings.0.rootVolume",
            True,
        ),
        (make_node_template(detailedMonitoring="true"), "spec.detailedMonitoring", True),
        (
            make_beta_class() | {"metadata": {"name": "a", "generateName": "a-", "finalizers": ["x"]}},
            "metadata",
            {"name": "a"},
        ),
        (make_beta_class() | {"metadata": {"generateName": "a-"}}, "metadata", {"generateName": "a-"}),
    ],
)
def test_unusual_but_valid_field_is_converted(old: Object, path: str, expected: object) -> None:
    assert get_at_path(convert_to_one(old), path) == expected


@pytest.mark.parametrize(
    ("old", "field", "remedy"),
    [
        (make_provisioner(providerRef="default"), "spec.providerRef", "write providerRef: {name: default}"),
        (
            make_provisioner(providerRef=None, provider={"name": "a"}),
            "spec.provider",
            "write it as providerRef: {name: a}",
        ),
        (make_provisioner(consolidation=True), "spec.consolidation", "write consolidation: {enabled: true}"),
        (make_provisioner(consolidation="enabled"), "spec.consolidation", "write consolidation: {enabled: true}"),
        (make_provisioner(consolidation={"enabled": "yes"}), "spec.consolidation.enabled", "write true"),
        (
            make_provisioner(consolidation={"ttlSecondsAfterEmpty": 3}),
            "spec.consolidation.ttlSecondsAfterEmpty",
            "move it to spec",
        ),
        (make_provisioner(ttlSecondsAfterEmpty="30s"), "spec.ttlSecondsAfterEmpty", "write 30"),
        (make_provisioner(ttlSecondsAfterEmpty="30d"), "spec.ttlSecondsAfterEmpty", "write 2592000"),
        (make_provisioner(ttlSecondsAfterEmpty=30.0), "spec.ttlSecondsAfterEmpty", "write 30"),
        (make_provisioner(weight="9" * 5000), "spec.weight", "write"),
        (make_provisioner(ttlSecondsAfterEmpty="9" * 20 + "d"), "spec.ttlSecondsAfterEmpty", "whole number"),
        (make_provisioner(weight="1,000"), "spec.weight", "write 1000"),
        (make_provisioner(amiFamily="AL2"), "spec.amiFamily", "to the AWSNodeTemplate"),
        (make_provisioner(expireAfter="720h"), "spec.expireAfter", "ttlSecondsUntilExpired"),
        (make_provisioner(requirements=[{"key": "a"}]), "spec.requirements[0].operator", "without a hyphen"),
        (
            make_provisioner(requirements=[{"operator": "In"}]),
            "spec.requirements[0].key",
            "below the key, without a hyphen",
        ),
        (
            make_provisioner(requirements=[{"values": ["a"]}]),
            "spec.requirements[0].key",
            "below the key, without a hyphen",
        ),
        (make_provisioner(labels={"a": {"NAME": None}}), "spec.labels.a", "write its value, in quotes"),
        (make_provisioner(limits={"resources": {"cpu": "10 cores"}}), "spec.limits.resources.cpu", "write 10"),
        (make_provisioner(limits={"resources": {"memory": "100GB"}}), "spec.limits.resources.memory", "100Gi"),
        (make_provisioner(limits={"resources": {"cpu": "9GB"}}), "spec.limits.resources.cpu", "write a quantity"),
        (make_provisioner() | {"metadata": "web"}, "metadata", "write metadata: {name: web}"),
        (make_provisioner() | {"name": "web"}, "name", "move it to metadata"),
        (make_provisioner() | {"requirements": []}, "requirements", "move it to spec"),
        (
            make_object("karpenter.sh/v1alpha5", "Provisioner", {"providerRef": {"name": "a"}}, "web\uff1aa"),
            "metadata.name",
            "web-a",
        ),
        (make_provisioner() | {"metadata": "name\uff1aweb"}, "metadata", "`name: web`"),
        (make_provisioner() | {"metadata": {"name": "{{ .Values.x }}"}}, "metadata.name", "helm template"),
        (make_provisioner() | {"metadata": {"name": "a-{% if x %}"}}, "metadata.name", "render it first"),
        (
            make_kubelet_provisioner(clusterDNS="10.0.0.10"),
            "spec.kubeletConfiguration.clusterDNS",
            'write a list: clusterDNS: ["10.0.0.10"]',
        ),
        (
            make_kubelet_provisioner(systemReserved={"storage": "1Gi"}),
            "spec.kubeletConfiguration.systemReserved.storage",
            "ephemeral-storage?",
        ),
        (
            make_kubelet_provisioner(kubeReserved={"nvidia": "1"}),
            "spec.kubeletConfiguration.kubeReserved.nvidia",
            "write one of cpu, memory",
        ),
        (
            make_kubelet_provisioner(kubeReserved={"cpu": "some"}),
            "spec.kubeletConfiguration.kubeReserved.cpu",
            "write a quantity",
        ),
        (
            make_kubelet_provisioner(kubeReserved={"cpu": "-1"}),
            "spec.kubeletConfiguration.kubeReserved.cpu",
            "0 or more",
        ),
        (
            make_kubelet_provisioner(evictionHard={"memory": "5%"}),
            "spec.kubeletConfiguration.evictionHard.memory",
            "memory.available?",
        ),
        (
            make_kubelet_provisioner(evictionHard={"memory.available": "105%"}),
            "spec.kubeletConfiguration.evictionHard.memory.available",
            "100% at most",
        ),
        (
            make_kubelet_provisioner(
                evictionSoft={"pid.available": "5%"}, evictionSoftGracePeriod={"pid.available": 90}
            ),
            "spec.kubeletConfiguration.evictionSoftGracePeriod.pid.available",
            "write 90s",
        ),
        (
            make_provisioner(requirements=[{"name": "a", "values": ["b"]}]),
            "spec.requirements[0].key",
            "replace name with key",
        ),
        (make_node_template(subnetSelector={"a": {"b": "c"}}), "spec.subnetSelector.a", "write a text"),
        (make_object("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", {}) | {"spec": None}, "spec", "the subnets"),
        (make_current_pool() | {"metadata": None}, "metadata.name", "is missing: add a name"),
        (make_current_class(tags={"a": True}), "spec.tags.a", 'in quotes: "true"'),
        (make_current_class(userData=["a"]), "spec.userData", "write one string"),
        (make_kubelet_provisioner(maxPods=-1), "spec.kubeletConfiguration.maxPods", "write 0 or more"),
        (
            make_node_template(subnetSelector="subnet-1"),
            "spec.subnetSelector",
            'write subnetSelector: {aws::ids: "subnet-1"}',
        ),
        (make_node_template(subnetSelector=["subnet-1", "subnet-2"]), "spec.subnetSelector", '"subnet-1,subnet-2"'),
        (make_node_template(subnetSelector={"a": None}), "spec.subnetSelector.a", "is empty"),
        (
            make_node_template(amiSelector={"aws::owner": "self"}),
            "spec.amiSelector.aws::owner",
            "did you mean aws::owners?",
        ),
        (make_node_template(subnetSelector={"aws::zone": "a"}), "spec.subnetSelector.aws::zone", "the tag's own key"),
        (make_node_template(amiFamily="amazon-linux-2"), "spec.amiFamily", "did you mean AL2?"),
        (make_node_template(amiFamily="al2"), "spec.amiFamily", "did you mean AL2?"),
        (make_node_template(amiFamily="Ubuntu2204"), "spec.amiFamily", "the family Ubuntu no longer exists"),
        (
            make_node_template(blockDeviceMappings=[{"ebs": {"volumeSize": "9Gi"}}]),
            "spec.blockDeviceMappings[0].deviceName",
            "deviceName: /dev/xvda",
        ),
        (
            make_node_template(blockDeviceMappings={"deviceName": "a"}),
            "spec.blockDeviceMappings",
            "`- ` before `deviceName`",
        ),
        (
            make_beta_pool(nodeClassRef="default"),
            "spec.template.spec.nodeClassRef",
            "write nodeClassRef: {name: default}",
        ),
        (make_beta_pool(nodeClassRef={"names": "a"}), "spec.template.spec.nodeClassRef.names", "did you mean name?"),
        (
            make_beta_pool_with(limits={"resources": {"cpu": 4}}),
            "spec.limits.resources",
            "one level higher: write cpu: 4",
        ),
        (make_beta_pool_with(limits={"cpu": "1,000"}), "spec.limits.cpu", "write 1000"),
        (
            make_beta_pool_with("disruption", ttlSecondsAfterEmpty=3),
            "spec.disruption.ttlSecondsAfterEmpty",
            "consolidateAfter: 30s",
        ),
        (make_beta_pool_with("disruption", expireAfter="1.5h"), "spec.disruption.expireAfter", "write 90m"),
        (
            make_beta_pool_with("disruption", consolidationPolicy="WhenEmptyOrUnderutilized"),
            "spec.disruption.consolidationPolicy",
            "or the object as karpenter.sh/v1",
        ),
        (
            make_beta_pool_with("disruption", consolidationPolicy="whenUnderUtilized"),
            "spec.disruption.consolidationPolicy",
            "did you mean WhenUnderutilized?",
        ),
        (
            make_beta_pool_with("disruption", consolidationPolicy="Never"),
            "spec.disruption.consolidationPolicy",
            "consolidateAfter: Never",
        ),
        (
            make_beta_pool_with("disruption", budgets=[{"schedule": "TZ=UTC 0 9 * * *", "duration": "8h"}]),
            "spec.disruption.budgets[0].schedule",
            'without a time zone: "0 9 * * *"',
        ),
        (
            make_beta_pool_with("disruption", budgets=[{"schedule": "0 0 9 * * *", "duration": "8h"}]),
            "spec.disruption.budgets[0].schedule",
            'without seconds: "0 9 * * *"',
        ),
        (
            make_beta_pool_with("disruption", budgets=[{"schedule": "0 9 * * *", "duration": "30s"}]),
            "spec.disruption.budgets[0].duration",
            "write 8h or 30m",
        ),
        (make_current_pool(ttlSecondsAfterEmpty=30), "spec.ttlSecondsAfterEmpty", "write spec.disruption"),
        (make_current_pool(limits={"resources": {"cpu": 4}}), "spec.limits.resources", "write cpu: 4"),
        (
            make_current_pool(template={"spec": {"nodeClassRef": "a", "requirements": []}}),
            "spec.template.spec.nodeClassRef",
            "name: a}",
        ),
        (make_current_class(subnetSelector={"a": "b"}), "spec.subnetSelector", "write subnetSelectorTerms"),
        (
            make_current_class(metadataOptions={"httpPutResponseHopLimit": 65}),
            "spec.metadataOptions",
            "write 64 or less",
        ),
        (make_settings(aws={"clusterName": "a"}), "data.aws", 'write aws.clusterName: "a"'),
        (make_settings(**{"aws.tags": {"a": "b"}}), "data.aws.tags", 'write aws.tags: \'{"a": "b"}\''),
        (make_object("kapenter.sh/v1beta1", "NodePool", {}), "apiVersion", "did you mean karpenter.sh/v1beta1?"),
        (make_object("v1", "EC2NodeClass", {}), "apiVersion", "did you mean karpenter.k8s.aws/v1?"),
        (make_beta_class(blockDeviceMappings=[{"ebs": {}}]), "spec.blockDeviceMappings[0].deviceName", "is missing"),
    ],
)
def test_common_article_mistake_is_rejected_with_a_fix(
    tmp_path: Path, capsys: Out, old: Object, field: str, remedy: str
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(old, sort_keys=False))
    assert main(["convert", "-f", str(file)]) == 1
    refused_lines = [
        line for line in capsys.readouterr().err.splitlines() if f": {field}" in line and "refused" in line
    ]
    assert any(remedy in line for line in refused_lines), refused_lines
    assert all(re.match(rf"joiner convert: {file}:\d+: refused: ", line) for line in refused_lines)
    assert main(["lint", "-f", str(file)]) == 1


@pytest.mark.parametrize(
    ("value", "field", "remedy"),
    [
        (
            make_current_pool(
                template={"spec": {"nodeClassRef": CLASS_REF | {"kind": "NodeClass"}, "requirements": []}}
            ),
            "spec.template.spec.nodeClassRef.kind",
            "write EC2NodeClass",
        ),
        (make_current_class(blockDeviceMappings=[EBS]), "spec.blockDeviceMappings[0].ebs.volumeSize", "100Gi"),
        (
            make_current_class(kubelet={"clusterDNS": "10.0.0.10"}),
            "spec.kubelet.clusterDNS",
            'write clusterDNS: ["10.0.0.10"]',
        ),
    ],
)
def test_lint_rejects_valid_manifest_that_cannot_launch_an_instance(
    tmp_path: Path, capsys: Out, value: Object, field: str, remedy: str
) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(yaml.safe_dump(value, sort_keys=False))
    assert main(["lint", "-f", str(file)]) == 1
    [error_line] = [line for line in capsys.readouterr().out.splitlines() if f": {field}: " in line]
    assert remedy in error_line
    assert main(["convert", "-f", str(file)]) == 0


def test_invalid_budget_schedule_is_reported_once() -> None:
    pool = make_beta_pool_with("disruption", budgets=[{"schedule": "CRON_TZ=UTC 0 9 * * *", "duration": "8h"}])
    assert len([note for note in convert(pool).notes if note.level == "refused"]) == 1


def test_label_with_a_space_is_reported_at_its_own_line(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(make_provisioner(labels={"fine": "a", "not fine": "b"})))
    assert main(["convert", "-f", str(file)]) == 1
    line = 1 + file.read_text().splitlines().index("    not fine: b")
    assert f"{file}:{line}: refused: " in capsys.readouterr().err


def test_all_kubelet_fields_move_to_the_node_class() -> None:
    config = {"cpuCFSQuota": False, "evictionSoft": {"pid.available": "5%"}, "podsPerCore": 2}
    config |= {"evictionSoftGracePeriod": {"pid.available": "1m30s"}, "clusterDNS": ["10.0.0.10"]}
    [node_class, _] = [
        obj.value for obj in convert(make_node_template(), make_provisioner(kubeletConfiguration=config)).objects
    ]
    assert node_class["spec"]["kubelet"] == config


def test_kubelet_of_a_rejected_nodepool_is_not_moved_to_a_node_class() -> None:
    pool = make_provisioner(kubeletConfiguration={"maxPods": 9}, weight=101)
    [node_class] = [obj.value for obj in convert(pool, make_node_template()).objects]
    assert "kubelet" not in node_class["spec"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (
            make_object("a.io/v1", "Workflow", {"meta": [{"annotations": {"karpenter.sh/do-not-evict": "true"}}]}),
            "spec.meta[0].annotations.karpenter.sh/do-not-evict",
        ),
        (
            make_object("a.io/v1", "Job", {"nodeSelector": {"karpenter.sh/provisioner-name": "a"}})
            | {"kind": "SparkJob"},
            "spec.nodeSelector.karpenter.sh/provisioner-name",
        ),
        (
            make_current_pool(
                template={"spec": {"nodeClassRef": CLASS_REF | {"group": "eks.amazonaws.com"}, "requirements": []}}
            ),
            "spec.template.spec.nodeClassRef",
        ),
        (
            make_object(
                "karpenter.sh/v1",
                "NodeClaim",
                {"nodeClassRef": CLASS_REF | {"group": "eks.amazonaws.com"}, "requirements": []},
            ),
            "spec.nodeClassRef",
        ),
    ],
)
def test_unconverted_object_with_karpenter_keys_gets_a_warning(value: Object, field: str) -> None:
    result = convert(value)
    assert [obj.value for obj in result.objects] == [value]
    assert [(note.level, note.field) for note in result.notes] == [("warning", field)]


def iterate_rule_messages(tree: Object) -> Iterator[str]:
    """Yield the messages of the validation rules of a CRD schema."""
    yield from (str(rule["message"]) for rule in tree.get("x-kubernetes-validations", ()))
    inner = [*tree.get("properties", {}).values(), tree.get("items"), tree.get("additionalProperties")]
    yield from (message for subtree in inner if isinstance(subtree, dict) for message in iterate_rule_messages(subtree))


def test_every_crd_validation_rule_has_a_suggested_fix() -> None:
    versions = [version for crd in load_shipped_crds() for version in crd["spec"]["versions"]]
    messages = {
        message
        for crd_version in versions
        for message in iterate_rule_messages(crd_version["schema"]["openAPIV3Schema"])
    }
    new = sorted(
        message for message in messages if "immutable" not in message and "cannot begin or cease" not in message
    )
    assert len(new) > 30
    assert [
        message for message in new if suggest_fix("spec.x", f"Invalid value: {message}", None) == "correct it"
    ] == []


def make_deployment(meta: Object, pod: Object) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"} | meta, "spec": {"template": pod}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (make_deployment({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, {}), "has no effect here"),
        (
            make_deployment({}, {"metadata": {"labels": {"karpenter.sh/do-not-disrupt": "true"}}}),
            "has no effect as a label",
        ),
    ],
)
def test_misplaced_do_not_disrupt_annotation_is_reported(
    tmp_path: Path, capsys: Out, value: Object, words: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(value))
    assert main(["lint", "-f", str(file)]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert "move it to spec.template.metadata.annotations" in out


def test_foreign_kind_named_nodepool_is_not_rejected() -> None:
    assert list_refusals(make_object("hypershift.openshift.io/v1", "NodePool", {})) == {}
