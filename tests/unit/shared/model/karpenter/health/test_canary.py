"""The annotations of a canary."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.core.labels import CANARY, CANARY_APPROVED, CANARY_REJECTED, CANARY_STATE, IMAGE_MINIMUM_AGE
from shared.model.core.metadata import ObjectMeta
from shared.model.ec2.account import SelectorTerm
from shared.model.karpenter.health.canary import is_moving, parse_canary_settings, parse_canary_state
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.catalogues import make_node_class


def annotate(*annotations: tuple[str, str]) -> EC2NodeClass:
    return replace(make_node_class(), meta=ObjectMeta(name="default", annotations=annotations))


def test_annotations_have_node_count_soak_time_and_minimum_age() -> None:
    settings = parse_canary_settings(annotate((CANARY, "nodes=2 soak=1h30m"), (IMAGE_MINIMUM_AGE, "72h")))
    assert (settings.node_count, settings.soak_time) == (2, timedelta(minutes=90))
    assert settings.minimum_age == timedelta(hours=72)
    assert parse_canary_settings(annotate((CANARY, "soak=1h"))).node_count == 1


def test_class_without_annotations_has_no_canary() -> None:
    assert not parse_canary_settings(annotate()).is_enabled
    assert not parse_canary_settings(annotate((CANARY_APPROVED, "ami-1"))).is_enabled


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (CANARY, "nodes=2", "has no soak time: write nodes=2 soak=1h"),
        (CANARY, "nodes=0 soak=1h", "nodes=0 is not a number from 1 to 100"),
        (CANARY, "nodes=x soak=1h", "nodes=x is not a number"),
        (CANARY, "2", "'2' is not a canary: write nodes=2 soak=1h"),
        (CANARY, "nodes=1 soak=1h nodes=2", "is not a canary"),
        (CANARY, "nodes=1 soak=soon", "'soon' is not a duration: write one like 1h or 72h"),
        (IMAGE_MINIMUM_AGE, "0s", "'0s' is not longer than 0"),
        (IMAGE_MINIMUM_AGE, "3d", "'3d' is not a duration"),
        (CANARY_REJECTED, "ami-1, x", "'x' is neither an image id nor the hash"),
    ],
)
def test_invalid_annotation_names_the_field_and_the_fix(key: str, text: str, message: str) -> None:
    settings = parse_canary_settings(annotate((key, text)))
    [problem] = settings.problems
    assert problem.startswith(f"metadata.annotations[{key}]: ")
    assert message in problem
    assert settings.is_enabled


def test_image_that_is_approved_and_rejected_is_a_problem() -> None:
    [problem] = parse_canary_settings(annotate((CANARY_APPROVED, "ami-1"), (CANARY_REJECTED, "ami-1"))).problems
    assert "ami-1 is approved as well" in problem


def test_state_that_cannot_be_read_counts_as_empty() -> None:
    assert parse_canary_state(annotate((CANARY_STATE, "{"))) == parse_canary_state(annotate())


@pytest.mark.parametrize(
    ("term", "moves"),
    [
        (SelectorTerm(alias="al2023@latest"), True),
        (SelectorTerm(alias="al2023@v20261111"), False),
        (SelectorTerm(id="ami-1"), False),
        (SelectorTerm(ssm_parameter="/my/image"), True),
        (SelectorTerm(tags=(("team", "a"),)), True),
    ],
)
def test_images_move_unless_the_term_is_an_id_or_a_version(term: SelectorTerm, *, moves: bool) -> None:
    assert is_moving(replace(make_node_class(), image_selectors=(term,))) is moves
