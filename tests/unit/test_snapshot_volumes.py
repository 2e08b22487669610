"""Volumes as they are read."""

from typing import Any

import pytest

from shared.model.labels import HOSTNAME, ZONE
from shared.model.requirements import ANYTHING, requirement, requirements
from shared.snapshot.kinds import LISTINGS

BY_KIND = {listing.kind: listing for listing in LISTINGS}
EBS = "ebs.csi.aws.com"


def read(kind: str, **parts: Any) -> Any:
    [found], [] = BY_KIND[kind].objects([{"metadata": {"name": "data"}} | parts])
    return found


@pytest.mark.parametrize(
    ("source", "driver", "is_local"),
    [
        ({"csi": {"driver": EBS}}, EBS, False),
        ({"csi": {"driver": "kubernetes.io/aws-ebs"}}, EBS, False),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, EBS, False),
        ({"nfs": {}}, "", False),
        ({"local": {"path": "/x"}}, "", True),
        ({"hostPath": {"path": "/x"}}, "", True),
    ],
)
def test_a_volume_has_a_driver(source: dict[str, Any], driver: str, is_local: bool) -> None:  # noqa: FBT001
    volume = read("PersistentVolume", spec=source)
    assert (volume.driver, volume.is_local, volume.terms) == (driver, is_local, ())


def terms(*keys: str) -> dict[str, Any]:
    made = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]} for key in keys]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": made}}}


def test_a_volumes_terms_speak_todays_language() -> None:
    volume = read("PersistentVolume", spec={"csi": {"driver": EBS}} | terms("topology.ebs.csi.aws.com/zone", HOSTNAME))
    assert volume.terms == tuple(requirements([requirement(key, "In", ["x"])]) for key in (ZONE, HOSTNAME))


def test_a_local_volume_does_not_bind_to_its_host() -> None:
    volume = read("PersistentVolume", spec={"local": {}} | terms(HOSTNAME, ZONE))
    assert volume.terms == (ANYTHING, requirements([requirement(ZONE, "In", ["x"])]))


def test_a_claim_is_read() -> None:
    claim = read(
        "PersistentVolumeClaim", spec={"volumeName": "pv", "storageClassName": "gp3"}, status={"phase": "Bound"}
    )
    assert (claim.volume_name, claim.storage_class, claim.phase) == ("pv", "gp3", "Bound")
    assert read("PersistentVolumeClaim").phase == "Pending"


def test_a_claim_may_name_its_class_the_old_way() -> None:
    old = {"name": "data", "annotations": {"volume.beta.kubernetes.io/storage-class": "gp2"}}
    assert read("PersistentVolumeClaim", metadata=old).storage_class == "gp2"


def test_a_storage_class_is_read() -> None:
    labels = [{"key": "topology.ebs.csi.aws.com/zone", "values": ["a", "b"]}]
    found = read(
        "StorageClass",
        metadata={"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="kubernetes.io/aws-ebs",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": labels}],
    )
    assert (found.provisioner, found.binding_mode, found.is_default) == (EBS, "WaitForFirstConsumer", True)
    assert found.allowed_topologies == (requirements([requirement(ZONE, "In", ["a", "b"])]),)


def test_a_storage_class_binds_at_once_unless_it_says_otherwise() -> None:
    found = read("StorageClass", provisioner="x")
    assert (found.binding_mode, found.is_default, found.allowed_topologies) == ("Immediate", False, ())


def test_a_driver_without_a_count_has_no_limit() -> None:
    drivers = [{"name": "z", "allocatable": {"count": 3}}, {"name": EBS, "allocatable": {"count": 0}}, {"name": "efs"}]
    assert read("CSINode", spec={"drivers": drivers}).limits == ((EBS, 0), ("z", 3))


def test_an_attachment_says_which_volume_is_where() -> None:
    found = read("VolumeAttachment", spec={"nodeName": "ip-1", "source": {"persistentVolumeName": "pv"}})
    assert (found.node_name, found.volume_name) == ("ip-1", "pv")
