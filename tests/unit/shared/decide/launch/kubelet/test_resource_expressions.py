"""Expressions in spec.kubelet: the language, the results, and the configuration that a node gets."""

import base64
import json
import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.decide.launch.kubelet.cel_operators import CelValue
from shared.decide.launch.kubelet.cel_parser import MAX_EXPRESSION_LENGTH, parse_expression
from shared.decide.launch.kubelet.resource_expressions import (
    EXPRESSION_VARIABLES,
    evaluate_kubelet,
    find_failing_expressions,
    find_invalid_expressions,
)
from shared.decide.node_class.validation import validate_node_class
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.resources import CPU, MEMORY, PODS
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_class import EC2NodeClass, KubeletConfiguration
from shared.store.catalog_format import decode_catalog, encode_catalog
from tests.support.launch_cases import (
    FACTS,
    INFOS,
    MARKET,
    NOW,
    make_claim,
    make_cluster,
    make_instance_type_info,
    make_node_class,
)
from tests.support.snapshot_decisions import plan_launches

VARIABLE_VALUES: dict[str, CelValue] = {
    "default_enis": 4,
    "instance_type": "m5.xlarge",
    "ips_per_eni": 15,
    "max_pods": 58,
    "memory_mib": 16_384,
    "vcpus": 4,
}
SELECTOR = SelectorTerm()
CEL_SETTINGS = CapacitySettings(node_class_cel=True)


def make_class_with_kubelet(**kubelet: Any) -> EC2NodeClass:
    """Make a node class whose spec.kubelet is *kubelet*, in the form in which it is read."""
    amounts: Any = {
        name: tuple(
            (key, value)
            for key, value in sorted(kubelet.get(field, {}).items())
            if value[0].isdecimal() and " " not in value
        )
        for name, field in (("kube_reserved", "kubeReserved"), ("system_reserved", "systemReserved"))
    }
    return make_node_class(kubelet=KubeletConfiguration(**amounts), kubelet_text=json.dumps(kubelet))


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
def test_kubelet_expression_is_evaluated(text: str, value: float) -> None:
    assert parse_expression(text, EXPRESSION_VARIABLES).evaluate(VARIABLE_VALUES) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends unexpectedly"),
        ("1 +", "ends unexpectedly"),
        ("1 2", "'2' is unexpected"),
        ("(1", "expected '\\)'"),
        ("max(1 2)", "expected ','"),
        (")", "not allowed here"),
        ("#1", "not valid syntax"),
        ("cpus * 2", "there is no cpus: use default_enis"),
        ("round(1)", "there is no round"),
        ("instance_type.size()", "there is no .size"),
        ("instance_type.startsWith(1)", "needs a string"),
        ("1 + 2.0", "write double"),
        ("instance_type - 'a'", "- cannot take string"),
        ("true + false", "cannot take bool"),
        ("1.5 % 2.0", "% needs whole numbers"),
        ("1 ? 2 : 3", r"before \? must be true or false"),
        ("true ? 2 : 3.0", "chooses between"),
        ("true ? 1", "expected ':'"),
        ("1 && true", "needs true or false on both sides"),
        ("1 < 'a'", "cannot compare"),
        ("[1] == [1]", "cannot compare"),
        ("1 in 2", "needs a list"),
        ("!1", "! needs"),
        ("-'a'", "- needs a number"),
        ("max()", "max needs numbers"),
        ("max('a')", "max needs numbers"),
        ("int(true)", "int takes one of"),
        ("int(1, 2)", "int takes one of"),
        ("99999999999999999999", "64 bits"),
        ("(" * 50 + "1" + ")" * 50, "nested too deeply"),
        ("1" + " + 1" * MAX_EXPRESSION_LENGTH, "longer than"),
    ],
)
def test_invalid_kubelet_expression_is_rejected_with_a_message(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_expression(text, EXPRESSION_VARIABLES)


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "9223372036854775807 + 1", "int(1.0 / 0.0)", "int('one')"])
def test_arithmetic_errors_are_reported(text: str) -> None:
    expression = parse_expression(text, EXPRESSION_VARIABLES)
    with pytest.raises(ValueError, match=r"zero|64 bits|whole number|invalid literal"):
        expression.evaluate(VARIABLE_VALUES)


