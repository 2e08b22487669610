"""Text for actions: the subject and effect of each, and its reason."""

from collections.abc import Hashable, Sequence
from typing import Final, assert_never

from cli.replay.fleet_request_text import describe_offerings
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions import action as actions

_MAX_LISTED_NAMES: Final = 3


def build_action_key(action: actions.Action) -> Hashable:  # noqa: PLR0911 - one case each
    """Return a key that is equal for two actions about the same subject."""
    match action:
        case actions.CreateNodeClaim():
            return "create", action.claim.name
        case actions.FollowUp():
            return "wake", action.function
        case actions.PublishEvent():
            return "event", action.kind, action.namespace, action.name, action.reason
        case actions.MarkUnavailable():
            offering = action.offering
            return "mark", offering.capacity_type, offering.instance_type, offering.zone, offering.subnet_id
        case actions.PatchMetadata() | actions.PatchStatus() | actions.DeleteObject():
            return type(action).__name__, action.kind, action.name
        case actions.LaunchInstances():
            return "launch", action.group.claims
        case actions.EvictPod() | actions.DeletePod() | actions.NominatePod():
            return type(action).__name__, action.namespace, action.name
        case actions.TerminateInstances():
            return "end", action.message
        case _:
            return type(action).__name__, getattr(action, "name", getattr(action, "instance_id", ""))


def describe_action(action: actions.Action) -> tuple[str, str]:  # noqa: C901, PLR0911, PLR0912 - one case each
    """Return the subject and effect of *action*, and its reason."""
    match action:
        case actions.CreateNodeClaim():
            return f"NodeClaim {action.claim.name} for {_describe_pods(action.pods)}", action.message
        case actions.DeleteObject():
            return f"{action.kind} {action.name} deleted", action.message
        case actions.PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return f"event {action.reason} on {action.kind} {name}", action.message
        case actions.FollowUp():
            return f"{action.function} woken in {action.after.total_seconds():g} s", action.message
        case actions.MarkUnavailable():
            offering = action.offering
            return (
                f"{' '.join(filter(None, (offering.capacity_type, offering.instance_type, offering.zone)))} marked",
                action.message,
            )
        case actions.TaintNode():
            return f"Node {action.name} tainted", f"{', '.join(taint.key for taint in action.taints)}: {action.message}"
        case actions.PatchMetadata():
            keys = join_names(
                (*(key for key, _ in (*action.labels, *action.annotations)), *action.removed_labels), _MAX_LISTED_NAMES
            )
            verb = "annotated" if keys else "held" if action.finalizers else "let go"
            return f"{action.kind} {action.name} {verb}", f"{keys}: {action.message}" if keys else action.message
        case actions.PatchStatus():
            return f"status of {action.kind} {action.name}", action.message
        case actions.LaunchInstances():
            return (
                f"fleet request for {join_names(action.group.claims, _MAX_LISTED_NAMES)}",
                f"{action.message}; {describe_offerings(action)}",
            )
        case actions.TerminateInstances():
            return f"{join_names(action.instance_ids, _MAX_LISTED_NAMES)} ended", action.message
        case actions.EvictPod() | actions.DeletePod():
            verb = "evicted" if isinstance(action, actions.EvictPod) else "deleted"
            return f"Pod {action.namespace}/{action.name} {verb}", action.message
        case actions.NominatePod():
            return f"Pod {action.namespace}/{action.name} told of {action.node}", action.message
        case actions.TagInstance():
            return f"{action.instance_id} tagged", f"{', '.join(key for key, _ in action.tags)}: {action.message}"
        case actions.RegisterNode() | actions.DeleteLaunchTemplate():
            verb = "registered" if isinstance(action, actions.RegisterNode) else "deleted"
            kind = "Node" if isinstance(action, actions.RegisterNode) else "launch template"
            return f"{kind} {action.name} {verb}", action.message
        case _:
            assert_never(action)


def _describe_pods(names: Sequence[str]) -> str:
    listed_names = ", ".join(names[:_MAX_LISTED_NAMES])
    remainder_text = f" and {len(names) - _MAX_LISTED_NAMES} more" if len(names) > _MAX_LISTED_NAMES else ""
    return f"{format_count(len(names), 'pod')} ({listed_names}{remainder_text})" if names else "no pod"
