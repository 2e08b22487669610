"""Contract of our custom resources in every `Kube`: defaults, pruning, validation rules."""

from typing import Any

import pytest

from shared.crds.validation_rules import Json
from shared.errors import Invalid
from shared.ports.kubernetes import Kube
from tests.contract import kube_front
from tests.contract.kube_front import create, is_gone, list_objects, patch, read, wait_until
from tests.controlplane.definitions import is_established

memory, endpoint, kube, namespace = kube_front.memory, kube_front.endpoint, kube_front.kube, kube_front.namespace

POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
TERMS = {"subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}


def merge_patch(base: Json, change: Json) -> Json:
    """Merge *change* into *base*; null removes."""
    if not isinstance(change, dict):
        return change
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in change.items():
        result[key] = merge_patch(result.get(key), value)
    return {key: value for key, value in result.items() if value is not None}


def make_node_pool(name: str = "a", **spec: object) -> dict[str, Any]:
    base = {"template": {"spec": {"nodeClassRef": CLASS_REF, "requirements": [SPOT]}}}
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    return kind | {"metadata": {"name": name}, "spec": merge_patch(base, spec)}


def make_node_claim(name: str = "a", **spec: object) -> dict[str, Any]:
    base = {"nodeClassRef": CLASS_REF, "requirements": [SPOT]}
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
    return kind | {"metadata": {"name": name}, "spec": merge_patch(base, spec)}


def make_node_class(name: str = "a", **spec: object) -> dict[str, Any]:
    base = {"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}]} | TERMS
    kind = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}
    return kind | {"metadata": {"name": name}, "spec": merge_patch(base, spec)}


def make_template_spec(**spec: object) -> dict[str, Any]:
    return {"template": {"spec": spec}}


def make_requirement_spec(**requirement: object) -> dict[str, Any]:
    return make_template_spec(requirements=[{"key": "topology.kubernetes.io/zone", "operator": "Exists"} | requirement])


def make_labels_spec(**labels: str) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": {key.replace("__", "/"): value for key, value in labels.items()}}}}


def test_nodepool_gets_its_default_values(kube: Kube) -> None:
    spec = create(kube, POOLS, make_node_pool())["spec"]
    assert spec["disruption"] == {
        "budgets": [{"nodes": "10%"}],
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
    }
    assert spec["template"]["spec"]["expireAfter"] == "720h"


def test_budget_without_nodes_defaults_to_ten_percent(kube: Kube) -> None:
    created = create(kube, POOLS, make_node_pool(disruption={"budgets": [{"reasons": ["Empty"]}]}))
    assert created["spec"]["disruption"]["budgets"] == [{"nodes": "10%", "reasons": ["Empty"]}]


def test_node_class_gets_its_default_metadata_options(kube: Kube) -> None:
    options = create(kube, CLASSES, make_node_class(metadataOptions={"httpTokens": "optional"}))["spec"][
        "metadataOptions"
    ]
    assert options == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
    }


def test_unknown_fields_are_pruned_except_in_kubelet_configuration(kube: Kube) -> None:
    created = create(kube, CLASSES, make_node_class(nonsense=1, kubelet={"maxPods": 17, "anything": {"a": [1]}}))[
        "spec"
    ]
    assert "nonsense" not in created
    assert created["kubelet"] == {"maxPods": 17, "anything": {"a": [1]}}


