"""The outcome of an action."""

from typing import Final, Literal

import msgspec

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import Action

Result = Literal["done", "skipped", "failed"]
OUT_OF_TIME_MESSAGE: Final = "not done: the time limit was reached"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one action."""

    action: Action
    result: Result
    message: str = ""
    group: LaunchGroup | None = None
    """Of a launch: the launch group with EC2's result."""
