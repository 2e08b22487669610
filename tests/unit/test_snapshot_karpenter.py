"""NodePools, NodeClaims, EC2NodeClasses and Nodes as they are read."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.ec2 import SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import Budget, NodePool
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition
from shared.model.requirements import requirement, requirements
from shared.model.resources import Resources
from shared.model.taints import Taint
from shared.snapshot.kinds import LISTINGS

BY_KIND = {listing.kind: listing for listing in LISTINGS}
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def read(kind: str, **parts: Any) -> Any:
    [found], [] = BY_KIND[kind].objects([{"metadata": {"name": "default"}} | parts])
    return found


def pool(template: dict[str, Any] | None = None, **parts: Any) -> NodePool:
    whole = {"template": {"spec": {"nodeClassRef": REF} | (template or {})}}
    found: NodePool = read("NodePool", spec=whole | parts)
    return found


def test_a_pool_that_says_nothing_has_the_definitions_defaults() -> None:
    found = pool()
    assert found.node_class == NodeClassRef(name="default")
    assert found.budgets == (Budget(nodes="10%", reasons=None, schedule="", duration=None),)
    assert (found.consolidate_after, found.consolidation_policy) == (timedelta(), "WhenEmptyOrUnderutilized")
    assert (found.expire_after, found.termination_grace_period) == (timedelta(hours=720), None)
    assert (found.limits, found.weight, found.replicas) == (None, 0, None)


def test_a_pool_is_read_whole() -> None:
    whole = {
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
    found: NodePool = read("NodePool", spec=whole, status=status)
    assert found.labels == (("team", "shop"),)
    assert found.annotations == (("a", "1"), ("b", "2"))
    assert found.requirements == requirements(
        [requirement("kubernetes.io/arch", "In", ["arm64"], min_values=1), requirement("a", "Exists")]
    )
    assert found.taints == (
        Taint(key="s", effect="NoExecute"),
        Taint(key="t", value="v", effect="NoSchedule"),
    )
    assert found.startup_taints == (Taint(key="u", effect="NoSchedule"),)
    assert (found.expire_after, found.termination_grace_period) == (None, timedelta(minutes=90))
    assert (found.consolidate_after, found.consolidation_policy) == (None, "WhenEmpty")
    assert found.budgets == (
        Budget(nodes="5", reasons=("Drifted", "Empty"), schedule="@daily", duration=timedelta(hours=8)),
        Budget(nodes="10%", reasons=()),
    )
    assert (found.weight, found.usage["cpu"], found.usage["nodes"]) == (7, 3000, 2)
    assert found.conditions == (Condition(type="Ready", status="True", observed_generation=2),)


def test_a_limit_of_zero_is_not_no_limit() -> None:
    limits = pool(limits={"cpu": "0", "memory": "1Ki"}).limits
    assert limits == Resources(amounts=(("cpu", 0), ("memory", 1024)))
    assert pool(limits={}).limits == Resources()


def test_no_budgets_at_all_are_no_budgets() -> None:
    assert pool(disruption={"budgets": []}).budgets == ()


def test_a_static_pool_has_replicas() -> None:
    assert pool(replicas=3, limits={"nodes": "5"}).replicas == 3


def test_a_claim_is_read_whole() -> None:
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


def node_class(status: dict[str, Any] | None = None, **spec: Any) -> EC2NodeClass:
    found: EC2NodeClass = read("EC2NodeClass", spec=spec, status=status or {})
    return found


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
def test_the_family_that_counts(spec: dict[str, Any], family: str) -> None:
    assert node_class(**spec).ami_family == family


def test_a_class_is_read_whole() -> None:
    found = node_class(
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
    assert found.image_selectors == (
        Selector(name="x", owner="self", tags=(("a", "1"), ("b", "*"))),
        Selector(ssm_parameter="/p"),
    )
    assert found.subnet_selectors == (Selector(id="subnet-1"),)
    assert found.security_group_selectors == (Selector(name="sg"),)
    assert (found.role, found.instance_profile, found.user_data, found.context) == ("r", "p", "u", "c")
    assert found.tags == (("a", "1"), ("b", "2"))
    assert [device.volume_size_gib for device in found.block_devices] == [94, 20, None]
    assert [(device.volume_type, device.encrypted) for device in found.block_devices[:2]] == [
        ("io2", False),
        ("gp3", True),
    ]
    assert (found.block_devices[1].kms_key_id, found.block_devices[1].snapshot_id) == ("k", "s")
    assert (found.block_devices[2].delete_on_termination, found.block_devices[2].throughput) == (True, 5)
    assert (found.root_devices, found.instance_store_policy) == (("/dev/xvda",), "RAID0")
    assert (found.detailed_monitoring, found.associate_public_ip_address) == (True, False)
    assert (found.http_endpoint, found.http_protocol_ipv6) == ("enabled", "enabled")
    assert (found.http_put_response_hop_limit, found.http_tokens) == (1, "optional")
    assert found.resolved_subnets == (Subnet(subnet_id="subnet-1", zone="a", zone_id="az1", available_ip_count=0),)
    assert found.resolved_security_groups == (SecurityGroup(group_id="sg-1", name="sg"),)
    assert found.resolved_images[0].requirements["kubernetes.io/arch"].values == {"arm64"}
    assert found.resolved_images[0].deprecated
    assert found.resolved_profile == "resolved"
    assert found.is_ready()


def test_kubelet_settings_are_texts_and_expressions_count_as_unset() -> None:
    kubelet = node_class(
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
    assert node_class(kubelet={"maxPods": 30}).kubelet.max_pods == 30


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_what_makes_the_same_nodes_has_the_same_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert node_class(**one).hashed == node_class(**other).hashed


@pytest.mark.parametrize(
    "other",
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
def test_what_makes_other_nodes_has_another_digest(other: dict[str, Any]) -> None:
    assert node_class(**other).hashed != node_class().hashed


def test_a_node_is_read_whole() -> None:
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


def test_a_namespace_has_labels() -> None:
    assert read("Namespace", metadata={"name": "shop", "labels": {"a": "b"}}).labels == (("a", "b"),)
