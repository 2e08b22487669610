"""What all invocations share: the clock, the time limit, and the report of unexpected errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from functions.events import get_trigger_name
from shared.errors import Fault
from shared.ports.world import World
from shared.report.journal.journal import JournalEntry, record_entry
from shared.report.metrics.emf import emit_metrics

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def get_current_time() -> datetime:
    """Return the current instant, timezone-aware UTC."""
    return datetime.now(UTC)


def with_time_left(world: World, context: "LambdaContext") -> World:
    """Return *world* with the remaining time of the invocation."""
    return msgspec.structs.replace(
        world, time_left=lambda: timedelta(milliseconds=context.get_remaining_time_in_millis())
    )


@contextmanager
def report_unexpected_errors(function: str, event: dict[str, object], world: World) -> Iterator[None]:
    """Record an unexpected exception of the block in the journal and the log, then let the invocation fail.

    A `Fault` is not recorded here: the cycle has already reported it.
    """
    try:
        yield
    except Fault:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        entry = JournalEntry(
            function=function, trigger=get_trigger_name(event), at=world.clock(), cluster="", error=text
        )
        record_entry(entry, world)
        emit_metrics({"CycleFailures": 1.0}, world)
        raise
