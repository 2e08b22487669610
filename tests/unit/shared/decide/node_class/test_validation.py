"""Findings about an EC2NodeClass: which field is invalid, and how to fix it."""

from typing import Any

import msgspec
import pytest

from shared.decide.node_class.validation import RESTRICTED_TAGS, lint_node_class, validate_node_class
from shared.model.ec2.account import ControlPlaneFacts, Subnet
from shared.model.karpenter.node_class import EC2NodeClass
from shared.wire.decode.node_class import parse_node_class
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import ObjectMetaJson
from tests.support.launch_cases import FACTS

VALID_SPEC: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "c"}}],
    "securityGroupSelectorTerms": [{"name": "nodes"}],
}


def make_node_class(**spec: Any) -> EC2NodeClass:
    spec_fields = {key: value for key, value in (VALID_SPEC | spec).items() if value is not None}
    return parse_node_class(wire.NodeClassJson(metadata=ObjectMetaJson(name="default"), spec=spec_fields))


def list_findings(facts: ControlPlaneFacts | None = FACTS, **spec: Any) -> list[tuple[str, str]]:
    return [(finding.reason, finding.message) for finding in validate_node_class(make_node_class(**spec), facts)]


def list_kubelet_findings(**fields: Any) -> list[tuple[str, str]]:
    return list_findings(kubelet=fields)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"amiFamily": "AL2023"},
        {"amiFamily": "Custom"},
        {"amiFamily": "Bottlerocket", "amiSelectorTerms": [{"id": "ami-0123"}, {"name": "own-*", "owner": "self"}]},
        {"amiSelectorTerms": [{"ssmParameter": "/own"}], "amiFamily": "AL2"},
        {"role": None, "instanceProfile": "own"},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}, {"instanceMatchCriteria": "open"}]},
        {"placementGroupSelector": {"name": "racks"}},
        {"networkInterfaces": [{"interfaceType": "interface"}, {"deviceIndex": 1, "interfaceType": "efa-only"}]},
        {"connectionTracking": {"udpTimeout": 30, "tcpEstablishedTimeout": 432000}},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}]},
        {"tags": {"Name": "mine", "team": "shop"}},
        {"kubelet": {"maxPods": 29, "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80}},
        {"kubelet": {"registryPullQPS": 20, "seccompDefault": True, "memoryThrottlingFactor": 0.9}},
    ],
)
def test_valid_node_class_has_no_findings(spec: dict[str, Any]) -> None:
    assert list_findings(**spec) == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"subnetSelectorTerms": []}, ("spec.subnetSelectorTerms: is empty", "id or tags")),
        ({"securityGroupSelectorTerms": []}, ("spec.securityGroupSelectorTerms: is empty",)),
        ({"amiSelectorTerms": []}, ("spec.amiSelectorTerms: is empty",)),
        ({"subnetSelectorTerms": [{}]}, ("spec.subnetSelectorTerms[0]: is empty",)),
        ({"subnetSelectorTerms": [{"id": "vpc-1"}]}, ("subnetSelectorTerms[0].id: 'vpc-1' is not an id", "subnet-")),
        ({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}, ("cannot be combined with other fields",)),
        ({"subnetSelectorTerms": [{"tags": {"a": ""}}]}, ("subnetSelectorTerms[0].tags", "`*` for any value")),
        ({"securityGroupSelectorTerms": [{"name": "a", "tags": {"a": "b"}}]}, ("cannot be combined",)),
        ({"capacityReservationSelectorTerms": [{"ownerID": "123456789012"}]}, ("[0]: is empty",)),
        ({"capacityReservationSelectorTerms": [{"id": "r-1"}]}, ("'r-1' is not an id", "cr-0123")),
        ({"amiSelectorTerms": [{"owner": "self"}], "amiFamily": "AL2"}, ("[0]: is empty",)),
        ({"amiSelectorTerms": [{"id": "ami-1"}]}, ("spec.amiFamily: is missing", "Bottlerocket")),
        (
            {"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "Fedora"},
            ("'Fedora' is not an AMI family", "al2023@latest"),
        ),
        ({"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "Ubuntu"}, ("Ubuntu is not supported", "Custom")),
        ({"amiSelectorTerms": [{"alias": "al2024@latest"}]}, ("amiSelectorTerms[0].alias: 'al2024@latest'", "al2023@")),
        ({"amiSelectorTerms": [{"alias": "al2023"}]}, ("has no version: write al2023@latest",)),
        ({"amiSelectorTerms": [{"alias": "windows2022@v1"}]}, ("support only the version latest",)),
        ({"amiSelectorTerms": [{"alias": "al2@latest"}, {"id": "ami-1"}]}, ("an alias must be the only term",)),
        ({"amiFamily": "Bottlerocket"}, ("spec.amiFamily: Bottlerocket contradicts the alias", "AL2023")),
        ({"role": None}, ("spec.role and spec.instanceProfile are missing", "instanceProfile")),
        ({"instanceProfile": "own"}, ("spec.role: cannot be combined with spec.instanceProfile",)),
        ({"placementGroupSelector": {}}, ("spec.placementGroupSelector: write either id or name",)),
        ({"metadataOptions": {"httpPutResponseHopLimit": 65}}, ("httpPutResponseHopLimit: 65: write 1 to 64",)),
        ({"blockDeviceMappings": [{"deviceName": "a"}]}, ("blockDeviceMappings[0].ebs: has neither volumeSize",)),
        (
            {
                "blockDeviceMappings": [
                    {"deviceName": "a", "ebs": {"volumeSize": "1Gi", "volumeInitializationRate": 100}},
                    {"deviceName": "a", "ebs": {"volumeSize": "1Gi"}},
                ]
            },
            ("volumeInitializationRate: needs a snapshotID", "a is mapped twice"),
        ),
        (
            {
                "blockDeviceMappings": [
                    {"deviceName": name, "rootVolume": True, "ebs": {"volumeSize": "9Gi"}} for name in ("a", "b")
                ]
            },
            ("spec.blockDeviceMappings: a and b are rootVolume: keep rootVolume on one of them",),
        ),
        ({"networkInterfaces": [{"interfaceType": "efa-only"}]}, ("card 0 and device 0, is not of type interface",)),
        ({"networkInterfaces": [{}, {}]}, ("device 0 of card 0 is named twice",)),
        (
            {"networkInterfaces": [{}, *({"deviceIndex": n, "interfaceType": "efa-only"} for n in (1, 2))]},
            ("card 0 has two efa-only interfaces",),
        ),
        (
            {"connectionTracking": {"udpTimeout": 61, "udpStreamTimeout": 59, "tcpEstablishedTimeout": 1}},
            ("udpTimeout: 61: write 30 to 60", "udpStreamTimeout: 59", "tcpEstablishedTimeout: 1"),
        ),
    ],
)
def test_invalid_spec_field_is_reported_with_its_path_and_fix(spec: dict[str, Any], words: tuple[str, ...]) -> None:
    findings = list_findings(**spec)
    assert {reason for reason, _ in findings} == {"ValidationFailed"}
    for word in words:
        assert any(word in message for _, message in findings), findings


@pytest.mark.parametrize("key", [*RESTRICTED_TAGS, "kubernetes.io/cluster/prod", "aws:cloudformation:stack", "k" * 129])
def test_restricted_tags_are_rejected(key: str) -> None:
    [(reason, message)] = list_findings(tags={key: "x", "team": "shop"})
    assert reason == "TagValidationFailed"
    assert f"spec.tags[{key[:20]}" in message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"maxPod": 3}, "spec.kubelet.maxPod: KubeletConfiguration has no such field: write maxPods"),
        ({"zzz": 3}, "remove it"),
        ({"registerWithTaints": []}, "spec.template.spec.taints"),
        ({"seccompDefault": "yes"}, 'spec.kubelet.seccompDefault: is "yes": write true or false'),
        ({"registryPullQPS": True}, "write a whole number"),
        ({"evictionHard": {"memory.free": "5%"}}, "spec.kubelet.evictionHard[memory.free]: unknown eviction signal"),
        ({"evictionHard": {"memory.available": "101%"}}, "'101%' is not a threshold"),
        ({"evictionHard": {"memory.available": "-1Mi"}}, "'-1Mi' is not a threshold"),
        ({"evictionHard": {"memory.available": "lots"}}, "'lots' is not a threshold"),
        (
            {"evictionSoft": {"memory.available": "5%"}},
            "has no evictionSoftGracePeriod: add a duration",
        ),
        ({"evictionSoftGracePeriod": {"memory.available": "1m"}}, "has no evictionSoft: add a threshold"),
        (
            {"evictionSoft": {"pid.available": "5%"}, "evictionSoftGracePeriod": {"pid.available": "soon"}},
            "'soon' is not a duration",
        ),
        ({"kubeReserved": {"gpu": "1"}}, "spec.kubelet.kubeReserved.gpu: cannot be reserved: use cpu"),
        ({"systemReserved": {"cpu": "-1"}}, "spec.kubelet.systemReserved.cpu: '-1' is below zero"),
        ({"podsPerCore": -1}, "spec.kubelet.podsPerCore: -1 is below zero"),
        ({"imageGCHighThresholdPercent": 101}, "101 is not a percentage"),
        ({"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80}, "80 is not above"),
    ],
)
def test_invalid_kubelet_configuration_is_rejected(fields: dict[str, Any], words: str) -> None:
    findings = list_kubelet_findings(**fields)
    assert {reason for reason, _ in findings} == {"InvalidKubeletConfiguration"}
    assert any(words in message for _, message in findings), findings


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"maxPods": "min(110, max_pods)"}, "spec.kubelet.maxPods"),
        ({"kubeReserved": {"memory": "vcpus * 10"}}, "spec.kubelet.kubeReserved.memory"),
    ],
)
def test_kubelet_expression_is_rejected_when_expressions_are_disabled(fields: dict[str, Any], path: str) -> None:
    [(reason, message)] = list_kubelet_findings(**fields)
    assert (reason, message.startswith(path)) == ("KubeletExpressionsDisabled", True)


