"""Injected call failures: which failure applies to which call, before or after it takes effect."""

from typing import Final

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Throttled, Unreachable
from sim.fault_simulation.events.script_events import CallFailure
from sim.fault_tap import PortCall

ERROR_BY_FAILURE: Final[dict[str, type[Fault]]] = {
    "conflict": Conflict,
    "expired": Expired,
    "throttled": Throttled,
    "unreachable": Unreachable,
    "lost": Unreachable,
    "refused": EvictionRefused,
}
READ_METHODS: Final = ("list", "watch", "read")


def fail_call(event: CallFailure, call: PortCall) -> None:
    """Raise the failure of *event* if it applies to *call*.

    Raises:
        Fault: the call fails.
    """
    if is_affected(event, call):
        raise ERROR_BY_FAILURE[event.fault](f"{call.port}.{call.method} {call.detail}: {event.fault}")


def is_affected(event: CallFailure, call: PortCall) -> bool:
    """Return whether the failure of *event* applies to *call*."""
    if (
        call.port != event.port
        or event.method not in ("", call.method)
        or not call.world_name.startswith(event.function)
    ):
        return False
    if event.fault == "lost":
        return call.phase == "after" and call.method not in READ_METHODS
    if event.fault == "expired":
        return call.phase == "before" and call.method in ("list", "watch")
    if event.fault == "refused":
        return call.phase == "before" and call.detail.endswith("/eviction")
    if event.fault == "conflict" and call.port == "kube":
        # A retried create by the client fails because the object exists already.
        is_creation = call.method == "create" and not call.detail.endswith("/eviction")
        return call.phase == ("after" if is_creation else "before") and call.method not in READ_METHODS
    return call.phase == "before"