@pytest.mark.parametrize(
    "spec",
    [
        make_requirement_spec(operator="In", values=["a"]),
        make_requirement_spec(operator="In", values=["a", "b"], minValues=2),
        make_requirement_spec(operator="Gt", values=["3"]),
        make_requirement_spec(operator="Lte", values=["0"]),
        make_requirement_spec(key="karpenter.k8s.aws/instance-family"),
        make_requirement_spec(key="example.com/anything"),
        make_template_spec(requirements=[]),
        make_template_spec(expireAfter="Never", terminationGracePeriod="1h30m"),
        make_template_spec(
            taints=[{"key": "a", "effect": "NoSchedule"}], startupTaints=[{"key": "b/c", "effect": "NoExecute"}]
        ),
        make_labels_spec(**{"karpenter.sh__capacity-type": "spot", "team": "web"}),
        {"weight": 100, "limits": {"cpu": 1000, "memory": "1Ti", "nodes": "10"}},
        {"replicas": 0, "limits": {"nodes": 3}},
        {"disruption": {"consolidateAfter": "Never", "consolidationPolicy": "Balanced"}},
        {"disruption": {"budgets": [{"nodes": "100%", "schedule": "@daily", "duration": "1h30m"}]}},
        {"disruption": {"budgets": [{"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h0s"}]}},
        {"disruption": {"budgets": []}},
    ],
)
def test_valid_nodepool_is_accepted(kube: Kube, spec: dict[str, Any]) -> None:
    create(kube, POOLS, make_node_pool(**spec))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"template": None}, "spec.template"),
        (make_template_spec(requirements=None), "requirements"),
        (make_template_spec(nodeClassRef=None), "nodeClassRef"),
        (make_template_spec(nodeClassRef={"group": "karpenter.k8s.aws/v1"}), "nodeClassRef.group"),
        (make_template_spec(nodeClassRef={"name": ""}), "nodeClassRef.name"),
        (make_template_spec(expireAfter="1d"), "expireAfter"),
        (make_template_spec(terminationGracePeriod="Never"), "terminationGracePeriod"),
        (make_template_spec(taints=[{"key": "", "effect": "NoSchedule"}]), "taints"),
        (make_template_spec(taints=[{"key": "a", "effect": "Never"}]), "taints"),
        (make_template_spec(startupTaints=[{"key": "a"}]), "startupTaints"),
        (make_template_spec(requirements=[SPOT] * 101), "requirements"),
        (make_requirement_spec(operator="in"), "operator"),
        (make_requirement_spec(operator="In"), "requirements"),
        (make_requirement_spec(operator="In", values=[]), "requirements"),
        (make_requirement_spec(operator="In", values=["a"], minValues=2), "requirements"),
        (make_requirement_spec(minValues=51), "minValues"),
        (make_requirement_spec(operator="Gt", values=["1", "2"]), "requirements"),
        (make_requirement_spec(operator="Gte", values=["-1"]), "requirements"),
        (make_requirement_spec(operator="Lt", values=["a"]), "requirements"),
        (make_requirement_spec(key="a b"), "key"),
        (make_requirement_spec(key="karpenter.sh/nodepool"), "key"),
        (make_requirement_spec(key="karpenter.sh/other"), "key"),
        (make_requirement_spec(key="sub.karpenter.sh/other"), "key"),
        (make_requirement_spec(key="mykarpenter.sh/other"), "key"),
        (make_requirement_spec(key="kubernetes.io/hostname"), "key"),
        (make_requirement_spec(key="karpenter.k8s.aws/instance-colour"), "key"),
        (make_labels_spec(**{"karpenter.sh__nodepool": "a"}), "labels"),
        (make_labels_spec(**{"kubernetes.io__hostname": "a"}), "labels"),
        (make_labels_spec(**{"karpenter.sh__other": "a"}), "labels"),
        (make_labels_spec(**{"karpenter.k8s.aws__other": "a"}), "labels"),
        (make_labels_spec(team="a b"), "labels.team"),
        (make_labels_spec(team="a" * 64), "labels.team"),
        ({"weight": 0}, "weight"),
        ({"weight": 101}, "weight"),
        ({"weight": "1"}, "weight"),
        ({"weight": True}, "weight"),
        ({"limits": {"cpu": "much"}}, "limits.cpu"),
        ({"limits": {"cpu": 1.5}}, "limits.cpu"),
        ({"replicas": -1}, "replicas"),
        ({"replicas": 1, "weight": 1}, "spec"),
        ({"replicas": 1, "limits": {"cpu": 1}}, "spec"),
        ({"disruption": {"consolidateAfter": "soon"}}, "consolidateAfter"),
        ({"disruption": {"consolidationPolicy": "Sometimes"}}, "consolidationPolicy"),
        ({"disruption": {"budgets": [{"nodes": "101%"}]}}, "nodes"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]}}, "budgets"),
        ({"disruption": {"budgets": [{"nodes": "1", "duration": "1h"}]}}, "budgets"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "* * *", "duration": "1h"}]}}, "schedule"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "90s"}]}}, "duration"),
        ({"disruption": {"budgets": [{"reasons": ["Expired"]}]}}, "reasons"),
        ({"disruption": {"budgets": [{"nodes": "1"}] * 51}}, "budgets"),
    ],
)
def test_invalid_nodepool_is_rejected_with_the_field_name(kube: Kube, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match=field):
        create(kube, POOLS, make_node_pool(**spec))


def test_node_class_ref_of_a_nodepool_can_change_only_its_name(kube: Kube) -> None:
    create(kube, POOLS, make_node_pool())
    patch(kube, f"{POOLS}/a", {"spec": make_template_spec(nodeClassRef={"name": "other"})})
    for change in ({"group": "example.com"}, {"kind": "Other"}):
        with pytest.raises(Invalid, match="immutable"):
            patch(kube, f"{POOLS}/a", {"spec": make_template_spec(nodeClassRef=change)})


