"""Metadata, conditions, labels, taints and selectors."""

import pytest

from shared.model.core import labels
from shared.model.core.labels import is_restricted, normalize_label_key
from shared.model.core.metadata import (
    Condition,
    ObjectMeta,
    OwnerReference,
    build_pairs,
    find_condition,
    is_condition_true,
)
from shared.model.core.selectors import EVERYTHING, LabelSelector, SelectorExpression, build_label_selector
from shared.model.core.taints import EPHEMERAL_TAINTS, Taint, Toleration, find_untolerated_taint, is_ephemeral
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass


def test_map_is_converted_to_pairs_sorted_by_key() -> None:
    assert build_pairs({"b": "1", "a": "2"}) == build_pairs([("a", "2"), ("b", "1")]) == (("a", "2"), ("b", "1"))


def test_missing_labels_and_annotations_are_empty_strings() -> None:
    meta = ObjectMeta(name="x", labels=(("a", "1"),), annotations=(("b", "2"),))
    assert (meta.get_label("a"), meta.get_label("b"), meta.get_annotation("b"), meta.get_annotation("a")) == (
        "1",
        "",
        "2",
        "",
    )


def test_owner_is_matched_by_api_version_and_kind() -> None:
    meta = ObjectMeta(name="x", owners=(OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="u"),))
    assert meta.is_owned_by("apps/v1", "DaemonSet")
    assert not meta.is_owned_by("v1", "DaemonSet")
    assert not meta.is_owned_by("apps/v1", "StatefulSet")


def test_only_condition_status_true_is_true() -> None:
    conditions = (Condition(type="A", status="True"), Condition(type="B", status="Unknown"))
    assert [is_condition_true(conditions, name) for name in "ABC"] == [True, False, False]
    assert find_condition(conditions, "B") == conditions[1]
    assert find_condition(conditions, "C") is None


def test_nodeclaim_state_is_derived_from_its_conditions() -> None:
    claim = NodeClaim(
        meta=ObjectMeta(name="c"),
        node_class=NodeClassRef(name="d"),
        provider_id="aws:///us-east-1a/i-0abc",
        conditions=(Condition(type="Registered", status="True"), Condition(type="Initialized", status="False")),
    )
    assert (claim.instance_id, claim.is_launched()) == ("i-0abc", True)
    assert (claim.is_registered(), claim.is_initialized(), claim.is_deleting()) == (True, False, False)


@pytest.mark.parametrize(
    ("generation", "observed", "status", "is_ready"),
    [(3, 3, "True", True), (3, 2, "True", False), (3, 3, "False", False), (0, 0, "True", True)],
)
def test_node_class_is_ready_only_for_its_current_generation(
    generation: int, observed: int, status: str, *, is_ready: bool
) -> None:
    ready = Condition(type="Ready", status=status, observed_generation=observed)
    node_class = EC2NodeClass(meta=ObjectMeta(name="c", generation=generation), conditions=(ready,))
    assert node_class.is_ready() is is_ready


@pytest.mark.parametrize(
    ("ref", "is_supported"),
    [
        (NodeClassRef(name="a"), True),
        (NodeClassRef(name="a", group="x"), False),
        (NodeClassRef(name="a", kind="y"), False),
    ],
)
def test_only_ec2nodeclass_references_are_supported(ref: NodeClassRef, *, is_supported: bool) -> None:
    assert ref.is_supported() is is_supported


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("failure-domain.beta.kubernetes.io/zone", labels.ZONE),
        ("failure-domain.beta.kubernetes.io/region", labels.REGION),
        ("beta.kubernetes.io/arch", labels.ARCH),
        ("beta.kubernetes.io/os", labels.OS),
        ("beta.kubernetes.io/instance-type", labels.INSTANCE_TYPE),
        ("topology.ebs.csi.aws.com/zone", labels.ZONE),
        ("team", "team"),
    ],
)
def test_deprecated_label_keys_are_normalized(old: str, new: str) -> None:
    assert normalize_label_key(old) == new
    assert normalize_label_key(new) == new


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        ("kubernetes.io/hostname", True),
        ("karpenter.sh/initialized", True),
        ("sub.karpenter.sh/x", True),
        ("karpenter.k8s.aws/instance-colour", True),
        ("karpenter.sh/nodepool", False),
        ("karpenter.k8s.aws/instance-cpu", False),
        ("mykarpenter.sh/x", False),
        ("kubernetes.io/x", False),
        ("node.kubernetes.io/x", False),
        ("karpenter.sh", False),
    ],
)
def test_restricted_labels_are_recognized(key: str, *, restricted: bool) -> None:
    assert is_restricted(key) is restricted


