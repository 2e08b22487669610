"""User data, read back by what a machine would read it with."""

import base64
import tomllib
from typing import Any

import msgspec
import pytest

from shared.launch.offers import Offer
from shared.launch.templates import image_for, templates
from shared.launch.userdata import Bootstrap, encoded, user_data
from shared.launch.userdata_bottlerocket import version_of
from shared.model.ec2 import PlacementGroup, Selector
from shared.model.nodeclasses import Kubelet, ResolvedImage
from shared.model.requirements import Requirements
from shared.model.taints import Taint
from sim.cluster.userdata import boot_settings_from_user_data
from tests.unit.launch_cases import FACTS, claim, node_class, types

BOOT = Bootstrap(
    facts=FACTS,
    labels=(
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/role", "forbidden"),
        ("node.kubernetes.io/x", "forbidden"),
        ("team", "shop"),
    ),
    taints=(Taint(key="dedicated", value="gpu", effect="NoSchedule"),),
    max_pods=29,
)
OFFERS = tuple(
    Offer(
        instance_type=one, offering=next(each for each in one.offerings if each.capacity_type == "spot"), subnet_id="s"
    )
    for one in types().values()
)
ARCHIVE = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/cloud-config

packages: []
--B--
"""
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


@pytest.mark.parametrize("family", ["AL2023", "Bottlerocket"])
def test_a_machine_reads_its_labels_taints_and_limits(family: str) -> None:
    read = boot_settings_from_user_data(user_data(node_class(ami_family=family), BOOT).encode())
    assert read.cluster_name == "c"
    assert read.max_pods == 29
    assert read.labels == {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/do-not-sync-taints": "true",
        "team": "shop",
    }
    kept = [{name: value for name, value in taint.items() if value} for taint in read.taints]
    assert sorted(taint["key"] for taint in kept) == ["dedicated", "karpenter.sh/unregistered"]
    assert UNREGISTERED in kept


def test_the_kubelets_settings_reach_it() -> None:
    some = node_class(kubelet=Kubelet(kube_reserved=(("cpu", "1"),), eviction_hard=(("memory.available", "5%"),)))
    read = boot_settings_from_user_data(user_data(some, BOOT).encode())
    assert read.kube_reserved == {"cpu": "1"}
    assert read.eviction_hard == {"memory.available": "5%"}


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        ("#!/bin/bash\necho hi", "text/x-shellscript"),
        ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig", "application/node.eks.aws"),
        (ARCHIVE, "text/cloud-config"),
    ],
)
def test_the_users_own_part_comes_before_ours(own: str, kind: str) -> None:
    text = user_data(node_class(user_data=own), BOOT)
    assert text.index(kind) < text.rindex("application/node.eks.aws")
    assert boot_settings_from_user_data(text.encode()).cluster_name == "c"


def test_an_archive_without_parts_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"spec\.userData.*boundary"):
        user_data(node_class(user_data="MIME-Version: 1.0\n\nnothing"), BOOT)


def test_other_tables_of_bottlerocket_pass_through_and_ours_are_ours() -> None:
    some = node_class(ami_family="Bottlerocket", user_data="[settings.host-containers.admin]\nenabled = true")
    parsed = tomllib.loads(user_data(some, BOOT))["settings"]
    assert parsed["host-containers"]["admin"]["enabled"] is True
    assert parsed["kubernetes"]["node-taints"]["dedicated"] == ["gpu:NoSchedule"]
    with pytest.raises(ValueError, match=r"spec\.userData: is not TOML.*line 2"):
        user_data(node_class(ami_family="Bottlerocket", user_data="[settings.kubernetes]\nx : 1\n"), BOOT)


@pytest.mark.parametrize(
    ("fields", "version", "mounts_all"),
    [
        ({"image_selectors": (Selector(alias="bottlerocket@latest"),)}, "latest", True),
        ({"image_selectors": (Selector(alias="bottlerocket@1.46.0"),)}, "1.46.0", True),
        ({"image_selectors": (Selector(alias="bottlerocket@v1.45.9"),)}, "v1.45.9", False),
        ({"image_selectors": (Selector(alias="bottlerocket@1.46"),)}, "1.46", False),
        ({"image_selectors": (Selector(name="bottlerocket-aws-k8s-1.34-x86_64-v1.47.0-abc"),)}, "v1.47.0", True),
        ({"image_selectors": (Selector(id="ami-1"),)}, "v1.48.0", True),
        ({"image_selectors": (Selector(id="ami-2"),)}, "v1.48.0", True),
        ({"image_selectors": (Selector(id="ami-2"),), "resolved_images": ()}, "", False),
    ],
)
def test_the_release_of_bottlerocket_decides_how_disks_are_mounted(
    *, fields: dict[str, Any], version: str, mounts_all: bool
) -> None:
    image = ResolvedImage(image_id="ami-1", name="bottlerocket-aws-k8s-1.34-x86_64-v1.48.0-abc")
    some = node_class(
        ami_family="Bottlerocket", instance_store_policy="RAID0", **({"resolved_images": (image,)} | fields)
    )
    assert version_of(some) == version
    commands = tomllib.loads(user_data(some, BOOT))["settings"]["bootstrap-commands"]
    assert ("--dirs" in commands["000-mount-instance-storage"]["commands"][1]) != mounts_all


def test_a_part_that_is_encoded_is_decoded_for_nodeadm() -> None:
    part = "Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\n" + encoded("#!/bin/sh\necho hi")
    archive = f'Content-Type: multipart/mixed; boundary="B"\n\n--B\n{part}\n--B--\n'
    assert "echo hi" in user_data(node_class(user_data=archive), BOOT)
    assert "Content-Transfer-Encoding: base64" in user_data(node_class(ami_family="AL2", user_data=archive), BOOT)


def test_a_family_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spec\.amiFamily: 'Fedora' is no family"):
        user_data(node_class(ami_family="Fedora"), BOOT)


def test_without_a_service_cidr_no_dns_is_said() -> None:
    boot = msgspec.structs.replace(BOOT, facts=msgspec.structs.replace(FACTS, service_cidr=""))
    assert "--dns-cluster-ip" not in user_data(node_class(ami_family="AL2"), boot)
    assert "DNSClusterIP" not in user_data(node_class(ami_family="Windows2022"), boot)
    assert "cluster-dns-ip" not in user_data(node_class(ami_family="Bottlerocket"), boot)


def test_custom_user_data_is_not_touched() -> None:
    assert user_data(node_class(ami_family="Custom", user_data="as is\r\n"), BOOT) == "as is\r\n"


def test_raid0_is_asked_of_the_node_agent() -> None:
    assert '"strategy": "RAID0"' in user_data(node_class(instance_store_policy="RAID0"), BOOT)


def test_types_with_other_images_or_pods_have_templates_of_their_own() -> None:
    found = templates(claim("a"), node_class(), OFFERS, FACTS)
    assert [[one.instance_type.name for one in fitted.offers] for fitted in found] == [
        ["c5.xlarge", "m5.xlarge"],
        ["m5.large"],
        ["m5.metal"],
        ["m6g.large"],
    ]
    assert len({fitted.template.name for fitted in found}) == 4


def test_a_templates_name_is_its_content() -> None:
    one, same = (templates(claim(name), node_class(), OFFERS, FACTS) for name in "ab")
    assert [fitted.template.name for fitted in one] == [fitted.template.name for fitted in same]
    other = templates(claim("a"), node_class(http_tokens="optional"), OFFERS, FACTS)
    assert {fitted.template.name for fitted in one}.isdisjoint(fitted.template.name for fitted in other)


def test_a_type_that_no_image_is_for_is_left_out() -> None:
    assert image_for(node_class(resolved_images=()), Requirements()) == ""
    assert templates(claim("a"), node_class(resolved_images=()), OFFERS, FACTS) == ()


def test_it_is_sent_in_base64() -> None:
    assert base64.b64decode(encoded("a b")) == b"a b"


def test_a_part_cannot_end_the_archive_early() -> None:
    text = user_data(node_class(user_data="#!/bin/sh\ncat <<X\n--//\n--///--\nX"), BOOT)
    assert 'boundary="////"' in text
    assert boot_settings_from_user_data(text.encode()).cluster_name == "c"


def test_a_launch_is_into_the_placement_group_that_the_catalogue_names() -> None:
    """Launches see the class as its status has it, where there is no room for a group."""
    there = types(node_class(resolved_placement_group=PlacementGroup(group_id="pg-1")))
    offers = tuple(Offer(instance_type=one, offering=one.offerings[0], subnet_id="s") for one in there.values())
    some = node_class(placement_group_selector=Selector(name="racks"))
    assert {one.template.placement_group_id for one in templates(claim("a"), some, offers, FACTS)} == {"pg-1"}
    assert {one.template.placement_group_id for one in templates(claim("a"), node_class(), offers, FACTS)} == {""}