@pytest.mark.parametrize(("before", "after"), [(None, 1), (1, None)])
def test_nodepool_cannot_switch_between_static_and_dynamic(kube: Kube, before: int | None, after: int | None) -> None:
    create(kube, POOLS, make_node_pool(replicas=before))
    with pytest.raises(Invalid, match="replicas"):
        patch(kube, f"{POOLS}/a", {"spec": {"replicas": after}})


def test_generation_increases_only_when_the_spec_changes(kube: Kube) -> None:
    assert create(kube, POOLS, make_node_pool())["metadata"]["generation"] == 1
    assert patch(kube, f"{POOLS}/a", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert patch(kube, f"{POOLS}/a/status", {"status": {"nodes": 1}})["metadata"]["generation"] == 1
    assert patch(kube, f"{POOLS}/a", {"spec": {"weight": 7}})["metadata"]["generation"] == 2


def test_status_of_a_custom_resource_is_written_only_through_its_subresource(kube: Kube) -> None:
    create(kube, POOLS, make_node_pool() | {"status": {"nodes": 9}})
    patch(kube, f"{POOLS}/a", {"status": {"nodes": 9}})
    assert "nodes" not in read(kube, f"{POOLS}/a").get("status", {})
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"weight": 9}, "status": {"nodes": 3}}
    updated = patch(kube, f"{POOLS}/a/status", change)
    assert updated["status"]["nodes"] == 3
    assert "labels" not in updated["metadata"]
    assert "weight" not in updated["spec"]


@pytest.mark.parametrize(
    "condition",
    [
        {"status": "Perhaps"},
        {"lastTransitionTime": "yesterday"},
        {"reason": ""},
        {"type": "a b"},
        {"observedGeneration": -1},
        {"message": None},
    ],
)
def test_invalid_status_condition_is_rejected(kube: Kube, condition: dict[str, Any]) -> None:
    create(kube, CLAIMS, make_node_claim())
    good: dict[str, Any] = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    good |= {"lastTransitionTime": "2026-11-21T08:00:00Z", "observedGeneration": 1}
    patch(kube, f"{CLAIMS}/a/status", {"status": {"conditions": [good]}})
    with pytest.raises(Invalid, match=r"status\.conditions"):
        patch(kube, f"{CLAIMS}/a/status", {"status": {"conditions": [merge_patch(good, condition)]}})


def test_nodeclaim_spec_is_immutable(kube: Kube) -> None:
    create(kube, CLAIMS, make_node_claim())
    patch(kube, f"{CLAIMS}/a", {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    with pytest.raises(Invalid, match="immutable"):
        patch(kube, f"{CLAIMS}/a", {"spec": {"expireAfter": "1h"}})


def test_nodeclaim_accepts_six_hundred_instance_types_and_the_nodepool_label(kube: Kube) -> None:
    types = [f"m{index}.large" for index in range(600)]
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types, "minValues": 50},
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["a"]},
    ]
    created = create(
        kube, CLAIMS, make_node_claim(requirements=requirements, resources={"requests": {"cpu": "1500m", "pods": 3}})
    )
    assert created["spec"]["expireAfter"] == "720h"
    with pytest.raises(Invalid, match="requirements"):
        create(kube, CLAIMS, make_node_claim("b", requirements=[{"key": "karpenter.sh/other", "operator": "Exists"}]))


@pytest.mark.parametrize(
    "spec",
    [
        {"role": None, "instanceProfile": "mine"},
        {"amiFamily": "AL2023"},
        {"amiFamily": "Custom"},
        {"amiSelectorTerms": [{"alias": "windows2022@latest"}], "amiFamily": "Windows2022"},
        {"amiSelectorTerms": [{"id": "ami-1"}, {"name": "a*", "owner": "self"}], "amiFamily": "Bottlerocket"},
        {"amiSelectorTerms": [{"ssmParameter": "/a/b"}], "amiFamily": "AL2"},
        {"securityGroupSelectorTerms": [{"name": "a"}, {"tags": {"a": "*"}}]},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}, {"ownerID": "123456789012", "tags": {"a": "b"}}]},
        {"placementGroupSelector": {"id": "pg-1"}},
        {"tags": {"Name": "x", "team": ""}},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"volumeSize": "100Gi"}}]},
        {"blockDeviceMappings": [{"ebs": {"snapshotID": "snap-1", "volumeInitializationRate": 100}}]},
        {"networkInterfaces": []},
        {
            "networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
            ]
        },
        {"connectionTracking": {"udpTimeout": 30}, "cpuOptions": {"nestedVirtualization": "enabled"}},
    ],
)
def test_valid_node_class_is_accepted(kube: Kube, spec: dict[str, Any]) -> None:
    create(kube, CLASSES, make_node_class(**spec))


