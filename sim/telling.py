"""What people want to hear of actions: one line for what matters, one for many small or alike, warnings once."""

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
Said = tuple[str, str, str]
"""Of which kind, the reason, the message."""


class Teller:
    """Tells one play; it remembers which warnings were told."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._warned: set[tuple[str, str, str, str]] = set()

    def told(self, actions: Iterable[Action]) -> Iterator[Line]:
        """Answer the lines about *actions* of one cycle, in their order; what was joined comes last."""
        some = tuple(actions)
        alike = self._fresh(some)
        for action in some:
            if isinstance(action, PublishEvent):
                yield from _warning(_said(action), alike.pop(_said(action), []))
            else:
                yield from _alone(action)
        yield from _together(some)

    def _fresh(self, actions: Iterable[Action]) -> dict[Said, list[str]]:
        """Answer the warnings that were not told before, and the names of whom each is about."""
        fresh: dict[Said, list[str]] = {}
        for one in actions:
            if isinstance(one, PublishEvent) and one.type == "Warning":
                told = (*_said(one), one.name)
                if told not in self._warned:
                    fresh.setdefault(_said(one), []).append(one.name)
                self._warned.add(told)
        return fresh


def _said(event: PublishEvent) -> Said:
    return event.kind.lower(), event.reason, event.message


def _warning(said: Said, names: list[str]) -> Iterator[Line]:
    kind, reason, message = said
    if names:
        more = f" and {len(names) - 1} more" if names[1:] else ""
        yield f"{kind} {names[0]}{more}: {reason}", message


def _alone(action: Action) -> Iterator[Line]:
    match action:
        case CreateNodeClaim():
            yield f"creates nodeclaim {action.claim.name} for {_many(len(action.pods), 'pod')}", action.why
        case LaunchInstances():
            yield f"CreateFleet for {_many(len(action.group.claims), 'nodeclaim')}", action.why
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
        yield f"avoids {_many(len(avoided), 'offering')} for 3 minutes", avoided[0].why
    evicted = Counter(action.node for action in actions if isinstance(action, EvictPod | DeletePod))
    for node, count in sorted(evicted.items()):
        yield f"evicts {_many(count, 'pod')} from {_short(node)}", ""


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _short(name: str) -> str:
    return name.partition(".")[0]
