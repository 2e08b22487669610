"""The condition NodeRegistrationHealthy of an EC2NodeClass."""

from datetime import timedelta

from msgspec.structs import replace

from shared.decide.node_class.registration_condition import with_registration_condition
from shared.model.core.labels import PAUSE_AFTER_FAILURES
from shared.model.core.metadata import Condition, build_pairs
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.failing_launches import with_failed_launches
from tests.support.launch_cases import NOW, make_node_class

OLD = Condition(type="NodeRegistrationHealthy", status="True", reason="NodeRegistrationHealthy", since=NOW)
AT = NOW - timedelta(minutes=30)


def with_limit(text: str) -> EC2NodeClass:
    node_class = make_node_class()
    return replace(node_class, meta=replace(node_class.meta, annotations=build_pairs({PAUSE_AFTER_FAILURES: text})))


def test_condition_is_false_while_launches_are_paused() -> None:
    [condition] = with_registration_condition((), with_failed_launches(make_node_class(), AT), NOW)
    assert (condition.status, condition.reason) == ("False", "LaunchesPaused")
    assert condition.message.startswith("the last 3 nodes of EC2NodeClass default did not register")


def test_condition_is_true_if_launches_are_not_paused() -> None:
    [condition] = with_registration_condition((), with_failed_launches(make_node_class(), AT, 2), NOW)
    assert (condition.status, condition.message) == ("True", "")


def test_condition_names_field_and_fix_of_an_invalid_annotation() -> None:
    [condition] = with_registration_condition((), with_limit("0"), NOW)
    assert (condition.status, condition.reason) == ("False", "InvalidAnnotation")
    assert condition.message == (
        "metadata.annotations[joiner.dev/pause-launches-after-failures]: '0' is not a number from 2 to 100: "
        'write one, like "3"; launches do not pause'
    )


def test_class_without_the_annotation_has_no_condition() -> None:
    ready = Condition(type="Ready", status="True")
    assert with_registration_condition((ready,), make_node_class(), NOW) == (ready,)
    assert with_registration_condition((OLD, ready), make_node_class(), NOW) == (ready,)
