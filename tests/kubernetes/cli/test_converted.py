"""Converted old manifests are accepted by a real API server, with its defaults and rules, and keep their meaning."""

import json
from typing import Any, Final

import pytest
import yaml

from shared.ports.kubernetes import Kube
from tests.controlplane.plane import ControlPlane
from tests.golden.older import NAMES, run_convert

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]
PATHS: Final = {
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
}


def list_converted_objects(name: str) -> list[dict[str, Any]]:
    """Return Joiner's objects in the conversion of the manifest called *name*."""
    _, out, _ = run_convert(name)
    return [document for document in yaml.safe_load_all(out) if document and document["kind"] in PATHS]


def create_and_read_spec(kube: Kube, value: dict[str, Any]) -> dict[str, Any]:
    """Create *value*, return the spec that the API server stores, and delete the object."""
    body = json.dumps(value).replace("${KARPENTER_NODE_ROLE}", "nodes").encode()
    spec: dict[str, Any] = json.loads(kube.create(PATHS[value["kind"]], body))["spec"]
    kube.delete(f"{PATHS[value['kind']]}/{value['metadata']['name']}")
    return spec


def list_lost_fields(expected: object, actual: object, path: str = "spec") -> list[str]:
    """Return the fields of *expected* that *actual* lacks or changes; additions of the API server are ignored."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [loss for key in expected for loss in list_lost_fields(expected[key], actual.get(key), f"{path}.{key}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = zip(expected, actual, strict=True)
        return [
            loss
            for n, (expected_item, actual_item) in enumerate(pairs)
            for loss in list_lost_fields(expected_item, actual_item, f"{path}[{n}]")
        ]
    return [] if str(expected) == str(actual) else [f"{path}: {expected!r} is {actual!r}"]


@pytest.mark.parametrize("name", [name for name in NAMES if list_converted_objects(name)])
def test_converted_manifest_is_accepted_by_the_api_server_without_lost_fields(cluster: ControlPlane, name: str) -> None:
    kube = cluster.get_client()
    for value in list_converted_objects(name):
        assert list_lost_fields(value["spec"], create_and_read_spec(kube, value)) == []
