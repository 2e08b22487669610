"""What old manifests become is taken by a real API server, with its defaults and rules, and still means the same."""

import json
from typing import Any, Final

import pytest
import yaml

from shared.ports import Kube
from tests.controlplane.plane import ControlPlane
from tests.golden.older import NAMES, converted

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]
PATHS: Final = {
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
}


def made(name: str) -> list[dict[str, Any]]:
    """Answer the objects of ours that the manifest called *name* becomes."""
    _, out, _ = converted(name)
    return [one for one in yaml.safe_load_all(out) if one and one["kind"] in PATHS]


def kept(kube: Kube, value: dict[str, Any]) -> dict[str, Any]:
    """Answer what the API server has of *value* after it was created; it is gone afterwards."""
    body = json.dumps(value).replace("${KARPENTER_NODE_ROLE}", "nodes").encode()
    spec: dict[str, Any] = json.loads(kube.create(PATHS[value["kind"]], body))["spec"]
    kube.delete(f"{PATHS[value['kind']]}/{value['metadata']['name']}")
    return spec


def lost(wanted: object, found: object, path: str = "spec") -> list[str]:
    """Answer what of *wanted* is not in *found*: what the API server adds is its own business."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [each for key in wanted for each in lost(wanted[key], found.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = zip(wanted, found, strict=True)
        return [each for n, (one, other) in enumerate(pairs) for each in lost(one, other, f"{path}[{n}]")]
    return [] if str(wanted) == str(found) else [f"{path}: {wanted!r} is {found!r}"]


@pytest.mark.parametrize("name", [name for name in NAMES if made(name)])
def test_what_an_old_manifest_becomes_is_taken_and_kept_whole(cluster: ControlPlane, name: str) -> None:
    kube = cluster.client()
    for value in made(name):
        assert lost(value["spec"], kept(kube, value)) == []