INTERFACE = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
EFA = {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"role": None}, "role"),
        ({"instanceProfile": "mine"}, "role"),
        ({"role": ""}, "role"),
        ({"subnetSelectorTerms": []}, "subnetSelectorTerms"),
        ({"subnetSelectorTerms": [{}]}, "subnetSelectorTerms"),
        ({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}, "subnetSelectorTerms"),
        ({"subnetSelectorTerms": [{"tags": {"a": ""}}]}, "tags"),
        ({"subnetSelectorTerms": [{"tags": {"": "a"}}]}, "tags"),
        ({"subnetSelectorTerms": [{"id": "sg-1"}]}, "id"),
        ({"securityGroupSelectorTerms": [{"id": "sg-1", "name": "a"}]}, "securityGroupSelectorTerms"),
        ({"securityGroupSelectorTerms": [{"tags": {"a": "b"}, "name": "a"}]}, "securityGroupSelectorTerms"),
        ({"amiSelectorTerms": [{"owner": "self"}], "amiFamily": "AL2"}, "amiSelectorTerms"),
        ({"amiSelectorTerms": [{"id": "ami-1", "name": "a"}], "amiFamily": "AL2"}, "amiSelectorTerms"),
        ({"amiSelectorTerms": [{"id": "ami-1"}]}, "amiFamily"),
        ({"amiSelectorTerms": [{"alias": "al2@latest"}, {"id": "ami-1"}]}, "amiSelectorTerms"),
        ({"amiSelectorTerms": [{"alias": "ubuntu@latest"}]}, "alias"),
        ({"amiSelectorTerms": [{"alias": "windows2019@v1"}]}, "alias"),
        ({"amiSelectorTerms": [{"alias": "al2"}]}, "alias"),
        ({"amiSelectorTerms": [{"alias": "al2@" + "1" * 30}]}, "alias"),
        ({"amiFamily": "AL2"}, "amiFamily"),
        ({"amiFamily": "Arch"}, "amiFamily"),
        ({"capacityReservationSelectorTerms": [{"ownerID": "123456789012"}]}, "capacityReservationSelectorTerms"),
        ({"placementGroupSelector": {"id": "pg-1", "name": "a"}}, "placementGroupSelector"),
        ({"placementGroupSelector": {}}, "placementGroupSelector"),
        ({"tags": {"kubernetes.io/cluster/a": "owned"}}, "tags"),
        ({"tags": {"karpenter.sh/nodeclaim": "a"}}, "tags"),
        ({"tags": {"eks:eks-cluster-name": "a"}}, "tags"),
        ({"tags": {"": "a"}}, "tags"),
        ({"blockDeviceMappings": [{"ebs": {}}]}, "ebs"),
        ({"blockDeviceMappings": [{"ebs": {"volumeSize": "59001Gi"}}]}, "volumeSize"),
        ({"blockDeviceMappings": [{"ebs": {"volumeSize": "1Gi", "volumeInitializationRate": 100}}]}, "ebs"),
        ({"blockDeviceMappings": [{"rootVolume": True}] * 2}, "blockDeviceMappings"),
        ({"networkInterfaces": [EFA]}, "networkInterfaces"),
        ({"networkInterfaces": [INTERFACE, INTERFACE]}, "networkInterfaces"),
        ({"networkInterfaces": [INTERFACE, EFA, EFA | {"deviceIndex": 2}]}, "networkInterfaces"),
        ({"metadataOptions": {"httpPutResponseHopLimit": 65}}, "httpPutResponseHopLimit"),
        ({"connectionTracking": {}}, "connectionTracking"),
        ({"connectionTracking": {"udpTimeout": 29}}, "udpTimeout"),
        ({"instanceStorePolicy": "RAID1"}, "instanceStorePolicy"),
        ({"ipPrefixCount": -1}, "ipPrefixCount"),
    ],
)
def test_invalid_node_class_is_rejected_with_the_field_name(kube: Kube, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match=field):
        create(kube, CLASSES, make_node_class(**spec))


def test_listed_custom_resources_have_a_kind(kube: Kube) -> None:
    create(kube, POOLS, make_node_pool())
    document = list_objects(kube, POOLS)
    assert document["kind"] == "NodePoolList"
    assert document["items"][0]["kind"] == "NodePool"


def test_deleting_a_crd_deletes_its_objects(kube: Kube) -> None:
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    definitions, things_path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/things"
    create(kube, definitions, definition)
    wait_until(lambda: is_established(kube, "things.example.com") and kube.list(things_path))
    create(kube, things_path, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}})
    kube.delete(f"{definitions}/things.example.com")
    wait_until(lambda: is_gone(kube, things_path))
    assert is_gone(kube, f"{definitions}/things.example.com")
