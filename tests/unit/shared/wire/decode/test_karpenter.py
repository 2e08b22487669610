"""Tests of NodePools, NodeClaims, EC2NodeClasses and Nodes as they are decoded."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.core.metadata import Condition
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.core.resources import Resources
from shared.model.core.taints import Taint
from shared.model.ec2.account import SecurityGroup, SelectorTerm, Subnet
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.kubernetes.node import Node
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

BY_KIND = {listing.kind: listing for listing in RESOURCE_KINDS}
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def read(kind: str, **parts: Any) -> Any:
    [obj], [] = BY_KIND[kind].convert_objects([{"metadata": {"name": "default"}} | parts])
    return obj


def make_node_pool(template: dict[str, Any] | None = None, **parts: Any) -> NodePool:
    pool_spec = {"template": {"spec": {"nodeClassRef": REF} | (template or {})}}
    node_pool: NodePool = read("NodePool", spec=pool_spec | parts)
    return node_pool


def test_nodepool_without_optional_fields_has_the_crd_defaults() -> None:
    node_pool = make_node_pool()
    assert node_pool.node_class == NodeClassRef(name="default")
    assert node_pool.budgets == (DisruptionBudget(nodes="10%", reasons=None, schedule="", duration=None),)
    assert (node_pool.consolidate_after, node_pool.consolidation_policy) == (timedelta(), "WhenEmptyOrUnderutilized")
    assert (node_pool.expire_after, node_pool.termination_grace_period) == (timedelta(hours=720), None)
    assert (node_pool.limits, node_pool.weight, node_pool.replicas) == (None, 0, None)


def test_nodepool_is_decoded_with_all_fields() -> None:
    pool_spec = {
        "template": {
            "metadata": {"labels": {"team": "shop"}, "annotations": {"b": "2", "a": "1"}},
            "spec": {
                "nodeClassRef": REF,
                "requirements": [
                    {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"], "minValues": 1},
                    {"key": "a", "operator": "Exists"},
                ],
                "taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}, {"key": "s", "effect": "NoExecute"}],
                "startupTaints": [{"key": "u", "effect": "NoSchedule"}],
                "expireAfter": "Never",
                "terminationGracePeriod": "1h30m",
            },
        },
        "disruption": {
            "consolidateAfter": "Never",
            "consolidationPolicy": "WhenEmpty",
            "budgets": [
                {"nodes": "5", "schedule": "@daily", "duration": "8h", "reasons": ["Empty", "Drifted"]},
                {"reasons": []},
            ],
        },
        "limits": {"cpu": "10", "memory": "0", "nodes": 3},
        "weight": 7,
    }
    ready = {"type": "Ready", "status": "True", "observedGeneration": 2}
    status = {"resources": {"cpu": "3", "nodes": "2"}, "conditions": [ready]}
    node_pool: NodePool = read("NodePool", spec=pool_spec, status=status)
    assert node_pool.labels == (("team", "shop"),)
    assert node_pool.annotations == (("a", "1"), ("b", "2"))
    assert node_pool.requirements == build_requirements(
        [parse_requirement("kubernetes.io/arch", "In", ["arm64"], min_values=1), parse_requirement("a", "Exists")]
    )
    assert node_pool.taints == (
        Taint(key="s", effect="NoExecute"),
        Taint(key="t", value="v", effect="NoSchedule"),
    )
    assert node_pool.startup_taints == (Taint(key="u", effect="NoSchedule"),)
    assert (node_pool.expire_after, node_pool.termination_grace_period) == (None, timedelta(minutes=90))
    assert (node_pool.consolidate_after, node_pool.consolidation_policy) == (None, "WhenEmpty")
    assert node_pool.budgets == (
        DisruptionBudget(nodes="5", reasons=("Drifted", "Empty"), schedule="@daily", duration=timedelta(hours=8)),
        DisruptionBudget(nodes="10%", reasons=()),
    )
    assert (node_pool.weight, node_pool.usage["cpu"], node_pool.usage["nodes"]) == (7, 3000, 2)
    assert node_pool.conditions == (Condition(type="Ready", status="True", observed_generation=2),)


def test_nodepool_limit_of_zero_differs_from_no_limit() -> None:
    limits = make_node_pool(limits={"cpu": "0", "memory": "1Ki"}).limits
    assert limits == Resources(amounts=(("cpu", 0), ("memory", 1024)))
    assert make_node_pool(limits={}).limits == Resources()


def test_empty_nodepool_budget_list_stays_empty() -> None:
    assert make_node_pool(disruption={"budgets": []}).budgets == ()


def test_static_nodepool_has_replicas() -> None:
    assert make_node_pool(replicas=3, limits={"nodes": "5"}).replicas == 3


def test_nodeclaim_is_decoded_with_all_fields() -> None:
    claim: NodeClaim = read(
        "NodeClaim",
        spec={
            "nodeClassRef": REF,
            "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"]}],
            "resources": {"requests": {"cpu": "1500m"}},
            "taints": [{"key": "t", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "u", "effect": "NoSchedule"}],
            "terminationGracePeriod": "30s",
        },
        status={
            "nodeName": "ip-1",
            "providerID": "aws:///a/i-1",
            "imageID": "ami-1",
            "capacity": {"cpu": "2"},
            "allocatable": {"cpu": "1900m"},
            "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}],
            "lastPodEventTime": "2026-11-21T08:00:00Z",
        },
    )
    assert claim.expire_after == timedelta(hours=720)
    assert claim.termination_grace_period == timedelta(seconds=30)
    assert (claim.node_name, claim.instance_id, claim.image_id) == ("ip-1", "i-1", "ami-1")
    assert (claim.requests["cpu"], claim.capacity["cpu"], claim.allocatable["cpu"]) == (1500, 2000, 1900)
    assert (claim.taints, claim.startup_taints) == (
        (Taint(key="t", effect="NoSchedule"),),
        (Taint(key="u", effect="NoSchedule"),),
    )
    assert claim.last_pod_event_at == claim.conditions[0].since == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert claim.requirements["karpenter.sh/nodepool"].values == {"p"}


def make_node_class(status: dict[str, Any] | None = None, **spec: Any) -> EC2NodeClass:
    decoded_node_class: EC2NodeClass = read("EC2NodeClass", spec=spec, status=status or {})
    return decoded_node_class


@pytest.mark.parametrize(
    ("spec", "family"),
    [
        ({}, "Custom"),
        ({"amiFamily": "AL2"}, "AL2"),
        ({"amiSelectorTerms": [{"alias": "al2023@latest"}]}, "AL2023"),
        ({"amiSelectorTerms": [{"alias": "Bottlerocket@1.2"}]}, "Bottlerocket"),
        ({"amiSelectorTerms": [{"alias": "windows2022@latest"}], "amiFamily": "Custom"}, "Custom"),
        ({"amiSelectorTerms": [{"alias": "beos@latest"}]}, "Custom"),
        ({"amiSelectorTerms": [{"id": "ami-1"}]}, "Custom"),
    ],
)
def test_ami_family_is_derived_from_alias_or_field(spec: dict[str, Any], family: str) -> None:
    assert make_node_class(**spec).ami_family == family


def test_node_class_is_decoded_with_all_fields() -> None:
    decoded_node_class = make_node_class(
        amiSelectorTerms=[{"name": "x", "owner": "self", "tags": {"b": "*", "a": "1"}}, {"ssmParameter": "/p"}],
        subnetSelectorTerms=[{"id": "subnet-1"}],
        securityGroupSelectorTerms=[{"name": "sg"}],
        role="r",
        instanceProfile="p",
        userData="u",
        tags={"b": "2", "a": "1"},
        blockDeviceMappings=[
            {
                "deviceName": "/dev/xvdb",
                "ebs": {"volumeSize": "100G", "volumeType": "io2", "encrypted": False, "iops": 9},
            },
            {
                "deviceName": "/dev/xvda",
                "rootVolume": True,
                "ebs": {"volumeSize": "20Gi", "kmsKeyID": "k", "snapshotID": "s"},
            },
            {"deviceName": "/dev/xvdc", "ebs": {"snapshotID": "s", "deleteOnTermination": True, "throughput": 5}},
        ],
        instanceStorePolicy="RAID0",
        detailedMonitoring=True,
        associatePublicIPAddress=False,
        metadataOptions={"httpTokens": "optional", "httpProtocolIPv6": "enabled"},
        context="c",
        status={
            "subnets": [{"id": "subnet-1", "zone": "a", "zoneID": "az1"}],
            "securityGroups": [{"id": "sg-1", "name": "sg"}],
            "amis": [
                {
                    "id": "ami-1",
                    "name": "x",
                    "deprecated": True,
                    "requirements": [{"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]}],
                }
            ],
            "instanceProfile": "resolved",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    )
    assert decoded_node_class.image_selectors == (
        SelectorTerm(name="x", owner="self", tags=(("a", "1"), ("b", "*"))),
        SelectorTerm(ssm_parameter="/p"),
    )
    assert decoded_node_class.subnet_selectors == (SelectorTerm(id="subnet-1"),)
    assert decoded_node_class.security_group_selectors == (SelectorTerm(name="sg"),)
    assert (
        decoded_node_class.role,
        decoded_node_class.instance_profile,
        decoded_node_class.user_data,
        decoded_node_class.context,
    ) == ("r", "p", "u", "c")
    assert decoded_node_class.tags == (("a", "1"), ("b", "2"))
    assert [device.volume_size_gib for device in decoded_node_class.block_devices] == [94, 20, None]
    assert [(device.volume_type, device.encrypted) for device in decoded_node_class.block_devices[:2]] == [
        ("io2", False),
        ("gp3", True),
    ]
    assert (decoded_node_class.block_devices[1].kms_key_id, decoded_node_class.block_devices[1].snapshot_id) == (
        "k",
        "s",
    )
    assert (
        decoded_node_class.block_devices[2].delete_on_termination,
        decoded_node_class.block_devices[2].throughput,
    ) == (True, 5)
    assert (decoded_node_class.root_devices, decoded_node_class.instance_store_policy) == (("/dev/xvda",), "RAID0")
    assert (decoded_node_class.detailed_monitoring, decoded_node_class.associate_public_ip_address) == (True, False)
    assert (decoded_node_class.http_endpoint, decoded_node_class.http_protocol_ipv6) == ("enabled", "enabled")
    assert (decoded_node_class.http_put_response_hop_limit, decoded_node_class.http_tokens) == (1, "optional")
    assert decoded_node_class.resolved_subnets == (
        Subnet(subnet_id="subnet-1", zone="a", zone_id="az1", available_ip_count=0),
    )
    assert decoded_node_class.resolved_security_groups == (SecurityGroup(group_id="sg-1", name="sg"),)
    assert decoded_node_class.resolved_images[0].requirements["kubernetes.io/arch"].values == {"arm64"}
    assert decoded_node_class.resolved_images[0].deprecated
    assert decoded_node_class.resolved_profile == "resolved"
    assert decoded_node_class.is_ready()


def test_kubelet_settings_are_decoded_and_expressions_count_as_unset() -> None:
    kubelet = make_node_class(
        kubelet={
            "clusterDNS": ["10.0.0.10"],
            "maxPods": "max_pods / 2",
            "podsPerCore": 4,
            "kubeReserved": {"cpu": "100m", "memory": "max_pods * 11", "pid": 1000},
            "systemReserved": {"memory": 1024},
            "evictionHard": {"memory.available": "5%"},
            "evictionSoft": {"memory.available": "10%"},
            "evictionSoftGracePeriod": {"memory.available": "1m"},
            "evictionMaxPodGracePeriod": 9,
            "imageGCHighThresholdPercent": 80,
            "imageGCLowThresholdPercent": 70,
            "cpuCFSQuota": False,
            "someFutureKey": {"a": 1},
        }
    ).kubelet
    assert (kubelet.cluster_dns, kubelet.max_pods, kubelet.pods_per_core) == (("10.0.0.10",), None, 4)
    assert kubelet.kube_reserved == (("cpu", "100m"), ("pid", "1000"))
    assert kubelet.system_reserved == (("memory", "1024"),)
    assert kubelet.eviction_hard == (("memory.available", "5%"),)
    assert kubelet.eviction_soft_grace_period == (("memory.available", "1m"),)
    assert (kubelet.eviction_max_pod_grace_period, kubelet.cpu_cfs_quota) == (9, False)
    assert (kubelet.image_gc_high_threshold_percent, kubelet.image_gc_low_threshold_percent) == (80, 70)
    assert make_node_class(kubelet={"maxPods": 30}).kubelet.max_pods == 30


@pytest.mark.parametrize(
    ("first_spec", "second_spec"),
    [
        ({}, {"detailedMonitoring": False}),
        ({}, {"tags": {}, "userData": "", "blockDeviceMappings": []}),
        ({}, {"metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1}}),
        ({"amiFamily": "AL2"}, {"amiSelectorTerms": [{"alias": "al2@latest"}]}),
        ({"subnetSelectorTerms": [{"id": "a"}], "ipPrefixCount": 3}, {"securityGroupSelectorTerms": [{"id": "b"}]}),
        ({"capacityReservationSelectorTerms": [{"id": "c"}]}, {}),
        ({"kubelet": {"clusterDNS": ["1", "2"]}}, {"kubelet": {"clusterDNS": ["2", "1"]}}),
    ],
)
def test_equivalent_node_class_specs_have_equal_hashes(first_spec: dict[str, Any], second_spec: dict[str, Any]) -> None:
    assert make_node_class(**first_spec).spec_hash == make_node_class(**second_spec).spec_hash


@pytest.mark.parametrize(
    "changed_spec",
    [
        {"amiFamily": "AL2"},
        {"detailedMonitoring": True},
        {"userData": "x"},
        {"role": "r"},
        {"tags": {"a": "b"}},
        {"kubelet": {"maxPods": 3}},
        {"kubelet": {"future": 3}},
        {"metadataOptions": {"httpTokens": "optional"}},
        {"blockDeviceMappings": [{"ebs": {"volumeSize": "20Gi"}}]},
        {"context": "c"},
        {"someFutureField": {"deep": [1]}},
    ],
)
def test_node_class_specs_with_different_nodes_have_different_hashes(changed_spec: dict[str, Any]) -> None:
    assert make_node_class(**changed_spec).spec_hash != make_node_class().spec_hash


def test_node_is_decoded_with_all_fields() -> None:
    node: Node = read(
        "Node",
        metadata={
            "name": "ip-1",
            "labels": {"a": "b"},
            "annotations": {"x": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "finalizers": ["f"],
        },
        spec={"providerID": "aws:///a/i-1", "unschedulable": True, "taints": [{"key": "t", "effect": "NoExecute"}]},
        status={
            "capacity": {"cpu": "2"},
            "allocatable": {"cpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    )
    assert (node.provider_id, node.unschedulable, node.taints) == (
        "aws:///a/i-1",
        True,
        (Taint(key="t", effect="NoExecute"),),
    )
    assert (node.capacity["cpu"], node.allocatable["cpu"], node.is_ready()) == (2000, 1000, True)
    assert (node.meta.annotations, node.meta.finalizers) == ((("x", "y"),), ("f",))


def test_namespace_labels_are_decoded() -> None:
    assert read("Namespace", metadata={"name": "shop", "labels": {"a": "b"}}).labels == (("a", "b"),)
