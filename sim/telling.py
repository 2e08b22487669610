"""What people want to hear of actions: one line each for what matters, many small ones together, warnings once."""

from collections import Counter
from collections.abc import Iterable, Iterator

from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    LaunchInstances,
    MarkUnavailable,
    PublishEvent,
    TaintNode,
    TerminateInstances,
)

Line = tuple[str, str]
"""What is done, and why."""


class Teller:
    """Tells one play; it remembers which warnings were told."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._warned: set[Line] = set()

    def told(self, actions: Iterable[Action]) -> Iterator[Line]:
        """Answer the lines about *actions* of one cycle, in their order; what was joined comes last."""
        some = tuple(actions)
        for action in some:
            if isinstance(action, PublishEvent):
                yield from self._warning(action)
            else:
                yield from _alone(action)
        yield from _together(some)

    def _warning(self, event: PublishEvent) -> Iterator[Line]:
        line = (f"{event.kind.lower()} {event.name}: {event.reason}", event.message)
        if event.type == "Warning" and line not in self._warned:
            self._warned.add(line)
            yield line


def _alone(action: Action) -> Iterator[Line]:
    match action:
        case CreateNodeClaim():
            yield f"creates nodeclaim {action.claim.name} for {len(action.pods)} pods", action.why
        case LaunchInstances():
            yield f"CreateFleet for {len(action.group.claims)} nodeclaims", action.why
        case TaintNode():
            yield f"taints {_short(action.name)}", action.why
        case DeleteObject():
            yield f"deletes {action.kind.lower()} {_short(action.name)}", action.why
        case TerminateInstances():
            yield f"TerminateInstances {', '.join(one[-6:] for one in action.instance_ids)}", action.why
        case _:
            return


def _together(actions: tuple[Action, ...]) -> Iterator[Line]:
    avoided = [action for action in actions if isinstance(action, MarkUnavailable)]
    if avoided:
        yield f"avoids {len(avoided)} offerings for 3 minutes", avoided[0].why
    evicted = Counter(action.node for action in actions if isinstance(action, EvictPod | DeletePod))
    for node, count in sorted(evicted.items()):
        yield f"evicts {count} pods from {_short(node)}", ""


def _short(name: str) -> str:
    return name.partition(".")[0]
