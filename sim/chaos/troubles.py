"""How calls fail: which fault can meet which call, and when."""

from typing import Final

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Throttled, Unreachable
from sim.chaos.events import Trouble
from sim.faults import Call

ERRORS: Final[dict[str, type[Fault]]] = {
    "conflict": Conflict,
    "expired": Expired,
    "throttled": Throttled,
    "unreachable": Unreachable,
    "lost": Unreachable,
    "refused": EvictionRefused,
}
READS: Final = ("list", "watch", "read")


def strike(event: Trouble, call: Call) -> None:
    """Let *call* fail, if it can fail so.

    Raises:
        Fault: it does.
    """
    if concerns(event, call):
        raise ERRORS[event.fault](f"{call.port}.{call.method} {call.detail}: {event.fault}")


def concerns(event: Trouble, call: Call) -> bool:
    """Whether *call* is one that can fail so."""
    if call.port != event.port or event.method not in ("", call.method) or not call.who.startswith(event.function):
        return False
    if event.fault == "lost":
        return call.when == "after" and call.method not in READS
    if event.fault == "expired":
        return call.when == "before" and call.method in ("list", "watch")
    if event.fault == "refused":
        return call.when == "before" and call.detail.endswith("/eviction")
    if event.fault == "conflict" and call.port == "kube":
        # What was created and is sent again by the client is told that it is there already.
        is_creation = call.method == "create" and not call.detail.endswith("/eviction")
        return call.when == ("after" if is_creation else "before") and call.method not in READS
    return call.when == "before"
