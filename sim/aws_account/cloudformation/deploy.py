"""CloudFormation stack operations: create, update, roll back and delete.

Resources are created sequentially, each after its dependencies, and deleted in the opposite order. Only resources that
CodeDeploy shifts, which takes minutes, are updated in parallel. The leftovers of an update (resources that the template
does not have any more, and replaced resources) are deleted last, when nothing can fail any more. A failure is rolled
back: updated resources are restored, latest first, and created resources are deleted.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from msgspec.structs import replace

from sim.aws_account.cloudformation.removal import delete_resources
from sim.aws_account.cloudformation.stack import Stack, StackResource
from sim.aws_account.cloudformation.stack_context import RESOURCE_ERRORS, StackContext, describe_error
from sim.aws_account.cloudformation.template_parser import InvalidTemplate, Template, build_sorter, find_dependencies
from sim.aws_account.cloudformation.template_resolver import TemplateResolver
from sim.aws_account.function_runtime import AccountServices
from sim.aws_account.resource_types.resource_provider import PhysicalResource, Properties, ResourceProvider

_MAX_PARALLEL_UPDATES: Final = 32
"""The resources that are updated in parallel; others wait."""


class Unfinished(Exception):
    """A resource could not be created or updated; the message becomes the status reason of the stack."""


class StackOperation:
    """One operation on a stack."""

    def __init__(
        self, stack: Stack, services: AccountServices, find_provider: Callable[[str], ResourceProvider]
    ) -> None:
        """Operate on *stack*; no other operation may change it at the same time."""
        self._stack, self._context = stack, StackContext(stack, services, find_provider)
        self._undo_steps: list[list[Callable[[], None]]] = []
        """The undo steps of each update, in order; the last step of an update undoes it."""
        self._created_resources: list[StackResource] = []
        self._replaced_resources: list[StackResource] = []

    @property
    def physical_resources(self) -> Mapping[str, PhysicalResource]:
        """The existing resources, by logical id; grows during the operation."""
        return self._context.physical_resources

    def create_stack(self, resolver: TemplateResolver, *, disable_rollback: bool = False) -> None:
        """Create the stack; after a failure, delete its resources unless *disable_rollback*."""
        self._stack.set_status("CREATE_IN_PROGRESS", "User Initiated")
        try:
            self._deploy_all(resolver)
            self._stack.outputs = resolver.resolve_outputs()
        except (Unfinished, InvalidTemplate) as error:
            if disable_rollback:
                self._stack.set_status("CREATE_FAILED", str(error))
                return
            self._stack.set_status("ROLLBACK_IN_PROGRESS", f"{error} Rollback requested by user.")
            failure = delete_resources(self._context, [*self._stack.resources.values()], is_rollback=True)
            self._stack.set_status("ROLLBACK_FAILED" if failure else "ROLLBACK_COMPLETE", failure)
        else:
            self._stack.set_status("CREATE_COMPLETE")

    def update_stack(self, resolver: TemplateResolver, *, disable_rollback: bool = False) -> bool:
        """Update the stack, or restore it after a failure; return whether it was updated."""
        self._stack.updated_at = self._stack.get_time()
        self._stack.set_status("UPDATE_IN_PROGRESS", "User Initiated")
        old_resources, outputs = dict(self._stack.resources), self._stack.outputs
        try:
            self._deploy_all(resolver)
            outputs = resolver.resolve_outputs()
        except (Unfinished, InvalidTemplate) as error:
            if disable_rollback:
                self._stack.set_status("UPDATE_FAILED", str(error))
                return False
            self._roll_back(old_resources, str(error))
            return False
        self._stack.outputs = outputs
        self._stack.set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        new_names = resolver.select_resources().keys()
        removed_resources = [resource for name, resource in old_resources.items() if name not in new_names]
        # Even if retained, these resources do not belong to the stack any more.
        delete_resources(
            self._context,
            [*self._replaced_resources, *removed_resources],
            replaced_ids={id(resource) for resource in self._replaced_resources},
        )
        for resource in removed_resources:
            self._stack.resources.pop(resource.logical_id, None)
        self._stack.set_status("UPDATE_COMPLETE")
        return True

    def delete_stack(self) -> None:
        """Delete the stack; resources that cannot be deleted stay, with their dependencies."""
        self._stack.set_status("DELETE_IN_PROGRESS", "User Initiated")
        failure = delete_resources(self._context, [*self._stack.resources.values()])
        self._stack.set_status("DELETE_FAILED" if failure else "DELETE_COMPLETE", failure)

    def _deploy_all(self, resolver: TemplateResolver) -> None:
        """Create or update every resource of the template.

        Raises:
            Unfinished: a resource failed; nothing more is started, and everything that was started has ended.
        """
        definitions = resolver.select_resources()
        sorter = build_sorter({name: find_dependencies(definition) for name, definition in definitions.items()})
        name_by_future: dict[Future[None], str] = {}
        with ThreadPoolExecutor(_MAX_PARALLEL_UPDATES, thread_name_prefix=f"stack {self._stack.name}") as executor:
            while sorter.is_active():
                ready_names = sorted(sorter.get_ready())
                slow_names = [name for name in ready_names if self._is_slow_update(name, definitions[name])]
                name_by_future |= {
                    executor.submit(self._deploy_resource, resolver, name, definitions[name]): name
                    for name in slow_names
                }
                for name in sorted(set(ready_names) - set(slow_names)):
                    self._deploy_resource(resolver, name, definitions[name])
                    sorter.done(name)
                if ready_names == slow_names:
                    for future in wait(name_by_future, return_when=FIRST_COMPLETED).done:
                        future.result()
                        sorter.done(name_by_future.pop(future))

    def _is_slow_update(self, name: str, definition: Template) -> bool:
        return name in self._stack.resources and "UpdatePolicy" in definition

    def _deploy_resource(self, resolver: TemplateResolver, name: str, definition: Template) -> None:
        """Create or update the resource *name* as in *definition*.

        Raises:
            Unfinished: it failed.
        """
        old_resource = self._stack.resources.get(name)
        verb = "CREATE" if old_resource is None else "UPDATE"
        try:
            new_resource = self._build_resource(resolver, name, definition)
            update_policy = resolver.resolve(definition.get("UpdatePolicy", {}))
            if old_resource is None:
                self._create_resource(new_resource, update_policy)
            else:
                self._update_or_replace(old_resource, new_resource, update_policy)
        except RESOURCE_ERRORS as error:
            current_resource = self._stack.resources.get(name)
            physical_id = current_resource.physical_resource.physical_id if current_resource is not None else ""
            self._stack.record_event(name, physical_id, definition["Type"], f"{verb}_FAILED", describe_error(error))
            raise Unfinished(f"The following resource(s) failed to {verb.lower()}: [{name}].") from error

    def _build_resource(self, resolver: TemplateResolver, name: str, definition: Template) -> StackResource:
        return StackResource(
            logical_id=name,
            type=definition["Type"],
            physical_resource=PhysicalResource(physical_id=""),
            properties=resolver.resolve(definition.get("Properties", {})),
            dependencies=tuple(sorted(find_dependencies(definition))),
            deletion_policy=definition.get("DeletionPolicy", "Delete"),
            update_replace_policy=definition.get("UpdateReplacePolicy", "Delete"),
            updated_at=self._stack.get_time(),
        )

    def _update_or_replace(
        self, old_resource: StackResource, new_resource: StackResource, update_policy: Properties
    ) -> None:
        is_same_type, ordinal = old_resource.type == new_resource.type, old_resource.ordinal
        provider = self._context.find_provider(new_resource.type)
        if is_same_type and old_resource.properties == new_resource.properties:
            updated_at, physical_resource = old_resource.updated_at, old_resource.physical_resource
            self._context.put_resource(
                replace(new_resource, physical_resource=physical_resource, ordinal=ordinal, updated_at=updated_at)
            )
        elif is_same_type and not provider.needs_replacement(old_resource.properties, new_resource.properties):
            self._update_resource(old_resource, replace(new_resource, ordinal=ordinal), update_policy)
        else:
            reason = "Requested update requires the creation of a new physical resource; hence creating one."
            self._context.record_event(old_resource, "UPDATE_IN_PROGRESS", reason)
            new_resource = replace(new_resource, ordinal=ordinal + 1, status="UPDATE_COMPLETE")
            replacement = self._create_physical_resource(new_resource, update_policy)
            self._replaced_resources.append(old_resource)
            self._undo_steps.append([lambda: self._context.put_resource(old_resource)])
            self._context.record_event(replacement, "UPDATE_COMPLETE")

    def _create_resource(self, new_resource: StackResource, update_policy: Properties) -> None:
        self._context.record_event(new_resource, "CREATE_IN_PROGRESS")
        created_resource = self._create_physical_resource(new_resource, update_policy)
        self._context.record_event(created_resource, "CREATE_COMPLETE")

    def _create_physical_resource(self, new_resource: StackResource, update_policy: Properties) -> StackResource:
        request = self._context.build_request(new_resource, update_policy=update_policy)
        try:
            physical_resource = self._context.find_provider(new_resource.type).create(request)
        except RESOURCE_ERRORS:
            for partial_resource in request.partial_resources[-1:]:
                resource = replace(new_resource, physical_resource=partial_resource)
                self._created_resources.append(resource)
                if new_resource.logical_id not in self._stack.resources:
                    self._context.put_resource(replace(resource, status="CREATE_FAILED"))
            raise
        created_resource = replace(new_resource, physical_resource=physical_resource)
        self._context.put_resource(created_resource)
        self._created_resources.append(created_resource)
        return created_resource

    def _update_resource(
        self, old_resource: StackResource, new_resource: StackResource, update_policy: Properties
    ) -> None:
        new_resource = replace(new_resource, physical_resource=old_resource.physical_resource, status="UPDATE_COMPLETE")
        self._context.record_event(old_resource, "UPDATE_IN_PROGRESS")
        # A partial update is undone like a complete one.
        undo_steps = [lambda: self._restore_resource(old_resource, new_resource)]
        self._undo_steps.append(undo_steps)
        request = self._context.build_request(
            new_resource, old_properties=old_resource.properties, update_policy=update_policy
        )
        physical_resource = self._context.find_provider(new_resource.type).update(request)
        updated_resource = replace(new_resource, physical_resource=physical_resource)
        self._context.put_resource(updated_resource)
        if physical_resource.physical_id != old_resource.physical_resource.physical_id:
            self._created_resources.append(updated_resource)
            self._replaced_resources.append(old_resource)
            undo_steps.append(lambda: self._restore_resource(old_resource, updated_resource))
        self._context.record_event(updated_resource, "UPDATE_COMPLETE")

    def _restore_resource(self, old_resource: StackResource, current_resource: StackResource) -> None:
        """Update the resource, or its replacement, to the old properties.

        The physical id that the provider returns is that of the resource to keep.
        """
        self._context.record_event(current_resource, "UPDATE_IN_PROGRESS")
        request = self._context.build_request(
            old_resource, resource=current_resource.physical_resource, old_properties=current_resource.properties
        )
        physical_resource = self._context.find_provider(old_resource.type).update(request)
        self._created_resources[:] = [
            resource
            for resource in self._created_resources
            if resource is not current_resource
            or physical_resource.physical_id != resource.physical_resource.physical_id
        ]
        self._context.put_resource(replace(old_resource, physical_resource=physical_resource))
        self._context.record_event(old_resource, "UPDATE_COMPLETE")

    def _roll_back(self, old_resources: Mapping[str, StackResource], reason: str) -> None:
        self._stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        try:
            while self._undo_steps:
                self._undo_steps.pop()[-1]()
        except RESOURCE_ERRORS as error:
            self._stack.set_status("UPDATE_ROLLBACK_FAILED", describe_error(error))
            return
        self._stack.set_status("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        kept_ids = {
            resource.physical_resource.physical_id
            for name, resource in self._stack.resources.items()
            if name in old_resources
        }
        abandoned_resources = [
            resource for resource in self._created_resources if resource.physical_resource.physical_id not in kept_ids
        ]
        delete_resources(self._context, abandoned_resources, is_rollback=True)
        for name in self._stack.resources.keys() - old_resources.keys():
            del self._stack.resources[name]
        self._stack.set_status("UPDATE_ROLLBACK_COMPLETE")
