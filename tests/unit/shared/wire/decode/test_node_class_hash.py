"""Tests of the node class hash: written fields replace nodes, resources that selectors match do not."""

from typing import Any

import pytest

from shared.model.core.labels import NODECLASS_HASH_VERSION_VALUE
from shared.wire.decode.node_class import parse_node_class
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import ObjectMetaJson

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


def compute_spec_hash(**changes: Any) -> str:
    spec = {key: value for key, value in (SPEC | changes).items() if value is not None}
    return parse_node_class(wire.NodeClassJson(metadata=ObjectMetaJson(name="default"), spec=spec)).spec_hash


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
def test_node_class_hash_changes_with_fields_that_define_nodes(changes: dict[str, Any]) -> None:
    assert compute_spec_hash(**changes) != compute_spec_hash()


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
def test_node_class_hash_ignores_selectors_order_and_default_values(changes: dict[str, Any]) -> None:
    assert compute_spec_hash(**changes) == compute_spec_hash()


def test_node_class_hash_version_differs_from_karpenter_versions() -> None:
    """Otherwise all claims of an adopted cluster would seem to have drifted, because Karpenter's hashes differ."""
    assert NODECLASS_HASH_VERSION_VALUE not in {f"v{number}" for number in range(100)}
