"""User data, read back with the parser of the simulated node."""

import base64
import tomllib
from typing import Any

import msgspec
import pytest

from shared.decide.launch.ami_families.bootstrap import Bootstrap
from shared.decide.launch.ami_families.bottlerocket import find_bottlerocket_version
from shared.decide.launch.ami_families.user_data import build_user_data, encode_user_data
from shared.decide.launch.fleets.launch_template import build_fitted_templates, find_image_id
from shared.decide.launch.fleets.offerings import LaunchOffering
from shared.model.core.requirements import Requirements
from shared.model.core.taints import Taint
from shared.model.ec2.account import PlacementGroup, SelectorTerm
from shared.model.karpenter.node_class import KubeletConfiguration, ResolvedImage
from sim.cluster.kubelet.user_data import parse_user_data
from tests.support.launch_cases import FACTS, build_types_by_name, make_claim, make_node_class

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
    LaunchOffering(
        instance_type=one, offering=next(each for each in one.offerings if each.capacity_type == "spot"), subnet_id="s"
    )
    for one in build_types_by_name().values()
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
def test_user_data_contains_labels_taints_and_max_pods(family: str) -> None:
    read = parse_user_data(build_user_data(make_node_class(ami_family=family), BOOT).encode())
    assert read.cluster_name == "c"
    assert read.max_pods == 29
    assert read.labels == {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/do-not-sync-taints": "true",
        "team": "shop",
    }
    taints = [{name: value for name, value in taint.items() if value} for taint in read.taints]
    assert sorted(taint["key"] for taint in taints) == ["dedicated", "karpenter.sh/unregistered"]
    assert UNREGISTERED in taints


def test_kubelet_settings_are_passed_in_user_data() -> None:
    kubelet_class = make_node_class(
        kubelet=KubeletConfiguration(kube_reserved=(("cpu", "1"),), eviction_hard=(("memory.available", "5%"),))
    )
    read = parse_user_data(build_user_data(kubelet_class, BOOT).encode())
    assert read.kube_reserved == {"cpu": "1"}
    assert read.eviction_hard == {"memory.available": "5%"}


@pytest.mark.parametrize(
    ("user_data", "kind"),
    [
        ("#!/bin/bash\necho hi", "text/x-shellscript"),
        ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig", "application/node.eks.aws"),
        (ARCHIVE, "text/cloud-config"),
    ],
)
def test_user_part_comes_before_the_joiner_part(user_data: str, kind: str) -> None:
    text = build_user_data(make_node_class(user_data=user_data), BOOT)
    assert text.index(kind) < text.rindex("application/node.eks.aws")
    assert parse_user_data(text.encode()).cluster_name == "c"


def test_mime_archive_without_parts_is_rejected_with_a_fix() -> None:
    with pytest.raises(ValueError, match=r"spec\.userData.*boundary"):
        build_user_data(make_node_class(user_data="MIME-Version: 1.0\n\nnothing"), BOOT)


def test_bottlerocket_user_settings_are_kept_and_joiner_settings_take_precedence() -> None:
    bottlerocket_class = make_node_class(
        ami_family="Bottlerocket", user_data="[settings.host-containers.admin]\nenabled = true"
    )
    parsed = tomllib.loads(build_user_data(bottlerocket_class, BOOT))["settings"]
    assert parsed["host-containers"]["admin"]["enabled"] is True
    assert parsed["kubernetes"]["node-taints"]["dedicated"] == ["gpu:NoSchedule"]
    with pytest.raises(ValueError, match=r"spec\.userData: is not TOML.*line 2"):
        build_user_data(make_node_class(ami_family="Bottlerocket", user_data="[settings.kubernetes]\nx : 1\n"), BOOT)


@pytest.mark.parametrize(
    ("fields", "version", "mounts_all"),
    [
        ({"image_selectors": (SelectorTerm(alias="bottlerocket@latest"),)}, "latest", True),
        ({"image_selectors": (SelectorTerm(alias="bottlerocket@1.46.0"),)}, "1.46.0", True),
        ({"image_selectors": (SelectorTerm(alias="bottlerocket@v1.45.9"),)}, "v1.45.9", False),
        ({"image_selectors": (SelectorTerm(alias="bottlerocket@1.46"),)}, "1.46", False),
        ({"image_selectors": (SelectorTerm(name="bottlerocket-aws-k8s-1.34-x86_64-v1.47.0-abc"),)}, "v1.47.0", True),
        ({"image_selectors": (SelectorTerm(id="ami-1"),)}, "v1.48.0", True),
        ({"image_selectors": (SelectorTerm(id="ami-2"),)}, "v1.48.0", True),
        ({"image_selectors": (SelectorTerm(id="ami-2"),), "resolved_images": ()}, "", False),
    ],
)
def test_bottlerocket_version_determines_how_local_disks_are_mounted(
    *, fields: dict[str, Any], version: str, mounts_all: bool
) -> None:
    image = ResolvedImage(image_id="ami-1", name="bottlerocket-aws-k8s-1.34-x86_64-v1.48.0-abc")
    bottlerocket_class = make_node_class(
        ami_family="Bottlerocket", instance_store_policy="RAID0", **({"resolved_images": (image,)} | fields)
    )
    assert find_bottlerocket_version(bottlerocket_class) == version
    commands = tomllib.loads(build_user_data(bottlerocket_class, BOOT))["settings"]["bootstrap-commands"]
    assert ("--dirs" in commands["000-mount-instance-storage"]["commands"][1]) != mounts_all


