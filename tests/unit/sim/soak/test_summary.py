"""Tests of the result of a simulated week: what makes it a failure."""

from typing import Any

import msgspec
import pytest

from sim.soak.summary import SoakSummary


def make_summary(**changes: int) -> SoakSummary:
    fields: dict[str, Any] = dict.fromkeys(SoakSummary.__struct_fields__, 0)
    return msgspec.convert({**fields, "evictions_per_pod_day": {}, **changes}, SoakSummary)


@pytest.mark.parametrize("field", ["violations", "reverted_nodes", "failed_calls"])
def test_soak_fails_after_a_violation_reverted_node_or_failed_invocation(field: str) -> None:
    assert make_summary(**{field: 1}).has_failed


def test_soak_passes_with_short_lived_nodes_and_interruptions() -> None:
    assert not make_summary(short_lived_nodes=3, short_lived_without_changes=2, interruptions=4, launches=9).has_failed
