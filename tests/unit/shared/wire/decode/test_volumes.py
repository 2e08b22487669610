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
def test_volume_driver_is_derived_from_its_source(source: dict[str, Any], driver: str, is_local: bool) -> None:  # noqa: FBT001
    volume = read("PersistentVolume", spec=source)
    assert (volume.driver, volume.is_local, volume.terms) == (driver, is_local, ())


def make_volume_affinity(*keys: str) -> dict[str, Any]:
    selector_terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]} for key in keys]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": selector_terms}}}


def test_volume_node_affinity_keys_are_normalized() -> None:
    volume = read(
        "PersistentVolume",
        spec={"csi": {"driver": EBS}} | make_volume_affinity("topology.ebs.csi.aws.com/zone", HOSTNAME),
    )
    assert volume.terms == tuple(build_requirements([parse_requirement(key, "In", ["x"])]) for key in (ZONE, HOSTNAME))


def test_local_volume_affinity_ignores_the_hostname() -> None:
    volume = read("PersistentVolume", spec={"local": {}} | make_volume_affinity(HOSTNAME, ZONE))
    assert volume.terms == (ANYTHING, build_requirements([parse_requirement(ZONE, "In", ["x"])]))


def test_volume_claim_is_decoded() -> None:
    claim = read(
        "PersistentVolumeClaim", spec={"volumeName": "pv", "storageClassName": "gp3"}, status={"phase": "Bound"}
    )
    assert (claim.volume_name, claim.storage_class, claim.phase) == ("pv", "gp3", "Bound")
    assert read("PersistentVolumeClaim").phase == "Pending"


def test_volume_claim_storage_class_annotation_is_decoded() -> None:
    old = {"name": "data", "annotations": {"volume.beta.kubernetes.io/storage-class": "gp2"}}
    assert read("PersistentVolumeClaim", metadata=old).storage_class == "gp2"


def test_storage_class_is_decoded() -> None:
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


def test_storage_class_binds_immediately_by_default() -> None:
    storage_class = read("StorageClass", provisioner="x")
    assert (storage_class.binding_mode, storage_class.is_default, storage_class.allowed_topologies) == (
        "Immediate",
        False,
        (),
    )


def test_csi_driver_without_an_allocatable_count_has_no_limit() -> None:
    drivers = [{"name": "z", "allocatable": {"count": 3}}, {"name": EBS, "allocatable": {"count": 0}}, {"name": "efs"}]
    assert read("CSINode", spec={"drivers": drivers}).limits == ((EBS, 0), ("z", 3))


def test_volume_attachment_names_its_volume_and_node() -> None:
    attachment = read("VolumeAttachment", spec={"nodeName": "ip-1", "source": {"persistentVolumeName": "pv"}})
    assert (attachment.node_name, attachment.volume_name) == ("ip-1", "pv")