def test_encoded_mime_part_is_decoded_for_nodeadm_and_kept_for_al2() -> None:
    part = "Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\n" + encode_user_data(
        "#!/bin/sh\necho hi"
    )
    archive = f'Content-Type: multipart/mixed; boundary="B"\n\n--B\n{part}\n--B--\n'
    assert "echo hi" in build_user_data(make_node_class(user_data=archive), BOOT)
    assert "Content-Transfer-Encoding: base64" in build_user_data(
        make_node_class(ami_family="AL2", user_data=archive), BOOT
    )


def test_unknown_ami_family_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"spec\.amiFamily: 'Fedora' is not a supported AMI family"):
        build_user_data(make_node_class(ami_family="Fedora"), BOOT)


def test_cluster_dns_is_omitted_without_a_service_cidr() -> None:
    boot = msgspec.structs.replace(BOOT, facts=msgspec.structs.replace(FACTS, service_cidr=""))
    assert "--dns-cluster-ip" not in build_user_data(make_node_class(ami_family="AL2"), boot)
    assert "DNSClusterIP" not in build_user_data(make_node_class(ami_family="Windows2022"), boot)
    assert "cluster-dns-ip" not in build_user_data(make_node_class(ami_family="Bottlerocket"), boot)


def test_custom_user_data_is_not_changed() -> None:
    assert build_user_data(make_node_class(ami_family="Custom", user_data="as is\r\n"), BOOT) == "as is\r\n"


def test_raid0_is_requested_in_the_node_config() -> None:
    assert '"strategy": "RAID0"' in build_user_data(make_node_class(instance_store_policy="RAID0"), BOOT)


def test_instance_types_with_different_images_or_max_pods_get_separate_launch_templates() -> None:
    fitted_templates = build_fitted_templates(make_claim("a"), make_node_class(), OFFERS, FACTS)
    assert [
        [launch_offering.instance_type.name for launch_offering in fitted.launch_offerings]
        for fitted in fitted_templates
    ] == [
        ["c5.xlarge", "m5.xlarge"],
        ["m5.large"],
        ["m5.metal"],
        ["m6g.large"],
    ]
    assert len({fitted.template.name for fitted in fitted_templates}) == 4


def test_launch_template_name_is_a_digest_of_its_content() -> None:
    first_templates, second_templates = (
        build_fitted_templates(make_claim(name), make_node_class(), OFFERS, FACTS) for name in "ab"
    )
    assert [fitted.template.name for fitted in first_templates] == [fitted.template.name for fitted in second_templates]
    changed_templates = build_fitted_templates(make_claim("a"), make_node_class(http_tokens="optional"), OFFERS, FACTS)
    assert {fitted.template.name for fitted in first_templates}.isdisjoint(
        fitted.template.name for fitted in changed_templates
    )


def test_instance_type_without_a_matching_image_is_left_out() -> None:
    assert find_image_id(make_node_class(resolved_images=()), Requirements()) == ""
    assert build_fitted_templates(make_claim("a"), make_node_class(resolved_images=()), OFFERS, FACTS) == ()


def test_user_data_is_encoded_in_base64() -> None:
    assert base64.b64decode(encode_user_data("a b")) == b"a b"


def test_mime_boundary_does_not_occur_in_the_user_data() -> None:
    text = build_user_data(make_node_class(user_data="#!/bin/sh\ncat <<X\n--//\n--///--\nX"), BOOT)
    assert 'boundary="////"' in text
    assert parse_user_data(text.encode()).cluster_name == "c"


def test_launch_template_uses_the_placement_group_from_the_catalog() -> None:
    """Launches read the node class from its status, which has no field for a placement group."""
    types_by_name = build_types_by_name(make_node_class(resolved_placement_group=PlacementGroup(group_id="pg-1")))
    offers = tuple(
        LaunchOffering(instance_type=instance_type, offering=instance_type.offerings[0], subnet_id="s")
        for instance_type in types_by_name.values()
    )
    grouped_class = make_node_class(placement_group_selector=SelectorTerm(name="racks"))
    assert {
        fitted.template.placement_group_id
        for fitted in build_fitted_templates(make_claim("a"), grouped_class, offers, FACTS)
    } == {"pg-1"}
    assert {
        fitted.template.placement_group_id
        for fitted in build_fitted_templates(make_claim("a"), make_node_class(), offers, FACTS)
    } == {""}
