"""User data, read back by what a machine would read it with."""

import base64
import tomllib

import pytest

from shared.launch.templates import image_for, templates
from shared.launch.userdata import Bootstrap, encoded, user_data
from shared.model.nodeclasses import Kubelet
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
    with pytest.raises(ValueError, match=r"spec\.kubelet"):
        user_data(node_class(ami_family="Bottlerocket", user_data="[settings.kubernetes]\nx = 1"), BOOT)


def test_custom_user_data_is_not_touched() -> None:
    assert user_data(node_class(ami_family="Custom", user_data="as is\r\n"), BOOT) == "as is\r\n"


def test_raid0_is_asked_of_the_node_agent() -> None:
    assert '"strategy": "RAID0"' in user_data(node_class(instance_store_policy="RAID0"), BOOT)


def test_types_with_other_images_or_pods_have_templates_of_their_own() -> None:
    found = templates(claim("a"), node_class(), types().values(), FACTS, "spot")
    assert [[one.name for one in fitted.instance_types] for fitted in found] == [
        ["c5.xlarge", "m5.xlarge"],
        ["m5.large"],
        ["m5.metal"],
        ["m6g.large"],
    ]
    assert len({fitted.template.name for fitted in found}) == 4


def test_a_templates_name_is_its_content() -> None:
    one, same = (templates(claim(name), node_class(), types().values(), FACTS, "spot") for name in "ab")
    assert [fitted.template.name for fitted in one] == [fitted.template.name for fitted in same]
    other = templates(claim("a"), node_class(http_tokens="optional"), types().values(), FACTS, "spot")
    assert {fitted.template.name for fitted in one}.isdisjoint(fitted.template.name for fitted in other)


def test_a_type_that_no_image_is_for_is_left_out() -> None:
    assert image_for(node_class(resolved_images=()), Requirements()) == ""
    assert templates(claim("a"), node_class(resolved_images=()), types().values(), FACTS, "spot") == ()


def test_it_is_sent_in_base64() -> None:
    assert base64.b64decode(encoded("a b")) == b"a b"
