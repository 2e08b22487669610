"""Format actions for display: one line per important action, one for several small or similar ones, warnings once."""

from collections import Counter
from collections.abc import Iterable, Iterator

from shared.model.decisions.action import (
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

ActionLine = tuple[str, str]
"""What is done, and the reason."""
WarningKey = tuple[str, str, str]
"""The kind of the object, the reason and the message of a warning."""


class ActionFormatter:
    """Formats the actions of one run; remembers the warnings that were shown."""

    def __init__(self) -> None:
        """Start without shown warnings."""
        self._shown_warnings: set[tuple[str, str, str, str]] = set()

    def format_actions(self, actions: Iterable[Action]) -> Iterator[ActionLine]:
        """Yield the lines for *actions* of one cycle, in their order; summaries of several actions come last."""
        action_list = tuple(actions)
        names_by_warning = self._group_new_warnings(action_list)
        for action in action_list:
            if isinstance(action, PublishEvent):
                yield from _format_warning(_get_warning_key(action), names_by_warning.pop(_get_warning_key(action), []))
            else:
                yield from _format_action(action)
        yield from _format_summaries(action_list)

    def _group_new_warnings(self, actions: Iterable[Action]) -> dict[WarningKey, list[str]]:
        """Return the warnings that were not shown before, with the names of their objects."""
        names_by_warning: dict[WarningKey, list[str]] = {}
        for action in actions:
            if isinstance(action, PublishEvent) and action.type == "Warning":
                warning_with_name = (*_get_warning_key(action), action.name)
                if warning_with_name not in self._shown_warnings:
                    names_by_warning.setdefault(_get_warning_key(action), []).append(action.name)
                self._shown_warnings.add(warning_with_name)
        return names_by_warning


def _get_warning_key(event: PublishEvent) -> WarningKey:
    return event.kind.lower(), event.reason, event.message


def _format_warning(warning_key: WarningKey, names: list[str]) -> Iterator[ActionLine]:
    kind, reason, message = warning_key
    if names:
        more_text = f" and {len(names) - 1} more" if names[1:] else ""
        yield f"{kind} {names[0]}{more_text}: {reason}", message


def _format_action(action: Action) -> Iterator[ActionLine]:
    match action:
        case CreateNodeClaim():
            yield f"creates nodeclaim {action.claim.name} for {_format_count(len(action.pods), 'pod')}", action.message
        case LaunchInstances():
            yield f"CreateFleet for {_format_count(len(action.group.claims), 'nodeclaim')}", action.message
        case TaintNode():
            yield f"taints {_get_short_name(action.name)}", action.message
        case DeleteObject():
            yield f"deletes {action.kind.lower()} {_get_short_name(action.name)}", action.message
        case TerminateInstances():
            yield (
                f"TerminateInstances {', '.join(instance_id[-6:] for instance_id in action.instance_ids)}",
                action.message,
            )
        case _:
            return


def _format_summaries(actions: tuple[Action, ...]) -> Iterator[ActionLine]:
    unavailable_actions = [action for action in actions if isinstance(action, MarkUnavailable)]
    if unavailable_actions:
        yield (
            f"avoids {_format_count(len(unavailable_actions), 'offering')} for 3 minutes",
            unavailable_actions[0].message,
        )
    evictions_by_node = Counter(action.node for action in actions if isinstance(action, EvictPod | DeletePod))
    for node, count in sorted(evictions_by_node.items()):
        yield f"evicts {_format_count(count, 'pod')} from {_get_short_name(node)}", ""


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _get_short_name(name: str) -> str:
    return name.partition(".")[0]
