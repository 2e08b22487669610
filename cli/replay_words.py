"""Actions in words: what each is about and does, and why."""

from collections.abc import Hashable, Sequence
from typing import Final, assert_never

from cli.replay_launches import offers_said
from cli.text import count, some
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteLaunchTemplate,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TagInstance,
    TaintNode,
    TerminateInstances,
)

_LISTED: Final = 3


def key_of(action: Action) -> Hashable:  # noqa: PLR0911 - one case each
    """Answer what two actions have in common that are about the same thing."""
    match action:
        case CreateNodeClaim():
            return "create", action.claim.name
        case FollowUp():
            return "wake", action.function
        case PublishEvent():
            return "event", action.kind, action.namespace, action.name, action.reason
        case MarkUnavailable():
            one = action.offering
            return "mark", one.capacity_type, one.instance_type, one.zone, one.subnet_id
        case PatchMetadata() | PatchStatus() | DeleteObject():
            return type(action).__name__, action.kind, action.name
        case LaunchInstances():
            return "launch", action.group.claims
        case EvictPod() | DeletePod() | NominatePod():
            return type(action).__name__, action.namespace, action.name
        case TerminateInstances():
            return "end", action.why
        case _:
            return type(action).__name__, getattr(action, "name", getattr(action, "instance_id", ""))


def said(action: Action) -> tuple[str, str]:  # noqa: C901, PLR0911, PLR0912 - one case each
    """Answer what *action* is about and does, and why."""
    match action:
        case CreateNodeClaim():
            return f"NodeClaim {action.claim.name} for {_pods(action.pods)}", action.why
        case DeleteObject():
            return f"{action.kind} {action.name} deleted", action.why
        case PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return f"event {action.reason} on {action.kind} {name}", action.message
        case FollowUp():
            return f"{action.function} woken in {action.after.total_seconds():g} s", action.why
        case MarkUnavailable():
            one = action.offering
            return f"{' '.join(filter(None, (one.capacity_type, one.instance_type, one.zone)))} marked", action.why
        case TaintNode():
            return f"Node {action.name} tainted", f"{', '.join(one.key for one in action.taints)}: {action.why}"
        case PatchMetadata():
            keys = some((*(key for key, _ in (*action.labels, *action.annotations)), *action.unlabelled), _LISTED)
            verb = "annotated" if keys else "held" if action.finalizers else "let go"
            return f"{action.kind} {action.name} {verb}", f"{keys}: {action.why}" if keys else action.why
        case PatchStatus():
            return f"status of {action.kind} {action.name}", action.why
        case LaunchInstances():
            return f"fleet request for {some(action.group.claims, _LISTED)}", f"{action.why}; {offers_said(action)}"
        case TerminateInstances():
            return f"{some(action.instance_ids, _LISTED)} ended", action.why
        case EvictPod() | DeletePod():
            verb = "evicted" if isinstance(action, EvictPod) else "deleted"
            return f"Pod {action.namespace}/{action.name} {verb}", action.why
        case NominatePod():
            return f"Pod {action.namespace}/{action.name} told of {action.node}", action.why
        case TagInstance():
            return f"{action.instance_id} tagged", f"{', '.join(key for key, _ in action.tags)}: {action.why}"
        case RegisterNode() | DeleteLaunchTemplate():
            verb = "registered" if isinstance(action, RegisterNode) else "deleted"
            kind = "Node" if isinstance(action, RegisterNode) else "launch template"
            return f"{kind} {action.name} {verb}", action.why
        case _:
            assert_never(action)


def _pods(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{count(len(names), 'pod')} ({shown}{more})" if names else "no pod"
