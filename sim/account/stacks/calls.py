"""CloudFormation's API, as far as `cdk` and boto3's waiters ask."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import RLock, Thread
from typing import Any, Final, TypeAlias

import msgspec

from sim.account.kinds.kind import Failed, Kind, Services
from sim.account.stacks.changes import changes_of
from sim.account.stacks.deploy import Deployment
from sim.account.stacks.shown import Stacks
from sim.account.stacks.stack import DONE, ChangeSet, Stack
from sim.account.stacks.template import InvalidTemplate, Template, parse_template
from sim.account.stacks.values import Scope
from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]

NO_CHANGES: Final = (
    "The submitted information didn't contain changes. Submit different information to create a change set."
)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants a stack to be."""

    text: str
    template: Template
    given: dict[str, str]
    tags: list[dict[str, str]]
    role_arn: str
    """In whose name it is made."""


class CloudFormation:
    """All stacks of the account; deployments run in threads of their own."""

    def __init__(self, services: Services, kinds: Callable[[str], Kind], clock: Clock) -> None:
        """Begin without stacks."""
        self._services, self._kinds, self._clock = services, kinds, clock
        self._shown = Stacks(services)
        self._lock = RLock()
        self._threads: list[Thread] = []
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "CreateChangeSet": self._create_change_set,
            "CreateStack": self._create_stack,
            "DeleteChangeSet": self._delete_change_set,
            "DeleteStack": self._delete_stack,
            "ExecuteChangeSet": self._execute_change_set,
            "UpdateStack": self._update_stack,
            "UpdateTerminationProtection": self._protect,
            **self._shown.handlers,
        }

    def handle(self, action: str, said: Wire) -> Answer:
        """Answer one call.

        Raises:
            ApiError: it is refused.
        """
        if action not in self.handlers:
            raise ApiError("InvalidAction", f"{action} is not known here")
        with self._lock:
            try:
                return self.handlers[action](said)
            except (Failed, InvalidTemplate) as error:
                raise ApiError("ValidationError", str(error)) from error

    def join(self) -> None:
        """Wait until nothing is being deployed."""
        with self._lock:
            begun = tuple(self._threads)
        for thread in begun:
            thread.join()

    def _stored(self, name: str) -> str:
        return str(self._services.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])

    def _scope(self, stack: Stack, wanted: Wanted, deployment: Deployment) -> Scope:
        pseudo = {
            "AWS::AccountId": self._services.number,
            "AWS::Partition": "aws",
            "AWS::Region": self._services.region,
            "AWS::StackId": stack.arn,
            "AWS::StackName": stack.name,
            "AWS::URLSuffix": "amazonaws.com",
        }
        return Scope(
            wanted.template,
            given=wanted.given,
            pseudo=pseudo,
            made=deployment.made,
            stored=self._stored,
            exported=self._shown.exported,
        )

    def _wanted(self, said: Wire, stack: Stack) -> Wanted:
        text = stack.text if said.get("UsePreviousTemplate") else self._shown.text(said)
        template = parse_template(text)
        kept = {one["ParameterKey"] for one in said.get("Parameters", ()) if one.get("UsePreviousValue")}
        given = {
            one["ParameterKey"]: stack.given[one["ParameterKey"]]
            if one["ParameterKey"] in kept
            else one.get("ParameterValue", "")
            for one in said.get("Parameters", ())
        }
        return Wanted(
            text=text,
            template=template,
            given=given,
            tags=list(said.get("Tags", stack.tags)),
            role_arn=said.get("RoleARN", stack.role_arn),
        )

    def _new(self, name: str) -> Stack:
        unique = sha256(f"{name}/{len(self._shown.stacks)}".encode()).hexdigest()
        region, number = self._services.region, self._services.number
        uuid = f"{unique[:8]}-{unique[8:12]}-{unique[12:16]}-{unique[16:20]}-{unique[20:32]}"
        made = Stack(name, f"arn:aws:cloudformation:{region}:{number}:stack/{name}/{uuid}", self._clock.now)
        self._shown.stacks.append(made)
        return made

    def _is_there(self, name: str) -> bool:
        return any(name == one.name and not one.is_gone for one in self._shown.stacks)

    def _create_stack(self, said: Wire) -> Answer:
        name = said["StackName"]
        if self._is_there(name):
            raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")
        parse_template(self._shown.text(said))
        stack = self._new(name)
        keeps = bool(said.get("DisableRollback")) or said.get("OnFailure") == "DO_NOTHING"
        stack.is_protected = bool(said.get("EnableTerminationProtection"))
        self._begin(stack, self._wanted(said, stack), said, keeps=keeps)
        return {"StackId": stack.arn}

    def _update_stack(self, said: Wire) -> Answer:
        stack = self._free(said["StackName"])
        wanted = self._wanted(said, stack)
        if not self._changes(stack, wanted) and wanted.text == stack.text:
            raise ApiError("ValidationError", "No updates are to be performed.")
        self._begin(stack, wanted, said, keeps=bool(said.get("DisableRollback")))
        return {"StackId": stack.arn}

    def _free(self, name: str) -> Stack:
        stack = self._shown.stack(name)
        if stack.status not in DONE - {"ROLLBACK_COMPLETE"} | {"CREATE_FAILED", "UPDATE_FAILED"}:
            raise ApiError("ValidationError", f"Stack:{stack.arn} is in {stack.status} state and can not be updated.")
        return stack

    def _changes(self, stack: Stack, wanted: Wanted) -> list[dict[str, Any]]:
        scope = self._scope(stack, wanted, Deployment(stack, self._services, self._kinds))
        return changes_of(stack, scope, self._kinds)

    def _begin(self, stack: Stack, wanted: Wanted, said: Wire, *, keeps: bool) -> None:
        stack.token, stack.role_arn = said.get("ClientRequestToken", ""), wanted.role_arn
        deployment = Deployment(stack, self._services, self._kinds)
        scope = self._scope(stack, wanted, deployment)
        is_new = stack.status == "REVIEW_IN_PROGRESS"
        before = stack.text, stack.template, stack.given, stack.tags, stack.description
        stack.text, stack.template, stack.given, stack.tags = wanted.text, wanted.template, scope.said, wanted.tags
        stack.description = str(wanted.template.get("Description", ""))
        stack.status = "CREATE_IN_PROGRESS" if is_new else "UPDATE_IN_PROGRESS"

        def work() -> None:
            if is_new:
                deployment.create(scope, keeps=keeps)
            elif not deployment.update(scope, keeps=keeps) and not keeps:
                stack.text, stack.template, stack.given, stack.tags, stack.description = before

        self._run(work, stack.name)

    def _run(self, work: Callable[[], None], name: str) -> None:
        self._threads = [one for one in self._threads if one.is_alive()]
        thread = Thread(target=work, name=f"stack {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _delete_stack(self, said: Wire) -> Answer:
        if not self._is_there(said["StackName"]) and "stack/" not in said["StackName"]:
            return {}
        stack = self._shown.stack(said["StackName"])
        if stack.is_protected:
            text = f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            raise ApiError("ValidationError", text)
        if stack.is_busy:
            raise ApiError("ValidationError", f"Stack [{stack.name}] is in {stack.status} state: wait until it is done")
        if not stack.is_gone:
            stack.token = said.get("ClientRequestToken", "")
            stack.status = "DELETE_IN_PROGRESS"
            self._run(Deployment(stack, self._services, self._kinds).delete, stack.name)
        return {}

    def _create_change_set(self, said: Wire) -> Answer:
        kind, name = said.get("ChangeSetType", "UPDATE"), said["StackName"]
        if kind == "CREATE" and not self._is_there(name):
            parse_template(self._shown.text(said))
            self._new(name)
        stack = self._shown.stack(name) if kind == "CREATE" else self._free(name)
        if kind == "CREATE" and stack.status != "REVIEW_IN_PROGRESS":
            raise ApiError("ValidationError", f"Stack [{name}] already exists and cannot be created again")
        wanted, its = self._wanted(said, stack), said["ChangeSetName"]
        made = ChangeSet(
            name=its,
            arn=f"{stack.arn.replace(':stack/', ':changeSet/').rpartition('/')[0]}-{its}/{len(stack.change_sets)}",
            kind=kind,
            text=wanted.text,
            template=wanted.template,
            given=wanted.given,
            tags=wanted.tags,
            role_arn=wanted.role_arn,
            changes=self._changes(stack, wanted),
            at=self._clock.now(),
        )
        if not made.changes and wanted.template.get("Outputs") == stack.template.get("Outputs"):
            made.status, made.reason, made.execution = "FAILED", NO_CHANGES, "UNAVAILABLE"
        stack.change_sets[its] = made
        return {"Id": made.arn, "StackId": stack.arn}

    def _execute_change_set(self, said: Wire) -> Answer:
        stack, one = self._shown.change_set(said)
        if one.execution != "AVAILABLE":
            text = f"ChangeSet [{one.arn}] cannot be executed in its current status of [{one.status}]"
            raise ApiError("InvalidChangeSetStatus", text)
        one.execution = "EXECUTE_COMPLETE"
        wanted = Wanted(text=one.text, template=one.template, given=one.given, tags=one.tags, role_arn=one.role_arn)
        self._begin(stack, wanted, said, keeps=bool(said.get("DisableRollback")))
        stack.change_sets.clear()
        return {}

    def _delete_change_set(self, said: Wire) -> Answer:
        try:
            stack, one = self._shown.change_set(said)
        except ApiError:
            return {}
        del stack.change_sets[one.name]
        return {}

    def _protect(self, said: Wire) -> Answer:
        stack = self._shown.stack(said["StackName"])
        stack.is_protected = said["EnableTerminationProtection"]
        return {"StackId": stack.arn}
