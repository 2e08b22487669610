"""Which changes of a node class replace its nodes for what is written, not for what that selects."""

from typing import Any

import pytest

from shared.model.labels import NODECLASS_HASH_VERSION_VALUE
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.node_classes import node_class_from_wire
from shared.snapshot.wire_core import Meta

SPEC: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"id": "subnet-1"}],
    "securityGroupSelectorTerms": [{"id": "sg-1"}],
    "blockDeviceMappings": [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}},
        {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "30Gi"}},
    ],
    "tags": {"team": "shop", "stage": "prod"},
}


def hashed(**changes: Any) -> str:
    said = {key: value for key, value in (SPEC | changes).items() if value is not None}
    return node_class_from_wire(wire.NodeClass(metadata=Meta(name="default"), spec=said)).hashed


@pytest.mark.parametrize(
    "changes",
    [
        {"role": "others"},
        {"role": None, "instanceProfile": "own"},
        {"tags": {"team": "shop"}},
        {"userData": "#!/bin/sh"},
        {"kubelet": {"maxPods": 20}},
        {"kubelet": {"registryPullQPS": 20}},
        {"blockDeviceMappings": SPEC["blockDeviceMappings"][:1]},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20G"}}]},
        {"instanceStorePolicy": "RAID0"},
        {"detailedMonitoring": True},
        {"associatePublicIPAddress": True},
        {"metadataOptions": {"httpTokens": "optional"}},
        {"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]},
        {"connectionTracking": {"udpTimeout": 40}},
        {"cpuOptions": {"nestedVirtualization": "enabled"}},
        {"placementGroupSelector": {"name": "racks"}},
        {"context": "c"},
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
        {"amiFamily": "Custom"},
    ],
)
def test_what_nodes_are_made_of_counts(changes: dict[str, Any]) -> None:
    assert hashed(**changes) != hashed()


@pytest.mark.parametrize(
    "changes",
    [
        {"subnetSelectorTerms": [{"id": "subnet-2"}]},
        {"securityGroupSelectorTerms": [{"id": "sg-2"}]},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}]},
        {"amiSelectorTerms": [{"alias": "al2023@v20261101"}]},
        {"amiFamily": "AL2023"},
        {"ipPrefixCount": 2},
        {"detailedMonitoring": False},
        {"userData": ""},
        {"kubelet": {}},
        {"metadataOptions": {"httpTokens": "required", "httpEndpoint": "enabled"}},
        {"tags": {"stage": "prod", "team": "shop"}},
        {"blockDeviceMappings": SPEC["blockDeviceMappings"][::-1]},
    ],
)
def test_selectors_order_and_what_is_as_good_as_unset_do_not_count(changes: dict[str, Any]) -> None:
    assert hashed(**changes) == hashed()


def test_the_version_is_no_version_of_karpenter() -> None:
    """Else the claims of a cluster that is adopted would all seem to have drifted: its hashes are other numbers."""
    assert NODECLASS_HASH_VERSION_VALUE not in {f"v{number}" for number in range(100)}
