"""Amounts of spec.kubelet that are expressions: the language, what comes of it, and what the machine is told."""

import base64
import json
import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.launch.amounts import VARIABLES, settled, uncomputable, unreadable
from shared.launch.cel import LONGEST, Value, expression
from shared.launch.groups import plan_launches
from shared.launch.type_room import Knobs
from shared.launch.types import instance_types
from shared.launch.validation import findings
from shared.model.catalogue import Catalogue
from shared.model.ec2 import LaunchTemplate, Selector
from shared.model.nodeclasses import EC2NodeClass, Kubelet
from shared.model.resources import CPU, MEMORY, PODS
from shared.snapshot.catalogue import decode_catalogue, encode_catalogue
from tests.unit.launch_cases import FACTS, INFOS, MARKET, NOW, claim, cluster, info, node_class

KNOWN: dict[str, Value] = {
    "default_enis": 4,
    "instance_type": "m5.xlarge",
    "ips_per_eni": 15,
    "max_pods": 58,
    "memory_mib": 16_384,
    "vcpus": 4,
}
SELECTOR = Selector()
CEL = Knobs(node_class_cel=True)


def said(**kubelet: Any) -> EC2NodeClass:
    """Answer a class as it is read whose spec.kubelet is *kubelet*."""
    amounts: Any = {
        name: tuple(
            (key, value)
            for key, value in sorted(kubelet.get(field, {}).items())
            if value[0].isdecimal() and " " not in value
        )
        for name, field in (("kube_reserved", "kubeReserved"), ("system_reserved", "systemReserved"))
    }
    return node_class(kubelet=Kubelet(**amounts), kubelet_text=json.dumps(kubelet))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2.0", 3.5),
        ("1e3 + 0.5", 1000.5),
        ("2 - 3 - 4", -5),
        ("--3", 3),
        ("vcpus * 10", 40),
        ("max(vcpus, 8)", 8),
        ("min(vcpus, 8, 2)", 2),
        ("max(vcpus, 4.5)", 4.5),
        ("int(double(memory_mib) * 0.1)", 1638),
        ("int('12') + 1", 13),
        ("size(instance_type)", 9),
        ("size([1, 2]) + size([])", 2),
        ("vcpus > 2 ? 10 : 20", 10),
        ("vcpus > 4 ? 10 : vcpus > 3 ? 15 : 20", 15),
        ("vcpus >= 4 && memory_mib < 20000 ? 1 : 0", 1),
        ("vcpus < 4 || vcpus > 3.5 ? 1 : 0", 1),
        ("!(vcpus == 4) ? 1 : 0", 0),
        ("vcpus != 4 ? 1 : 0", 0),
        ("vcpus <= 4 ? 1 : 0", 1),
        ("instance_type.startsWith('m5') ? 1 : 2", 1),
        ('instance_type.endsWith("large") && instance_type.contains(".") ? 1 : 2', 1),
        ("instance_type in ['m5.large', 'm5.xlarge'] ? 1 : 2", 1),
        ("instance_type + 'x' == string(true) ? 1 : 2", 2),
        ("string(vcpus) + string(1.5) == '41.5' ? 1 : 2", 1),
        ("false ? 1 : 2", 2),
        ("default_enis * (ips_per_eni - 1) + 2", 58),
    ],
)
def test_what_an_expression_comes_to(text: str, value: float) -> None:
    assert expression(text, VARIABLES).value(KNOWN) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("1 2", "'2' is one too many"),
        ("(1", "want '\\)'"),
        ("max(1 2)", "want ','"),
        (")", "not where it can be"),
        ("#1", "not understood"),
        ("cpus * 2", "there is no cpus: use default_enis"),
        ("round(1)", "there is no round"),
        ("instance_type.size()", "there is no .size"),
        ("instance_type.startsWith(1)", "is for a string"),
        ("1 + 2.0", "write double"),
        ("instance_type - 'a'", "- cannot take string"),
        ("true + false", "cannot take bool"),
        ("1.5 % 2.0", "% wants whole numbers"),
        ("1 ? 2 : 3", "true or false before it"),
        ("true ? 2 : 3.0", "chooses between"),
        ("true ? 1", "want ':'"),
        ("1 && true", "wants true or false on both sides"),
        ("1 < 'a'", "cannot compare"),
        ("[1] == [1]", "cannot compare"),
        ("1 in 2", "wants a list"),
        ("!1", "! wants"),
        ("-'a'", "- wants a number"),
        ("max()", "max wants numbers"),
        ("max('a')", "max wants numbers"),
        ("int(true)", "int takes one of"),
        ("int(1, 2)", "int takes one of"),
        ("99999999999999999999", "64 bits"),
        ("(" * 50 + "1" + ")" * 50, "nested too deeply"),
        ("1" + " + 1" * LONGEST, "longer than"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        expression(text, VARIABLES)


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "9223372036854775807 + 1", "int(1.0 / 0.0)", "int('one')"])
def test_what_cannot_be_computed_is_told(text: str) -> None:
    found = expression(text, VARIABLES)
    with pytest.raises(ValueError, match=r"zero|64 bits|whole number|invalid literal"):
        found.value(KNOWN)


