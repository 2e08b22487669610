"""Tests of volumes as they are decoded."""

from typing import Any

import pytest

from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.requirements import ANYTHING, build_requirements, parse_requirement
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

BY_KIND = {listing.kind: listing for listing in RESOURCE_KINDS}
EBS = "ebs.csi.aws.com"


def read(kind: str, **parts: Any) -> Any:
    [obj], [] = BY_KIND[kind].convert_objects([{"metadata": {"name": "data"}} | parts])
    return obj


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


def make_volume_affinity(*keys: str) -> dict[str, Any]:
    selector_terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]} for key in keys]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": selector_terms}}}


def test_a_volumes_terms_speak_todays_language() -> None:
    volume = read(
        "PersistentVolume",
        spec={"csi": {"driver": EBS}} | make_volume_affinity("topology.ebs.csi.aws.com/zone", HOSTNAME),
    )
    assert volume.terms == tuple(build_requirements([parse_requirement(key, "In", ["x"])]) for key in (ZONE, HOSTNAME))


def test_a_local_volume_does_not_bind_to_its_host() -> None:
    volume = read("PersistentVolume", spec={"local": {}} | make_volume_affinity(HOSTNAME, ZONE))
    assert volume.terms == (ANYTHING, build_requirements([parse_requirement(ZONE, "In", ["x"])]))


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
    storage_class = read(
        "StorageClass",
        metadata={"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="kubernetes.io/aws-ebs",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": labels}],
    )
    assert (storage_class.provisioner, storage_class.binding_mode, storage_class.is_default) == (
        EBS,
        "WaitForFirstConsumer",
        True,
    )
    assert storage_class.allowed_topologies == (build_requirements([parse_requirement(ZONE, "In", ["a", "b"])]),)


def test_a_storage_class_binds_at_once_unless_it_says_otherwise() -> None:
    storage_class = read("StorageClass", provisioner="x")
    assert (storage_class.binding_mode, storage_class.is_default, storage_class.allowed_topologies) == (
        "Immediate",
        False,
        (),
    )


def test_a_driver_without_a_count_has_no_limit() -> None:
    drivers = [{"name": "z", "allocatable": {"count": 3}}, {"name": EBS, "allocatable": {"count": 0}}, {"name": "efs"}]
    assert read("CSINode", spec={"drivers": drivers}).limits == ((EBS, 0), ("z", 3))


def test_an_attachment_says_which_volume_is_where() -> None:
    attachment = read("VolumeAttachment", spec={"nodeName": "ip-1", "source": {"persistentVolumeName": "pv"}})
    assert (attachment.node_name, attachment.volume_name) == ("ip-1", "pv")
