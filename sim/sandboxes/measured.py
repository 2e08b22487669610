"""What Lambda measures of a call, by function, by what was called, and by the version where an alias leads to two."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from sim.account.contract import Function
from sim.sandboxes.sandboxes import Call
from sim.watching.metrics import Datum, Metric, embedded_in

_MILLISECOND: Final = timedelta(milliseconds=1)


def measured(function: Function, call: Call) -> Iterator[Datum]:
    """Iterate over what *call* of *function* adds: Lambda's own, and what it said itself in its log."""
    values = {
        "Duration": call.how.duration / _MILLISECOND,
        "Errors": float(call.how.status != "success"),
        "Invocations": 1.0,
    }
    yield from _data(function, call.began, values)
    yield from embedded_in(call.lines)


def throttled(function: Function, at: datetime) -> Iterator[Datum]:
    """Iterate over what a call of *function* adds that was refused at the instant *at*: it is no invocation."""
    yield from _data(function, at, {"Throttles": 1.0})


def _data(function: Function, at: datetime, values: dict[str, float]) -> Iterator[Datum]:
    called = ("Resource", function.arn.partition(":function:")[2])
    own, version = ("FunctionName", function.name), ("ExecutedVersion", function.version)
    sets = ((own,), (own, called), *(((version, own, called),) if function.is_one_of_two else ()))
    for name, value in values.items():
        for dimensions in sets:
            yield Datum(metric=Metric(namespace="AWS/Lambda", name=name, dimensions=dimensions), at=at, value=value)