def test_doubles_divide_by_nothing_as_doubles_do() -> None:
    values = [expression(text, VARIABLES).value(KNOWN) for text in ("1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0")]
    assert values[:2] == [math.inf, -math.inf]
    assert math.isnan(values[2])


@given(one=st.integers(-(2**31), 2**31), other=st.integers(-(2**31), 2**31).filter(bool))
def test_quotient_and_rest_make_the_whole(one: int, other: int) -> None:
    [quotient, rest] = [expression(f"({one}) {sign} ({other})", VARIABLES).value({}) for sign in ("/", "%")]
    assert quotient * other + rest == one
    assert abs(rest) < abs(other)
    assert rest * one >= 0


@given(text=st.text(alphabet="0123456789.+-*/%()<>=!&|?:,[]'\" abcdefghijklmnopqrstuvwxyz_", max_size=40))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(expression(text, VARIABLES).value(KNOWN), int | float | str | list)


def test_amounts_are_written_in_steps() -> None:
    some = said(
        kubeReserved={
            "cpu": "vcpus * 13",
            "memory": "memory_mib / 100",
            "ephemeral-storage": "vcpus / 3",
            "pid": "max_pods * 7",
        },
        systemReserved={"cpu": "100m", "memory": "double(memory_mib) * 0.001"},
    )
    found = settled(some, info("m5.xlarge", 4, 16), 58)
    assert dict(found.kube_reserved) == {"cpu": "60m", "memory": "176Mi", "ephemeral-storage": "1Gi", "pid": "406"}
    assert dict(found.system_reserved) == {"cpu": "100m", "memory": "16Mi"}


def test_pods_are_computed_first_and_the_rest_with_what_came_of_it() -> None:
    some = said(maxPods="max_pods / 2", kubeReserved={"memory": "11 * max_pods"})
    found = settled(some, info("m5.xlarge", 4, 16), 58)
    assert found.max_pods == 29
    assert dict(found.kube_reserved) == {"memory": "320Mi"}


def test_what_cannot_be_computed_for_a_type_is_as_if_it_were_not_written() -> None:
    some = said(maxPods="vcpus - 10", kubeReserved={"cpu": "10 - 100 * vcpus", "memory": "1 / (vcpus - 4)"})
    found = settled(some, info("m5.xlarge", 4, 16), 58)
    assert (found.max_pods, found.kube_reserved) == (None, ())


def test_types_have_the_room_that_the_expressions_leave() -> None:
    some = said(maxPods="min(vcpus * 10, 30)", kubeReserved={"memory": "memory_mib / 8", "cpu": "vcpus * 50"})
    room = {one.name: one for one in instance_types(INFOS, MARKET, some, CEL)}
    usual = {one.name: one for one in instance_types(INFOS, MARKET, some, Knobs())}
    assert {name: room[name].capacity[PODS] for name in ("m5.large", "m5.xlarge")} == {"m5.large": 20, "m5.xlarge": 30}
    assert room["m5.xlarge"].overhead[CPU] == 200
    assert room["m5.xlarge"].overhead[MEMORY] == (2048 + 100) * 1024**2
    assert usual["m5.xlarge"].capacity[PODS] == 58
    assert usual["m5.xlarge"].kube_reserved == ()


