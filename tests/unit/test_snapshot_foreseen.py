"""A node class after its status was written is what a list would show."""

import json

import msgspec

from shared.model.action import PatchStatus
from shared.model.cluster import Cluster
from shared.snapshot.foreseen import foreseen, with_status
from tests.unit.launch_cases import NOW, node_class

STATUS = {
    "subnets": [{"id": "subnet-1", "zone": "z", "zoneID": "z1"}],
    "amis": [{"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}],
    "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 2}],
}


def patch(name: str, kind: str = "EC2NodeClass") -> PatchStatus:
    return PatchStatus(kind=kind, name=name, status=json.dumps(STATUS), why="")  # type: ignore[arg-type]


def test_what_is_written_replaces_and_the_rest_stays() -> None:
    before = node_class()
    after = with_status(before, json.dumps(STATUS))
    assert [(one.subnet_id, one.zone, one.zone_id) for one in after.resolved_subnets] == [("subnet-1", "z", "z1")]
    assert [one.image_id for one in after.resolved_images] == ["ami-1"]
    assert not after.is_ready()
    untouched = ("meta", "resolved_security_groups", "resolved_profile", "ami_family", "hashed")
    assert all(getattr(after, name) == getattr(before, name) for name in untouched)


def test_an_empty_list_is_written_too() -> None:
    assert with_status(node_class(), '{"subnets": []}').resolved_subnets == ()
    assert with_status(node_class(), "{}") == node_class()


def test_only_the_class_that_was_patched_changes() -> None:
    other = msgspec.structs.replace(node_class().meta, name="other")
    cluster = Cluster(taken_at=NOW, node_classes=(node_class(), node_class(meta=other)))
    after = foreseen(cluster, (patch("other"), patch("default", kind="NodePool")))
    assert after.node_classes[0] == node_class()
    assert after.node_classes[1].resolved_images[0].image_id == "ami-1"