def test_division_of_doubles_by_zero_follows_ieee_754() -> None:
    values = [
        parse_expression(text, EXPRESSION_VARIABLES).evaluate(VARIABLE_VALUES)
        for text in ("1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0")
    ]
    assert values[:2] == [math.inf, -math.inf]
    assert math.isnan(values[2])


@given(dividend=st.integers(-(2**31), 2**31), divisor=st.integers(-(2**31), 2**31).filter(bool))
def test_integer_quotient_and_remainder_add_up_to_the_dividend(dividend: int, divisor: int) -> None:
    [quotient, remainder] = [
        parse_expression(f"({dividend}) {sign} ({divisor})", EXPRESSION_VARIABLES).evaluate({}) for sign in ("/", "%")
    ]
    assert quotient * divisor + remainder == dividend
    assert abs(remainder) < abs(divisor)
    assert remainder * dividend >= 0


@given(text=st.text(alphabet="0123456789.+-*/%()<>=!&|?:,[]'\" abcdefghijklmnopqrstuvwxyz_", max_size=40))
def test_any_text_is_evaluated_or_rejected_with_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(
            parse_expression(text, EXPRESSION_VARIABLES).evaluate(VARIABLE_VALUES), int | float | str | list
        )


def test_evaluated_resource_amounts_are_rounded_up_with_units() -> None:
    kubelet_class = make_class_with_kubelet(
        kubeReserved={
            "cpu": "vcpus * 13",
            "memory": "memory_mib / 100",
            "ephemeral-storage": "vcpus / 3",
            "pid": "max_pods * 7",
        },
        systemReserved={"cpu": "100m", "memory": "double(memory_mib) * 0.001"},
    )
    evaluated = evaluate_kubelet(kubelet_class, make_instance_type_info("m5.xlarge", 4, 16), 58)
    assert dict(evaluated.kube_reserved) == {"cpu": "60m", "memory": "176Mi", "ephemeral-storage": "1Gi", "pid": "406"}
    assert dict(evaluated.system_reserved) == {"cpu": "100m", "memory": "16Mi"}


def test_max_pods_is_evaluated_before_the_other_expressions_that_use_it() -> None:
    kubelet_class = make_class_with_kubelet(maxPods="max_pods / 2", kubeReserved={"memory": "11 * max_pods"})
    evaluated = evaluate_kubelet(kubelet_class, make_instance_type_info("m5.xlarge", 4, 16), 58)
    assert evaluated.max_pods == 29
    assert dict(evaluated.kube_reserved) == {"memory": "320Mi"}


def test_expression_that_fails_for_an_instance_type_is_ignored_for_it() -> None:
    kubelet_class = make_class_with_kubelet(
        maxPods="vcpus - 10", kubeReserved={"cpu": "10 - 100 * vcpus", "memory": "1 / (vcpus - 4)"}
    )
    evaluated = evaluate_kubelet(kubelet_class, make_instance_type_info("m5.xlarge", 4, 16), 58)
    assert (evaluated.max_pods, evaluated.kube_reserved) == (None, ())


def test_instance_type_capacity_and_overhead_follow_the_expressions() -> None:
    kubelet_class = make_class_with_kubelet(
        maxPods="min(vcpus * 10, 30)", kubeReserved={"memory": "memory_mib / 8", "cpu": "vcpus * 50"}
    )
    room = {
        instance_type.name: instance_type
        for instance_type in build_instance_types(INFOS, MARKET, kubelet_class, CEL_SETTINGS)
    }
    usual = {
        instance_type.name: instance_type
        for instance_type in build_instance_types(INFOS, MARKET, kubelet_class, CapacitySettings())
    }
    assert {name: room[name].capacity[PODS] for name in ("m5.large", "m5.xlarge")} == {"m5.large": 20, "m5.xlarge": 30}
    assert room["m5.xlarge"].overhead[CPU] == 200
    assert room["m5.xlarge"].overhead[MEMORY] == (2048 + 100) * 1024**2
    assert usual["m5.xlarge"].capacity[PODS] == 58
    assert usual["m5.xlarge"].kube_reserved == ()


