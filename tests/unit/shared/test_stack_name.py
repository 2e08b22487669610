"""Stack names: allowed by CloudFormation, and different for different clusters."""

import re

from hypothesis import given
from hypothesis import strategies as st

from infra.settings.validation import CLUSTER_NAME_PATTERN
from shared.stack_name import format_stack_name

CLUSTER_NAMES = st.from_regex(CLUSTER_NAME_PATTERN, fullmatch=True)
STACK_NAME_PATTERN = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")
"""Source: CloudFormation API, CreateStack, StackName."""


@given(cluster=CLUSTER_NAMES)
def test_cloudformation_accepts_the_stack_name_of_every_cluster(cluster: str) -> None:
    assert STACK_NAME_PATTERN.fullmatch(format_stack_name(cluster))


@given(cluster=CLUSTER_NAMES, other_cluster=CLUSTER_NAMES)
def test_two_clusters_never_have_the_same_stack_name(cluster: str, other_cluster: str) -> None:
    assert (format_stack_name(cluster) == format_stack_name(other_cluster)) == (cluster == other_cluster)


def test_names_that_differ_only_in_an_underscore_have_different_stacks() -> None:
    names = ("a-b-c", "a_b-c", "a-b_c", "a_b_c")
    assert len({format_stack_name(name) for name in names}) == len(names)


def test_a_name_without_an_underscore_is_kept() -> None:
    assert format_stack_name("prod-eu-1") == "joiner-prod-eu-1"
