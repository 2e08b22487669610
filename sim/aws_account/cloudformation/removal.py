"""Deletes resources of a stack: dependent resources first; a failed resource keeps its dependencies."""

from collections.abc import Iterable
from typing import Final

from botocore.exceptions import ClientError

from sim.aws_account.cloudformation.stack import StackResource
from sim.aws_account.cloudformation.stack_context import RESOURCE_ERRORS, StackContext, describe_error
from sim.aws_account.cloudformation.template_parser import sort_by_dependency

_NOT_FOUND_CODES: Final = ("NoSuch", "NotFound", "NonExistent", "DoesNotExist", "Unknown")
_RETAINING_POLICIES: Final = frozenset({"Retain", "Snapshot"})


def delete_resources(
    context: StackContext,
    resources: Iterable[StackResource],
    *,
    is_rollback: bool = False,
    replaced_ids: Iterable[int] = (),
) -> str:
    """Delete *resources* in reverse dependency order; return an error message, empty if nothing failed.

    *replaced_ids* has the `id` of each resource that was replaced: its update replace policy decides whether it is
    retained.
    """
    all_resources, replaced = list(resources), frozenset(replaced_ids)
    resources_by_name: dict[str, list[StackResource]] = {}
    for resource in all_resources:
        resources_by_name.setdefault(resource.logical_id, []).append(resource)
    order = sort_by_dependency(
        {
            name: {dependency for resource in group for dependency in resource.dependencies}
            for name, group in resources_by_name.items()
        }
    )
    blocked_names: set[str] = set()
    failed_names = []
    for resource in (resource for name in reversed(order) for resource in resources_by_name[name]):
        policy = resource.update_replace_policy if id(resource) in replaced else resource.deletion_policy
        if resource.logical_id in blocked_names:
            blocked_names.update(resource.dependencies)
        elif not _delete_or_retain(context, resource, policy, is_rollback=is_rollback):
            failed_names.append(resource.logical_id)
            blocked_names.update(resource.dependencies)
    return f"The following resource(s) failed to delete: [{', '.join(failed_names)}]." if failed_names else ""


def _delete_or_retain(context: StackContext, resource: StackResource, policy: str, *, is_rollback: bool) -> bool:
    """Delete *resource*, or retain it if *policy* says so; return whether the stack does not have it any more."""
    if policy in _RETAINING_POLICIES or (policy == "RetainExceptOnCreate" and not is_rollback):
        context.record_event(resource, "DELETE_SKIPPED")
    else:
        context.record_event(resource, "DELETE_IN_PROGRESS")
        try:
            _delete_resource(context, resource)
        except RESOURCE_ERRORS as error:
            context.record_event(resource, "DELETE_FAILED", describe_error(error))
            context.set_resource_status(resource, "DELETE_FAILED", describe_error(error))
            return False
        context.record_event(resource, "DELETE_COMPLETE")
    context.remove_resource(resource)
    return True


def _delete_resource(context: StackContext, resource: StackResource) -> None:
    try:
        context.find_provider(resource.type).delete(context.build_request(resource))
    except ClientError as error:
        if not any(word in error.response["Error"]["Code"] for word in _NOT_FOUND_CODES):
            raise
