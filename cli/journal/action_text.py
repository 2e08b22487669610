"""Text for actions: the subject and effect of each, and its reason."""

from collections.abc import Hashable
from typing import Final, assert_never

from cli.journal.fleet_request_text import describe_offerings
from shared.model.core.formatting import format_count, format_elapsed, join_names
from shared.model.decisions import action as actions

MARKED_SUFFIX: Final = " marked unavailable"
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
        case actions.RecordOfferingEvents():
            return "history", action.message
        case actions.PatchMetadata() | actions.PatchStatus() | actions.DeleteObject():
            return type(action).__name__, action.kind, action.name
        case actions.LaunchInstances():
            return "launch", action.group.claims
        case (
            actions.EvictPod()
            | actions.DeletePod()
            | actions.NominatePod()
            | actions.SetDeletionCost()
            | actions.RestartDeployment()
            | actions.ScaleWorkload()
        ):
            return type(action).__name__, action.namespace, action.name
        case actions.TerminateInstances():
            return "end", action.message
        case _:
            return type(action).__name__, getattr(action, "name", getattr(action, "instance_id", ""))


def describe_action(action: actions.Action) -> tuple[str, str]:  # noqa: C901, PLR0911, PLR0912 - one case each
    """Return the subject and effect of *action*, and its reason."""
    match action:
        case actions.CreateNodeClaim():
            names = f" ({join_names(action.pods, _MAX_LISTED_NAMES)})" if action.pods else ""
            pods_text = f"{format_count(len(action.pods), 'pod')}{names}"
            return f"NodeClaim {action.claim.name} created for {pods_text}", action.message
        case actions.DeleteObject():
            return f"{action.kind} {action.name} deleted", action.message
        case actions.PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return f"event {action.reason} on {action.kind} {name}", action.message
        case actions.FollowUp():
            return f"{action.function} invoked in {format_elapsed(action.after)}", action.message
        case actions.MarkUnavailable():
            offering = action.offering
            parts = (offering.capacity_type, offering.instance_type, offering.zone)
            return f"{' '.join(filter(None, parts))}{MARKED_SUFFIX}", action.message
        case actions.RecordOfferingEvents():
            offering_names = sorted({f"{event.instance_type} {event.zone}" for event in action.events})
            events_text = format_count(len(action.events), "event")
            return (
                f"{events_text} added to the history of offerings",
                f"{join_names(offering_names, _MAX_LISTED_NAMES)}: {action.message}",
            )
        case actions.TaintNode():
            keys = ", ".join(taint.key for taint in action.taints)
            return f"Node {action.name} {f'tainted: {keys}' if keys else 'taints removed'}", action.message
        case actions.PatchMetadata():
            label_keys = (*(key for key, _ in (*action.labels, *action.annotations)), *action.removed_labels)
            keys = join_names(label_keys, _MAX_LISTED_NAMES)
            if not keys:
                return (
                    f"{action.kind} {action.name} finalizers {'set' if action.finalizers else 'removed'}",
                    action.message,
                )
            return f"{action.kind} {action.name} metadata updated", f"{keys}: {action.message}"
        case actions.PatchStatus():
            return f"{action.kind} {action.name} status updated", action.message
        case actions.LaunchInstances():
            claims = join_names(action.group.claims, _MAX_LISTED_NAMES)
            return f"CreateFleet for {claims}", f"{action.message}; {describe_offerings(action)}"
        case actions.TerminateInstances():
            return f"{join_names(action.instance_ids, _MAX_LISTED_NAMES)} terminated", action.message
        case actions.EvictPod():
            return f"Pod {action.namespace}/{action.name} evicted from {action.node}", action.message
        case actions.DeletePod():
            reason = f"{action.message}; grace period {action.grace_seconds}s"
            return f"Pod {action.namespace}/{action.name} deleted on {action.node}", reason
        case actions.RestartDeployment():
            return f"Deployment {action.namespace}/{action.name} restarted", action.message
        case actions.ScaleWorkload():
            effect = "kept at its replicas" if action.replicas is None else f"scaled to {action.replicas}"
            return f"{action.kind} {action.namespace}/{action.name} {effect}", action.message
        case actions.NominatePod():
            return f"Pod {action.namespace}/{action.name} nominated for {action.node}", action.message
        case actions.SetDeletionCost():
            effect = "removed" if action.cost is None else f"set to {action.cost}"
            return f"deletion cost of Pod {action.namespace}/{action.name} on {action.node} {effect}", action.message
        case actions.TagInstance():
            return f"{action.instance_id} tagged", f"{', '.join(key for key, _ in action.tags)}: {action.message}"
        case actions.RegisterNode():
            return f"Node {action.name} registered", action.message
        case actions.DeleteLaunchTemplate():
            return f"launch template {action.name} deleted", action.message
        case _:
            assert_never(action)