@pytest.mark.parametrize(
    ("alias", "fields", "words"),
    [
        (
            "bottlerocket@latest",
            {"registryPullQPS": 5},
            "spec.kubelet.registryPullQPS: Bottlerocket does not support it",
        ),
        ("bottlerocket@latest", {"podsPerCore": 5}, "spec.kubelet.podsPerCore: Bottlerocket does not support it"),
        ("al2@latest", {"clusterDNS": ["10.0.0.1", "10.0.0.2"]}, "spec.kubelet.clusterDNS: AL2 supports one address"),
        ("windows2022@latest", {"seccompDefault": True}, "Windows2022 does not support it"),
    ],
)
def test_kubelet_setting_unsupported_by_the_ami_family_is_rejected(
    alias: str, fields: dict[str, Any], words: str
) -> None:
    [(reason, message)] = list_findings(amiSelectorTerms=[{"alias": alias}], kubelet=fields)
    assert reason == "UnsupportedKubeletConfiguration"
    assert words in message


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"userData": "MIME-Version: 1.0\n\nnothing"}, "UserDataInvalid", "has no parts"),
        (
            {"userData": "[settings", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
            "UserDataInvalid",
            "spec.userData: is not TOML",
        ),
        (
            {"userData": "settings = 1", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
            "UserDataInvalid",
            "settings is not a table",
        ),
        ({"userData": "#!" + "x" * 16_384}, "UserDataSizeLimitExceeded", "EC2 accepts 16,384"),
    ],
)
def test_invalid_user_data_is_rejected(spec: dict[str, Any], reason: str, words: str) -> None:
    [(actual_reason, message)] = list_findings(**spec)
    assert actual_reason == reason
    assert words in message
    assert list_findings(facts=None, **spec) == []