TAINT = Taint(key="a", effect="NoSchedule", value="b")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(key="a", value="b"), True),
        (Toleration(key="a", value="b", effect="NoSchedule"), True),
        (Toleration(key="a", value="c"), False),
        (Toleration(key="a"), False),
        (Toleration(key="c", value="b"), False),
        (Toleration(key="a", value="b", effect="NoExecute"), False),
        (Toleration(key="a", operator="Exists"), True),
        (Toleration(key="c", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
    ],
)
def test_toleration_tolerates_taints_as_in_kubernetes(toleration: Toleration, *, tolerates: bool) -> None:
    assert toleration.can_tolerate(TAINT) is tolerates


def test_first_untolerated_taint_is_returned() -> None:
    other_taint, third = Taint(key="c", effect="NoExecute"), Taint(key="d", effect="NoExecute")
    tolerations = (Toleration(key="a", operator="Exists"),)
    assert find_untolerated_taint((TAINT, other_taint, third), tolerations) == other_taint
    assert find_untolerated_taint((TAINT,), tolerations) is None
    assert find_untolerated_taint((), ()) is None


def test_taints_with_equal_key_and_effect_are_the_same() -> None:
    assert TAINT.is_same(Taint(key="a", effect="NoSchedule", value="z"))
    assert not TAINT.is_same(Taint(key="a", effect="NoExecute", value="b"))
    assert (str(TAINT), str(Taint(key="a", effect="NoExecute"))) == ("a=b:NoSchedule", "a:NoExecute")


@pytest.mark.parametrize(
    ("taint", "goes"),
    [
        *((taint, True) for taint in EPHEMERAL_TAINTS),
        (Taint(key="readiness.k8s.io/network", effect="NoSchedule"), True),
        (Taint(key="node.kubernetes.io/not-ready", effect="PreferNoSchedule"), False),
        (Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"), False),
        (Taint(key="karpenter.sh/disrupted", effect="NoSchedule"), False),
    ],
)
def test_ephemeral_taints_are_recognized(taint: Taint, *, goes: bool) -> None:
    assert is_ephemeral(taint) is goes


@pytest.mark.parametrize(
    ("expression", "matching", "not_matching"),
    [
        (SelectorExpression(key="a", operator="In", values=("1", "2")), [{"a": "1"}, {"a": "2"}], [{"a": "3"}, {}]),
        (SelectorExpression(key="a", operator="NotIn", values=("1",)), [{"a": "2"}, {}], [{"a": "1"}]),
        (SelectorExpression(key="a", operator="Exists"), [{"a": ""}], [{"b": "1"}]),
        (SelectorExpression(key="a", operator="DoesNotExist"), [{}, {"b": "1"}], [{"a": ""}]),
        (SelectorExpression(key="a", operator="Like", values=("1",)), [], [{"a": "1"}, {}]),
    ],
)
def test_selector_expression_matches_labels_by_operator(
    expression: SelectorExpression, matching: list[dict[str, str]], not_matching: list[dict[str, str]]
) -> None:
    assert all(expression.is_match(label_set) for label_set in matching)
    assert not any(expression.is_match(label_set) for label_set in not_matching)


def test_label_selector_requires_all_terms_and_empty_selector_matches_everything() -> None:
    selector = build_label_selector({"b": "2"}, (SelectorExpression(key="a", operator="Exists"),))
    assert selector.is_match({"a": "1", "b": "2"})
    assert not selector.is_match({"a": "1"})
    assert not selector.is_match({"b": "2"})
    assert EVERYTHING.is_match({})
    assert build_label_selector({}) == LabelSelector()


def test_equal_selectors_are_equal_values() -> None:
    assert build_label_selector({"a": "1", "b": "2"}) == build_label_selector(
        {"b": "2"}, (SelectorExpression(key="a", operator="In", values=("1",)),)
    )