def build_stored_catalog(kubelet_class: EC2NodeClass) -> Catalog:
    instance_types = build_instance_types(INFOS, MARKET, kubelet_class, CEL_SETTINGS)
    catalog = Catalog(region="us-east-1", instance_types=(), by_node_class=(("default", instance_types),), built_at=NOW)
    read = decode_catalog(encode_catalog(catalog))
    assert read == catalog
    return read


def test_launch_template_contains_the_evaluated_amounts_of_its_instance_types() -> None:
    kubelet_class = make_class_with_kubelet(
        maxPods="30", kubeReserved={"cpu": "vcpus * 50", "memory": "500Mi"}, podPidsLimit=9
    )
    [launch] = plan_launches(
        make_cluster(make_claim("a"), catalog=build_stored_catalog(kubelet_class), node_classes=(kubelet_class,))
    ).launches
    overrides_by_template = {
        launch_config.launch_template_name: launch_config.overrides for launch_config in launch.group.request.configs
    }
    config_by_type = {
        override.instance_type: parse_kubelet_config(template)
        for template in launch.group.templates
        for override in overrides_by_template[template.name]
    }
    assert {kind: kubelet_config["kubeReserved"] for kind, kubelet_config in config_by_type.items()} == {
        "m5.large": {"cpu": "100m", "memory": "500Mi"},
        "m5.xlarge": {"cpu": "200m", "memory": "500Mi"},
        "c5.xlarge": {"cpu": "200m", "memory": "500Mi"},
    }
    assert {
        (kubelet_config["maxPods"], kubelet_config["podPidsLimit"]) for kubelet_config in config_by_type.values()
    } == {(30, 9)}
    assert len(launch.group.templates) == 2


def parse_kubelet_config(template: LaunchTemplate) -> dict[str, Any]:
    text = base64.b64decode(template.user_data).decode()
    read: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return dict(read["spec"]["kubelet"]["config"])


@pytest.mark.parametrize(
    ("kubelet", "gate", "reason", "words"),
    [
        ({"maxPods": "vcpus * 8"}, False, "KubeletExpressionsDisabled", "NodeClassCEL=true"),
        ({"maxPods": "vcpus * 8"}, True, "", ""),
        ({"maxPods": "cpus * 8"}, True, "KubeletExpressionInvalid", "there is no cpus"),
        ({"maxPods": "instance_type"}, True, "KubeletExpressionInvalid", "must be a number"),
        ({"kubeReserved": {"cpu": "100 / (vcpus - 2)"}}, True, "KubeletExpressionEvaluationFailed", "on t3.nano"),
        ({"maxPods": "vcpus - 2000"}, True, "KubeletExpressionEvaluationFailed", "not a number of pods"),
        ({"systemReserved": {"memory": "1.0 / 0.0"}}, True, "KubeletExpressionEvaluationFailed", "evaluates to inf"),
        ({"systemReserved": {"memory": "max_pods - 200"}}, True, "KubeletExpressionEvaluationFailed", "below zero"),
    ],
)
def test_expression_is_valid_only_with_the_feature_gate_and_for_all_instance_types(
    *, kubelet: dict[str, Any], gate: bool, reason: str, words: str
) -> None:
    findings = validate_node_class(
        with_required_fields(make_class_with_kubelet(**kubelet)), FACTS, are_expressions_enabled=gate
    )
    assert [finding.reason for finding in findings] == ([reason] if reason else [])
    assert all(words in finding.message for finding in findings)


def with_required_fields(base_class: EC2NodeClass) -> EC2NodeClass:
    terms = (msgspec.structs.replace(SELECTOR, id=f"{kind}-1") for kind in ("subnet", "sg", "ami"))
    subnet, group, image = ((term,) for term in terms)
    return msgspec.structs.replace(
        base_class,
        subnet_selectors=subnet,
        security_group_selectors=group,
        image_selectors=image,
        spec_ami_family="AL2023",
        role="nodes",
    )


def test_each_invalid_expression_is_reported_once() -> None:
    wrong = make_class_with_kubelet(maxPods="a", kubeReserved={"cpu": "b"})
    assert [message.partition(":")[0] for message in find_invalid_expressions(wrong)] == [
        "spec.kubelet.kubeReserved.cpu",
        "spec.kubelet.maxPods",
    ]
    assert len(list(find_failing_expressions(make_class_with_kubelet(maxPods="0 - vcpus"), INFOS, 110))) == 1
