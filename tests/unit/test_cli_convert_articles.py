"""`joiner convert` and `joiner lint` on what articles of five years have: whole, half copied, or one level wrong."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conversion.remedies import remedy_for
from cli.main import main
from sim.cluster.api_definitions import shipped_definitions
from tests.unit.cli_old_objects import (
    CLASS_REF,
    POOL,
    V1_CLASS,
    at,
    beta_class,
    beta_pool,
    converted,
    made,
    node_template,
    only,
    provisioner,
    refusals,
    settings,
)

Object = dict[str, Any]
Out = pytest.CaptureFixture[str]
OLDEST = {"instanceProfile": "p", "cluster": {"name": "shop", "endpoint": "https://shop"}}
PROVIDER = {"providerRef": None, "provider": OLDEST}
TYPED = {"apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS"}
EBS = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 100}}


def kubelet(**config: object) -> Object:
    return provisioner(kubeletConfiguration=config)


def beta(*path: str, **fields: object) -> Object:
    """Answer a pool of v1beta1 with *fields* at *path* of it."""
    pool = beta_pool()
    inner = pool["spec"]
    for key in path:
        inner = inner.setdefault(key, {})
    inner |= fields
    return pool


def now(**spec: object) -> Object:
    template = {"spec": {"nodeClassRef": CLASS_REF, "requirements": []}}
    return made("karpenter.sh/v1", "NodePool", {"template": template} | spec)


def class_now(**spec: object) -> Object:
    return made("karpenter.k8s.aws/v1", "EC2NodeClass", V1_CLASS | spec)


@pytest.mark.parametrize("api", ["karpenter.sh/v1alpha4", "karpenter.sh/v1alpha5"])
def test_the_cluster_of_a_provider_says_which_subnets_and_is_a_knob(api: str) -> None:
    done = converted(provisioner("web", **PROVIDER) | {"apiVersion": api})
    node_class, pool = (one.value for one in done.objects)
    by_tag = [{"tags": {"kubernetes.io/cluster/shop": "*"}}]
    assert node_class["spec"]["subnetSelectorTerms"] == node_class["spec"]["securityGroupSelectorTerms"] == by_tag
    assert done.knobs == {"joiner:cluster": "shop", "joiner:kube-endpoint": "https://shop"}
    assert at(pool, f"{POOL}.nodeClassRef.name") == "web"


def test_who_names_subnets_gets_those_and_not_the_clusters() -> None:
    provider = OLDEST | TYPED | {"subnetSelector": {"a": "b"}}
    node_class, _ = (one.value for one in converted(provisioner(providerRef=None, provider=provider)).objects)
    assert node_class["spec"]["subnetSelectorTerms"] == [{"tags": {"a": "b"}}]


@pytest.mark.parametrize(
    ("old", "path", "wanted"),
    [
        (node_template(**TYPED), "spec.instanceProfile", "p"),
        (node_template(amiSelector={"aws::owners": "self"}), "spec.amiSelectorTerms", [{"name": "*", "owner": "self"}]),
        (beta("template", metadata={"creationTimestamp": None, "name": None}), "spec.template.metadata", None),
        (
            beta_pool(nodeClassRef={"apiVersion": "karpenter.sh/v1beta1", "kind": "EC2NodeClass", "name": "default"}),
            f"{POOL}.nodeClassRef",
            CLASS_REF,
        ),
        (beta_pool(resources={}), f"{POOL}.resources", None),
        (
            beta("disruption", budgets=[{"nodes": "1", "reasons": ["Empty"]}]),
            "spec.disruption.budgets.0.reasons",
            ["Empty"],
        ),
        (beta_class(instanceStorePolicy="RAID0"), "spec.instanceStorePolicy", "RAID0"),
        (
            beta_class(blockDeviceMappings=[{"deviceName": "a", "rootVolume": True, "ebs": {"volumeSize": "9Gi"}}]),
            "spec.blockDeviceMappings.0.rootVolume",
            True,
        ),
        (node_template(detailedMonitoring="true"), "spec.detailedMonitoring", True),
        (
            beta_class() | {"metadata": {"name": "a", "generateName": "a-", "finalizers": ["x"]}},
            "metadata",
            {"name": "a"},
        ),
        (beta_class() | {"metadata": {"generateName": "a-"}}, "metadata", {"generateName": "a-"}),
    ],
)
def test_what_only_looks_odd_is_converted(old: Object, path: str, wanted: object) -> None:
    assert at(only(old), path) == wanted


@pytest.mark.parametrize(
    ("old", "field", "remedy"),
    [
        (provisioner(providerRef="default"), "spec.providerRef", "write providerRef: {name: default}"),
        (provisioner(providerRef=None, provider={"name": "a"}), "spec.provider", "write it as providerRef: {name: a}"),
        (provisioner(consolidation=True), "spec.consolidation", "write consolidation: {enabled: true}"),
        (provisioner(consolidation="enabled"), "spec.consolidation", "write consolidation: {enabled: true}"),
        (provisioner(consolidation={"enabled": "yes"}), "spec.consolidation.enabled", "write true"),
        (
            provisioner(consolidation={"ttlSecondsAfterEmpty": 3}),
            "spec.consolidation.ttlSecondsAfterEmpty",
            "under spec",
        ),
        (provisioner(ttlSecondsAfterEmpty="30s"), "spec.ttlSecondsAfterEmpty", "write 30"),
        (provisioner(ttlSecondsAfterEmpty="30d"), "spec.ttlSecondsAfterEmpty", "write 2592000"),
        (provisioner(ttlSecondsAfterEmpty=30.0), "spec.ttlSecondsAfterEmpty", "write 30"),
        (provisioner(weight="9" * 5000), "spec.weight", "write"),
        (provisioner(ttlSecondsAfterEmpty="9" * 20 + "d"), "spec.ttlSecondsAfterEmpty", "whole number"),
        (provisioner(weight="1,000"), "spec.weight", "write 1000"),
        (provisioner(amiFamily="AL2"), "spec.amiFamily", "into the AWSNodeTemplate"),
        (provisioner(expireAfter="720h"), "spec.expireAfter", "ttlSecondsUntilExpired"),
        (provisioner(requirements=[{"key": "a"}]), "spec.requirements[0].operator", "without a hyphen"),
        (provisioner(requirements=[{"operator": "In"}]), "spec.requirements[0].key", "without a hyphen of its own"),
        (provisioner(requirements=[{"values": ["a"]}]), "spec.requirements[0].key", "without a hyphen of its own"),
        (provisioner(labels={"a": {"NAME": None}}), "spec.labels.a", "write what it stands for, in quotes"),
        (provisioner(limits={"resources": {"cpu": "10 cores"}}), "spec.limits.resources.cpu", "write 10"),
        (provisioner(limits={"resources": {"memory": "100GB"}}), "spec.limits.resources.memory", "write 100Gi"),
        (provisioner(limits={"resources": {"cpu": "9GB"}}), "spec.limits.resources.cpu", "write an amount"),
        (provisioner() | {"metadata": "web"}, "metadata", "write metadata: {name: web}"),
        (provisioner() | {"name": "web"}, "name", "write it under metadata"),
        (provisioner() | {"requirements": []}, "requirements", "write it under spec"),
        (
            made("karpenter.sh/v1alpha5", "Provisioner", {"providerRef": {"name": "a"}}, "web\uff1aa"),
            "metadata.name",
            "web-a",
        ),
        (provisioner() | {"metadata": "name\uff1aweb"}, "metadata", "`name: web`"),
        (provisioner() | {"metadata": {"name": "{{ .Values.x }}"}}, "metadata.name", "helm template"),
        (provisioner() | {"metadata": {"name": "a-{% if x %}"}}, "metadata.name", "render it first"),
        (
            kubelet(clusterDNS="10.0.0.10"),
            "spec.kubeletConfiguration.clusterDNS",
            'write a list: clusterDNS: ["10.0.0.10"]',
        ),
        (
            kubelet(systemReserved={"storage": "1Gi"}),
            "spec.kubeletConfiguration.systemReserved.storage",
            "ephemeral-storage?",
        ),
        (kubelet(kubeReserved={"nvidia": "1"}), "spec.kubeletConfiguration.kubeReserved.nvidia", "write cpu, memory"),
        (kubelet(kubeReserved={"cpu": "some"}), "spec.kubeletConfiguration.kubeReserved.cpu", "write an amount"),
        (kubelet(kubeReserved={"cpu": "-1"}), "spec.kubeletConfiguration.kubeReserved.cpu", "0 or more"),
        (kubelet(evictionHard={"memory": "5%"}), "spec.kubeletConfiguration.evictionHard.memory", "memory.available?"),
        (
            kubelet(evictionHard={"memory.available": "105%"}),
            "spec.kubeletConfiguration.evictionHard.memory.available",
            "100% at most",
        ),
        (
            kubelet(evictionSoft={"pid.available": "5%"}, evictionSoftGracePeriod={"pid.available": 90}),
            "spec.kubeletConfiguration.evictionSoftGracePeriod.pid.available",
            "write 90s",
        ),
        (
            provisioner(requirements=[{"name": "a", "values": ["b"]}]),
            "spec.requirements[0].key",
            "key in place of name",
        ),
        (node_template(subnetSelector={"a": {"b": "c"}}), "spec.subnetSelector.a", "write a text"),
        (made("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", {}) | {"spec": None}, "spec", "which subnets"),
        (now() | {"metadata": None}, "metadata.name", "is missing: name it"),
        (class_now(tags={"a": True}), "spec.tags.a", 'in quotes: "true"'),
        (class_now(userData=["a"]), "spec.userData", "write one text"),
        (kubelet(maxPods=-1), "spec.kubeletConfiguration.maxPods", "write 0 or more"),
        (
            node_template(subnetSelector="subnet-1"),
            "spec.subnetSelector",
            'write subnetSelector: {aws::ids: "subnet-1"}',
        ),
        (node_template(subnetSelector=["subnet-1", "subnet-2"]), "spec.subnetSelector", '"subnet-1,subnet-2"'),
        (node_template(subnetSelector={"a": None}), "spec.subnetSelector.a", "is empty"),
        (node_template(amiSelector={"aws::owner": "self"}), "spec.amiSelector.aws::owner", "did you mean aws::owners?"),
        (node_template(subnetSelector={"aws::zone": "a"}), "spec.subnetSelector.aws::zone", "the tag's own key"),
        (node_template(amiFamily="amazon-linux-2"), "spec.amiFamily", "did you mean AL2?"),
        (node_template(amiFamily="al2"), "spec.amiFamily", "did you mean AL2?"),
        (node_template(amiFamily="Ubuntu2204"), "spec.amiFamily", "no family Ubuntu is left"),
        (
            node_template(blockDeviceMappings=[{"ebs": {"volumeSize": "9Gi"}}]),
            "spec.blockDeviceMappings[0].deviceName",
            "deviceName: /dev/xvda",
        ),
        (
            node_template(blockDeviceMappings={"deviceName": "a"}),
            "spec.blockDeviceMappings",
            "`- ` before `deviceName`",
        ),
        (beta_pool(nodeClassRef="default"), "spec.template.spec.nodeClassRef", "write nodeClassRef: {name: default}"),
        (beta_pool(nodeClassRef={"names": "a"}), "spec.template.spec.nodeClassRef.names", "did you mean name?"),
        (beta(limits={"resources": {"cpu": 4}}), "spec.limits.resources", "one level higher: write cpu: 4"),
        (beta(limits={"cpu": "1,000"}), "spec.limits.cpu", "write 1000"),
        (beta("disruption", ttlSecondsAfterEmpty=3), "spec.disruption.ttlSecondsAfterEmpty", "consolidateAfter: 30s"),
        (beta("disruption", expireAfter="1.5h"), "spec.disruption.expireAfter", "write 90m"),
        (
            beta("disruption", consolidationPolicy="WhenEmptyOrUnderutilized"),
            "spec.disruption.consolidationPolicy",
            "or the whole as karpenter.sh/v1",
        ),
        (
            beta("disruption", consolidationPolicy="whenUnderUtilized"),
            "spec.disruption.consolidationPolicy",
            "did you mean WhenUnderutilized?",
        ),
        (
            beta("disruption", consolidationPolicy="Never"),
            "spec.disruption.consolidationPolicy",
            "consolidateAfter: Never",
        ),
        (
            beta("disruption", budgets=[{"schedule": "TZ=UTC 0 9 * * *", "duration": "8h"}]),
            "spec.disruption.budgets[0].schedule",
            'without a zone: "0 9 * * *"',
        ),
        (
            beta("disruption", budgets=[{"schedule": "0 0 9 * * *", "duration": "8h"}]),
            "spec.disruption.budgets[0].schedule",
            'without seconds: "0 9 * * *"',
        ),
        (
            beta("disruption", budgets=[{"schedule": "0 9 * * *", "duration": "30s"}]),
            "spec.disruption.budgets[0].duration",
            "write 8h or 30m",
        ),
        (now(ttlSecondsAfterEmpty=30), "spec.ttlSecondsAfterEmpty", "write spec.disruption"),
        (now(limits={"resources": {"cpu": 4}}), "spec.limits.resources", "write cpu: 4"),
        (
            now(template={"spec": {"nodeClassRef": "a", "requirements": []}}),
            "spec.template.spec.nodeClassRef",
            "name: a}",
        ),
        (class_now(subnetSelector={"a": "b"}), "spec.subnetSelector", "write subnetSelectorTerms"),
        (class_now(metadataOptions={"httpPutResponseHopLimit": 65}), "spec.metadataOptions", "write 64 or less"),
        (settings(aws={"clusterName": "a"}), "data.aws", 'write aws.clusterName: "a"'),
        (settings(**{"aws.tags": {"a": "b"}}), "data.aws.tags", 'write aws.tags: \'{"a": "b"}\''),
        (made("kapenter.sh/v1beta1", "NodePool", {}), "apiVersion", "did you mean karpenter.sh/v1beta1?"),
        (made("v1", "EC2NodeClass", {}), "apiVersion", "did you mean karpenter.k8s.aws/v1?"),
        (beta_class(blockDeviceMappings=[{"ebs": {}}]), "spec.blockDeviceMappings[0].deviceName", "is missing"),
    ],
)
def test_what_articles_have_wrong_is_refused_with_what_to_write(
    tmp_path: Path, capsys: Out, old: Object, field: str, remedy: str
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(old, sort_keys=False))
    assert main(["convert", "-f", str(file)]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if f": {field}" in line and "refused" in line]
    assert any(remedy in line for line in said), said
    assert all(re.match(rf"joiner convert: {file}:\d+: refused: ", line) for line in said)
    assert main(["lint", "-f", str(file)]) == 1


@pytest.mark.parametrize(
    ("value", "field", "remedy"),
    [
        (
            now(template={"spec": {"nodeClassRef": CLASS_REF | {"kind": "NodeClass"}, "requirements": []}}),
            "spec.template.spec.nodeClassRef.kind",
            "write EC2NodeClass",
        ),
        (class_now(blockDeviceMappings=[EBS]), "spec.blockDeviceMappings[0].ebs.volumeSize", "write 100Gi"),
        (class_now(kubelet={"clusterDNS": "10.0.0.10"}), "spec.kubelet.clusterDNS", 'write clusterDNS: ["10.0.0.10"]'),
    ],
)
def test_what_a_server_takes_and_no_machine_could_be_made_of_is_an_error_of_lint(
    tmp_path: Path, capsys: Out, value: Object, field: str, remedy: str
) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(yaml.safe_dump(value, sort_keys=False))
    assert main(["lint", "-f", str(file)]) == 1
    [said] = [line for line in capsys.readouterr().out.splitlines() if f": {field}: " in line]
    assert remedy in said
    assert main(["convert", "-f", str(file)]) == 0


def test_the_fault_of_a_schedule_is_told_once() -> None:
    pool = beta("disruption", budgets=[{"schedule": "CRON_TZ=UTC 0 9 * * *", "duration": "8h"}])
    assert len([note for note in converted(pool).notes if note.level == "refused"]) == 1


def test_the_line_of_a_label_with_a_space_is_its_own(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(provisioner(labels={"fine": "a", "not fine": "b"})))
    assert main(["convert", "-f", str(file)]) == 1
    line = 1 + file.read_text().splitlines().index("    not fine: b")
    assert f"{file}:{line}: refused: " in capsys.readouterr().err


def test_the_whole_kubelet_moves() -> None:
    config = {"cpuCFSQuota": False, "evictionSoft": {"pid.available": "5%"}, "podsPerCore": 2}
    config |= {"evictionSoftGracePeriod": {"pid.available": "1m30s"}, "clusterDNS": ["10.0.0.10"]}
    [node_class, _] = [
        one.value for one in converted(node_template(), provisioner(kubeletConfiguration=config)).objects
    ]
    assert node_class["spec"]["kubelet"] == config


def test_a_kubelet_of_a_pool_that_is_refused_is_given_to_no_class() -> None:
    pool = provisioner(kubeletConfiguration={"maxPods": 9}, weight=101)
    [node_class] = [one.value for one in converted(pool, node_template()).objects]
    assert "kubelet" not in node_class["spec"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (
            made("a.io/v1", "Workflow", {"meta": [{"annotations": {"karpenter.sh/do-not-evict": "true"}}]}),
            "spec.meta[0].annotations.karpenter.sh/do-not-evict",
        ),
        (
            made("a.io/v1", "Job", {"nodeSelector": {"karpenter.sh/provisioner-name": "a"}}) | {"kind": "SparkJob"},
            "spec.nodeSelector.karpenter.sh/provisioner-name",
        ),
        (
            now(template={"spec": {"nodeClassRef": CLASS_REF | {"group": "eks.amazonaws.com"}, "requirements": []}}),
            "spec.template.spec.nodeClassRef",
        ),
        (
            made(
                "karpenter.sh/v1",
                "NodeClaim",
                {"nodeClassRef": CLASS_REF | {"group": "eks.amazonaws.com"}, "requirements": []},
            ),
            "spec.nodeClassRef",
        ),
    ],
)
def test_what_is_passed_as_it_is_and_says_nothing_to_us_is_warned_of(value: Object, field: str) -> None:
    done = converted(value)
    assert [one.value for one in done.objects] == [value]
    assert [(note.level, note.field) for note in done.notes] == [("warning", field)]


def rules(tree: Object) -> Iterator[str]:
    """Iterate over what the rules of a definition say when they are broken."""
    yield from (str(rule["message"]) for rule in tree.get("x-kubernetes-validations", ()))
    inner = [*tree.get("properties", {}).values(), tree.get("items"), tree.get("additionalProperties")]
    yield from (each for one in inner if isinstance(one, dict) for each in rules(one))


def test_every_rule_of_our_definitions_has_a_remedy() -> None:
    versions = [version for one in shipped_definitions() for version in one["spec"]["versions"]]
    said = {each for one in versions for each in rules(one["schema"]["openAPIV3Schema"])}
    new = sorted(each for each in said if "immutable" not in each and "cannot begin or cease" not in each)
    assert len(new) > 30
    assert [each for each in new if remedy_for("spec.x", f"Invalid value: {each}", None) == "correct it"] == []


def deployed(meta: Object, pod: Object) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"} | meta, "spec": {"template": pod}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (deployed({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, {}), "does nothing here"),
        (deployed({}, {"metadata": {"labels": {"karpenter.sh/do-not-disrupt": "true"}}}), "is a label here"),
    ],
)
def test_a_protection_that_stands_where_nobody_reads_it_is_told(
    tmp_path: Path, capsys: Out, value: Object, words: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(value))
    assert main(["lint", "-f", str(file)]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert "write it under spec.template.metadata.annotations" in out


def test_refusals_are_none_for_kinds_of_others_with_like_names() -> None:
    assert refusals(made("hypershift.openshift.io/v1", "NodePool", {})) == {}
