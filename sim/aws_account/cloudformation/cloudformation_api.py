"""The CloudFormation API, as far as `cdk` and the waiters of boto3 use it."""

from collections.abc import Callable
from hashlib import sha256
from threading import RLock, Thread
from typing import Any, Final

from sim.aws_account.cloudformation.change_sets import compute_changes
from sim.aws_account.cloudformation.deploy import StackOperation
from sim.aws_account.cloudformation.descriptions import StackStore
from sim.aws_account.cloudformation.stack import COMPLETE_STATUSES, ChangeSet, Stack, StackSpec
from sim.aws_account.cloudformation.template_parser import InvalidTemplate, parse_template
from sim.aws_account.cloudformation.template_resolver import TemplateResolver
from sim.aws_account.function_runtime import AccountServices
from sim.aws_account.resource_types.resource_provider import Failed, ResourceProvider
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse

NO_CHANGES_REASON: Final = (
    "The submitted information didn't contain changes. Submit different information to create a change set."
)


class CloudFormationApi:
    """The stacks of the account and the API calls for them; stack operations run in their own threads."""

    def __init__(self, services: AccountServices, find_provider: Callable[[str], ResourceProvider]) -> None:
        """Start without stacks."""
        self._services, self._find_provider, self._clock = services, find_provider, services.clock
        self._stack_store = StackStore(services)
        self._lock = RLock()
        self._threads: list[Thread] = []
        self.handlers: ApiHandlers = {
            "CreateChangeSet": self._create_change_set,
            "CreateStack": self._create_stack,
            "DeleteChangeSet": self._delete_change_set,
            "DeleteStack": self._delete_stack,
            "ExecuteChangeSet": self._execute_change_set,
            "UpdateStack": self._update_stack,
            "UpdateTerminationProtection": self._set_termination_protection,
            **self._stack_store.handlers,
        }

    def handle(self, action: str, request: ApiDict) -> ApiResponse:
        """Return the response of one call.

        Raises:
            ApiError: the call is rejected.
        """
        if action not in self.handlers:
            raise ApiError("InvalidAction", f"{action} is not known here")
        with self._lock:
            try:
                return self.handlers[action](request)
            except (Failed, InvalidTemplate) as error:
                raise ApiError("ValidationError", str(error)) from error

    def join(self) -> None:
        """Wait until all stack operations have ended."""
        with self._lock:
            threads = tuple(self._threads)
        for thread in threads:
            thread.join()

    def _read_ssm_parameter(self, name: str) -> str:
        return str(self._services.get_client("ssm").get_parameter(Name=name)["Parameter"]["Value"])

    def _build_resolver(self, stack: Stack, spec: StackSpec, operation: StackOperation) -> TemplateResolver:
        pseudo_parameters = {
            "AWS::AccountId": self._services.account_id,
            "AWS::Partition": "aws",
            "AWS::Region": self._services.region,
            "AWS::StackId": stack.arn,
            "AWS::StackName": stack.name,
            "AWS::URLSuffix": "amazonaws.com",
        }
        return TemplateResolver(
            spec.template,
            parameters=spec.parameters,
            pseudo_parameters=pseudo_parameters,
            physical_resources=operation.physical_resources,
            read_ssm_parameter=self._read_ssm_parameter,
            get_export=self._stack_store.get_export,
        )

    def _build_spec(self, request: ApiDict, stack: Stack) -> StackSpec:
        template_body = (
            stack.template_body if request.get("UsePreviousTemplate") else self._stack_store.load_template_body(request)
        )
        template = parse_template(template_body)
        parameters = request.get("Parameters", ())
        return StackSpec(
            template_body=template_body,
            template=template,
            parameters={
                parameter["ParameterKey"]: stack.parameters[parameter["ParameterKey"]]
                if parameter.get("UsePreviousValue")
                else parameter.get("ParameterValue", "")
                for parameter in parameters
            },
            tags=list(request.get("Tags", stack.tags)),
            role_arn=request.get("RoleARN", stack.role_arn),
        )

    def _add_stack(self, name: str) -> Stack:
        digest = sha256(f"{name}/{len(self._stack_store.stacks)}".encode()).hexdigest()
        region, account_id = self._services.region, self._services.account_id
        uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
        stack = Stack(name, f"arn:aws:cloudformation:{region}:{account_id}:stack/{name}/{uuid}", self._clock.get_time)
        self._stack_store.stacks.append(stack)
        return stack

    def _has_stack(self, name: str) -> bool:
        return any(name == stack.name and not stack.is_deleted for stack in self._stack_store.stacks)

    def _create_stack(self, request: ApiDict) -> ApiResponse:
        name = request["StackName"]
        if self._has_stack(name):
            raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")
        parse_template(self._stack_store.load_template_body(request))
        stack = self._add_stack(name)
        disable_rollback = bool(request.get("DisableRollback")) or request.get("OnFailure") == "DO_NOTHING"
        stack.is_protected = bool(request.get("EnableTerminationProtection"))
        self._start_operation(stack, self._build_spec(request, stack), request, disable_rollback=disable_rollback)
        return {"StackId": stack.arn}

    def _update_stack(self, request: ApiDict) -> ApiResponse:
        stack = self._get_updatable_stack(request["StackName"])
        spec = self._build_spec(request, stack)
        if not self._compute_changes(stack, spec) and spec.template_body == stack.template_body:
            raise ApiError("ValidationError", "No updates are to be performed.")
        self._start_operation(stack, spec, request, disable_rollback=bool(request.get("DisableRollback")))
        return {"StackId": stack.arn}

    def _get_updatable_stack(self, name: str) -> Stack:
        stack = self._stack_store.get_stack(name)
        if stack.status not in COMPLETE_STATUSES - {"ROLLBACK_COMPLETE"} | {"CREATE_FAILED", "UPDATE_FAILED"}:
            raise ApiError("ValidationError", f"Stack:{stack.arn} is in {stack.status} state and can not be updated.")
        return stack

    def _compute_changes(self, stack: Stack, spec: StackSpec) -> list[dict[str, Any]]:
        resolver = self._build_resolver(stack, spec, StackOperation(stack, self._services, self._find_provider))
        return compute_changes(stack, resolver, self._find_provider)

    def _start_operation(self, stack: Stack, spec: StackSpec, request: ApiDict, *, disable_rollback: bool) -> None:
        stack.token, stack.role_arn = request.get("ClientRequestToken", ""), spec.role_arn
        operation = StackOperation(stack, self._services, self._find_provider)
        resolver = self._build_resolver(stack, spec, operation)
        is_new = stack.status == "REVIEW_IN_PROGRESS"
        previous_state = stack.template_body, stack.template, stack.parameters, stack.tags, stack.description
        stack.template_body, stack.template, stack.tags = spec.template_body, spec.template, spec.tags
        stack.parameters = resolver.parameter_values
        stack.description = str(spec.template.get("Description", ""))
        stack.status = "CREATE_IN_PROGRESS" if is_new else "UPDATE_IN_PROGRESS"

        def run_operation() -> None:
            if is_new:
                operation.create_stack(resolver, disable_rollback=disable_rollback)
            elif not operation.update_stack(resolver, disable_rollback=disable_rollback) and not disable_rollback:
                stack.template_body, stack.template, stack.parameters, stack.tags, stack.description = previous_state

        self._start_thread(run_operation, stack.name)

    def _start_thread(self, run_operation: Callable[[], None], name: str) -> None:
        self._threads = [running_thread for running_thread in self._threads if running_thread.is_alive()]
        thread = Thread(target=run_operation, name=f"stack {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _delete_stack(self, request: ApiDict) -> ApiResponse:
        if not self._has_stack(request["StackName"]) and "stack/" not in request["StackName"]:
            return {}
        stack = self._stack_store.get_stack(request["StackName"])
        if stack.is_protected:
            message = f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            raise ApiError("ValidationError", message)
        if stack.is_busy:
            raise ApiError("ValidationError", f"Stack [{stack.name}] is in {stack.status} state: wait until it is done")
        if not stack.is_deleted:
            stack.token = request.get("ClientRequestToken", "")
            stack.status = "DELETE_IN_PROGRESS"
            self._start_thread(StackOperation(stack, self._services, self._find_provider).delete_stack, stack.name)
        return {}

    def _create_change_set(self, request: ApiDict) -> ApiResponse:
        change_set_type, stack_name = request.get("ChangeSetType", "UPDATE"), request["StackName"]
        if change_set_type == "CREATE" and not self._has_stack(stack_name):
            parse_template(self._stack_store.load_template_body(request))
            self._add_stack(stack_name)
        stack = (
            self._stack_store.get_stack(stack_name)
            if change_set_type == "CREATE"
            else self._get_updatable_stack(stack_name)
        )
        if change_set_type == "CREATE" and stack.status != "REVIEW_IN_PROGRESS":
            raise ApiError("ValidationError", f"Stack [{stack_name}] already exists and cannot be created again")
        spec, change_set_name = self._build_spec(request, stack), request["ChangeSetName"]
        arn_prefix = stack.arn.replace(":stack/", ":changeSet/").rpartition("/")[0]
        change_set = ChangeSet(
            name=change_set_name,
            arn=f"{arn_prefix}-{change_set_name}/{len(stack.change_sets)}",
            spec=spec,
            changes=self._compute_changes(stack, spec),
            created_at=self._clock.get_time(),
        )
        if not change_set.changes and spec.template.get("Outputs") == stack.template.get("Outputs"):
            change_set.status, change_set.execution_status = "FAILED", "UNAVAILABLE"
            change_set.reason = NO_CHANGES_REASON
        stack.change_sets[change_set_name] = change_set
        return {"Id": change_set.arn, "StackId": stack.arn}

    def _execute_change_set(self, request: ApiDict) -> ApiResponse:
        stack, change_set = self._stack_store.get_change_set(request)
        if change_set.execution_status != "AVAILABLE":
            message = f"ChangeSet [{change_set.arn}] cannot be executed in its current status of [{change_set.status}]"
            raise ApiError("InvalidChangeSetStatus", message)
        change_set.execution_status = "EXECUTE_COMPLETE"
        self._start_operation(stack, change_set.spec, request, disable_rollback=bool(request.get("DisableRollback")))
        stack.change_sets.clear()
        return {}

    def _delete_change_set(self, request: ApiDict) -> ApiResponse:
        try:
            stack, change_set = self._stack_store.get_change_set(request)
        except ApiError:
            return {}
        del stack.change_sets[change_set.name]
        return {}

    def _set_termination_protection(self, request: ApiDict) -> ApiResponse:
        stack = self._stack_store.get_stack(request["StackName"])
        stack.is_protected = request["EnableTerminationProtection"]
        return {"StackId": stack.arn}