def test_al2023_requires_the_service_cidr() -> None:
    [(reason, message)] = list_findings(facts=msgspec.structs.replace(FACTS, service_cidr=""))
    assert reason == "ClusterCIDRResolutionFailed"
    assert "eks:DescribeCluster" in message


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"amiSelectorTerms": [{"name": "ami-0123"}], "amiFamily": "AL2023"}, "is an id: use the field `id`"),
        ({"userData": "echo hi"}, "is neither a script"),
        (
            {"userData": "[settings.kubernetes]\nfoo = 1", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
            "settings.kubernetes.foo: Joiner does not support it",
        ),
    ],
)
def test_lint_reports_likely_mistakes_in_a_valid_node_class(spec: dict[str, Any], words: str) -> None:
    [line] = lint_node_class(make_node_class(**spec))
    assert words in line


def test_lint_recommends_two_zones_and_accepts_valid_user_data() -> None:
    subnet = Subnet(subnet_id="subnet-1", zone="us-east-1a", zone_id="use1-az1", available_ip_count=1)
    [line] = lint_node_class(msgspec.structs.replace(make_node_class(), resolved_subnets=(subnet,)))
    assert "choose two zones" in line
    for own in ("#!/bin/sh", "MIME-Version: 1.0", "kind: NodeConfig", ""):
        assert list(lint_node_class(make_node_class(userData=own))) == []
    broken = {"userData": "[", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}
    assert list(lint_node_class(make_node_class(**broken))) == []


