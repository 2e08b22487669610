"""Tests of status patches: a patched node class equals what a list would return."""

import json

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import PatchStatus
from shared.take.kubernetes.status_after_write import apply_status_patches, with_status
from tests.support.launch_cases import NOW, make_node_class

STATUS = {
    "subnets": [{"id": "subnet-1", "zone": "z", "zoneID": "z1"}],
    "amis": [{"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}],
    "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 2}],
}


def make_patch(name: str, kind: str = "EC2NodeClass") -> PatchStatus:
    return PatchStatus(kind=kind, name=name, status=json.dumps(STATUS), message="")  # type: ignore[arg-type]


def test_status_patch_replaces_written_fields_and_keeps_others() -> None:
    before = make_node_class()
    after = with_status(before, json.dumps(STATUS))
    assert [(subnet.subnet_id, subnet.zone, subnet.zone_id) for subnet in after.resolved_subnets] == [
        ("subnet-1", "z", "z1")
    ]
    assert [image.image_id for image in after.resolved_images] == ["ami-1"]
    assert not after.is_ready()
    untouched = ("meta", "resolved_security_groups", "resolved_profile", "ami_family", "spec_hash")
    assert all(getattr(after, name) == getattr(before, name) for name in untouched)


def test_empty_list_in_a_status_patch_is_applied() -> None:
    assert with_status(make_node_class(), '{"subnets": []}').resolved_subnets == ()
    assert with_status(make_node_class(), "{}") == make_node_class()


def test_status_patch_changes_only_its_own_node_class() -> None:
    other_meta = msgspec.structs.replace(make_node_class().meta, name="other")
    cluster = ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(), make_node_class(meta=other_meta)))
    after = apply_status_patches(cluster, (make_patch("other"), make_patch("default", kind="NodePool")))
    assert after.node_classes[0] == make_node_class()
    assert after.node_classes[1].resolved_images[0].image_id == "ami-1"