def catalogue(some: EC2NodeClass) -> Catalogue:
    made = instance_types(INFOS, MARKET, some, CEL)
    kept = Catalogue(region="us-east-1", instance_types=(), by_node_class=(("default", made),), made_at=NOW)
    read = decode_catalogue(encode_catalogue(kept))
    assert read == kept
    return read


def test_each_machine_is_told_its_own_amounts() -> None:
    some = said(maxPods="30", kubeReserved={"cpu": "vcpus * 50", "memory": "500Mi"}, podPidsLimit=9)
    [launch] = plan_launches(cluster(claim("a"), catalogue=catalogue(some), node_classes=(some,))).launches
    asked = {one.launch_template_name: one.overrides for one in launch.group.request.configs}
    told = {one.instance_type: config(template) for template in launch.group.templates for one in asked[template.name]}
    assert {kind: one["kubeReserved"] for kind, one in told.items()} == {
        "m5.large": {"cpu": "100m", "memory": "500Mi"},
        "m5.xlarge": {"cpu": "200m", "memory": "500Mi"},
        "c5.xlarge": {"cpu": "200m", "memory": "500Mi"},
    }
    assert {(one["maxPods"], one["podPidsLimit"]) for one in told.values()} == {(30, 9)}
    assert len(launch.group.templates) == 2


def config(template: LaunchTemplate) -> dict[str, Any]:
    text = base64.b64decode(template.user_data).decode()
    read: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return dict(read["spec"]["kubelet"]["config"])


@pytest.mark.parametrize(
    ("kubelet", "gate", "reason", "words"),
    [
        ({"maxPods": "vcpus * 8"}, False, "KubeletExpressionsDisabled", "NodeClassCEL=true"),
        ({"maxPods": "vcpus * 8"}, True, "", ""),
        ({"maxPods": "cpus * 8"}, True, "KubeletExpressionInvalid", "there is no cpus"),
        ({"maxPods": "instance_type"}, True, "KubeletExpressionInvalid", "want a number"),
        ({"kubeReserved": {"cpu": "100 / (vcpus - 2)"}}, True, "KubeletExpressionEvaluationFailed", "on t3.nano"),
        ({"maxPods": "vcpus - 2000"}, True, "KubeletExpressionEvaluationFailed", "no number of pods"),
        ({"systemReserved": {"memory": "1.0 / 0.0"}}, True, "KubeletExpressionEvaluationFailed", "comes to inf"),
        ({"systemReserved": {"memory": "max_pods - 200"}}, True, "KubeletExpressionEvaluationFailed", "below zero"),
    ],
)
def test_an_expression_is_allowed_where_the_gate_is_open_and_it_holds_for_all(
    *, kubelet: dict[str, Any], gate: bool, reason: str, words: str
) -> None:
    found = findings(whole(said(**kubelet)), FACTS, with_expressions=gate)
    assert [one.reason for one in found] == ([reason] if reason else [])
    assert all(words in one.message for one in found)


def whole(some: EC2NodeClass) -> EC2NodeClass:
    terms = (msgspec.structs.replace(SELECTOR, id=f"{kind}-1") for kind in ("subnet", "sg", "ami"))
    subnet, group, image = ((one,) for one in terms)
    return msgspec.structs.replace(
        some,
        subnet_selectors=subnet,
        security_group_selectors=group,
        image_selectors=image,
        written_family="AL2023",
        role="nodes",
    )


def test_each_expression_that_is_wrong_is_named_once() -> None:
    wrong = said(maxPods="a", kubeReserved={"cpu": "b"})
    assert [one.partition(":")[0] for one in unreadable(wrong)] == [
        "spec.kubelet.kubeReserved.cpu",
        "spec.kubelet.maxPods",
    ]
    assert len(list(uncomputable(said(maxPods="0 - vcpus"), INFOS, 110))) == 1