def make_device_spec(**ebs: Any) -> dict[str, Any]:
    return {"blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": "9Gi"} | ebs}]}


RESERVATION = {"tags": {"a": "b"}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"metadataOptions": {"httpEndpoint": "on"}}, "httpEndpoint: 'on': write enabled or disabled"),
        ({"metadataOptions": {"httpProtocolIPv6": "on"}}, "httpProtocolIPv6: 'on': write enabled"),
        ({"metadataOptions": {"httpTokens": "maybe"}}, "httpTokens: 'maybe': write required or optional"),
        ({"cpuOptions": {"nestedVirtualization": "yes"}}, "nestedVirtualization: 'yes'"),
        ({"instanceStorePolicy": "RAID1"}, "instanceStorePolicy: 'RAID1': write RAID0"),
        ({"connectionTracking": {}}, "connectionTracking: is empty"),
        ({"networkInterfaces": [{}, {"deviceIndex": 1, "interfaceType": "efa"}]}, "[1].interfaceType: 'efa'"),
        ({"networkInterfaces": [{}, {"networkCardIndex": -1}]}, "networkInterfaces[1].networkCardIndex: -1"),
        ({"networkInterfaces": [{}, {"deviceIndex": -1}]}, "networkInterfaces[1].deviceIndex: -1"),
        ({"networkInterfaces": [{"deviceIndex": n} for n in range(151)]}, "networkInterfaces: has 151 entries"),
        (make_device_spec(volumeType="gp9"), "blockDeviceMappings[0].ebs.volumeType: 'gp9'"),
        (make_device_spec(volumeSize="70Ti"), "volumeSize in GiB: 71,680: write 1 to 59,605"),
        (make_device_spec(volumeSize="0"), "volumeSize in GiB: 0: write 1"),
        (
            make_device_spec(snapshotID="snap-1", volumeInitializationRate=50),
            "volumeInitializationRate: 50: write 100 to 300",
        ),
        ({"ipPrefixCount": -1}, "spec.ipPrefixCount: -1"),
        ({"subnetSelectorTerms": [{"tags": {f"k{n}": "v" for n in range(21)}}]}, "[0].tags: has 21 entries"),
        ({"subnetSelectorTerms": [{"id": f"subnet-{n}"} for n in range(31)]}, "has 31 entries: write at most 30"),
        (
            {"capacityReservationSelectorTerms": [RESERVATION | {"ownerID": "12"}]},
            "ownerID: '12' is not an AWS account",
        ),
        ({"capacityReservationSelectorTerms": [{"instanceMatchCriteria": "maybe"}]}, "'maybe': write open or targeted"),
        ({"amiSelectorTerms": [{"alias": "al2023@" + "1" * 40}]}, "alias: is longer than 30"),
        ({"placementGroupSelector": {"id": "rack"}}, "placementGroupSelector.id: 'rack' is not a placement group id"),
    ],
)
def test_value_outside_the_allowed_values_is_reported(spec: dict[str, Any], words: str) -> None:
    [(reason, message)] = list_findings(**spec)
    assert reason == "ValidationFailed"
    assert words in message
