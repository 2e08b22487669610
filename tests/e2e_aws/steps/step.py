"""A step: one question that only AWS can answer, with the expectation that Joiner relies on."""

from collections.abc import Callable

import msgspec

from tests.e2e_aws.budget import CostItem
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step; steps run in the order of `steps.registry`."""

    id: str
    question: str
    expectation: str
    run: Callable[[Environment], Observation]
    costs: tuple[CostItem, ...] = ()
    """What the step creates; empty: it only reads."""
    requires: tuple[str, ...] = ()
    """Ids of the steps without which this step cannot run."""
