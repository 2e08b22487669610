"""Who may call a function, how many calls may run at once, and what becomes of those that nobody waits for."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sim.account.lambdas.store import CONFLICT, LATEST, NOT_FOUND, Function
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]


class Calling:
    """The handlers; each takes the call's parameters and answers its result."""

    def __init__(self, named: Callable[[str], tuple[Function, str]]) -> None:
        """Find a function and a qualifier by *named*."""
        self._named = named
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "AddPermission": self._add_permission,
            "DeleteFunctionConcurrency": self._unreserve,
            "DeleteFunctionEventInvokeConfig": self._delete_invoke_config,
            "GetFunctionConcurrency": self._concurrency,
            "GetFunctionEventInvokeConfig": self._invoke_config,
            "GetFunctionRecursionConfig": self._recursion,
            "GetPolicy": self._policy,
            "ListFunctionEventInvokeConfigs": self._list_invoke_configs,
            "PutFunctionConcurrency": self._reserve,
            "PutFunctionEventInvokeConfig": self._put_invoke_config,
            "PutFunctionRecursionConfig": self._let_recur,
            "RemovePermission": self._remove_permission,
        }

    def _qualified(self, said: Wire) -> tuple[Function, str]:
        function, qualifier = self._named(said["FunctionName"])
        return function, qualifier or said.get("Qualifier", "")

    def _add_permission(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        function.version(qualifier)
        some = function.permissions.setdefault(qualifier, {})
        if said["StatementId"] in some:
            text = f"The statement id ({said['StatementId']}) provided already exists."
            raise ApiError("ResourceConflictException", text, CONFLICT)
        resource = f"{function.arn}:{qualifier}" if qualifier else function.arn
        some[said["StatementId"]] = made = _statement(said, resource)
        return {"Statement": json.dumps(made)}

    def _remove_permission(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        if said["StatementId"] not in function.permissions.get(qualifier, {}):
            text = f"Statement {said['StatementId']} is not found in resource policy."
            raise ApiError("ResourceNotFoundException", text, NOT_FOUND)
        del function.permissions[qualifier][said["StatementId"]]
        return {}

    def _policy(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        some = function.permissions.get(qualifier, {})
        if not some:
            raise ApiError("ResourceNotFoundException", "The resource you requested does not exist.", NOT_FOUND)
        statements = [one for _, one in sorted(some.items())]
        return {"Policy": json.dumps({"Version": "2012-10-17", "Id": "default", "Statement": statements})}

    def _put_invoke_config(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        function.version(qualifier)
        fields = ("DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts")
        function.invoke_configs[qualifier or LATEST] = {key: said[key] for key in fields if key in said}
        return self._invoke_config(said)

    def _invoke_config(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        arn = f"{function.arn}:{qualifier or LATEST}"
        if (qualifier or LATEST) not in function.invoke_configs:
            text = f"The function {arn} doesn't have an EventInvokeConfig"
            raise ApiError("ResourceNotFoundException", text, NOT_FOUND)
        return {"FunctionArn": arn, **function.invoke_configs[qualifier or LATEST]}

    def _list_invoke_configs(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        some = sorted(function.invoke_configs.items())
        return {"FunctionEventInvokeConfigs": [{"FunctionArn": f"{function.arn}:{key}", **one} for key, one in some]}

    def _delete_invoke_config(self, said: Wire) -> Answer:
        self._invoke_config(said)
        function, qualifier = self._qualified(said)
        del function.invoke_configs[qualifier or LATEST]
        return {}

    def _reserve(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        function.reserved = said["ReservedConcurrentExecutions"]
        return {"ReservedConcurrentExecutions": function.reserved}

    def _unreserve(self, said: Wire) -> Answer:
        self._named(said["FunctionName"])[0].reserved = None
        return {}

    def _concurrency(self, said: Wire) -> Answer:
        reserved = self._named(said["FunctionName"])[0].reserved
        return {} if reserved is None else {"ReservedConcurrentExecutions": reserved}

    def _let_recur(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        function.recursive_loop = said["RecursiveLoop"]
        return self._recursion(said)

    def _recursion(self, said: Wire) -> Answer:
        return {"RecursiveLoop": self._named(said["FunctionName"])[0].recursive_loop}


def _statement(said: Wire, resource: str) -> Answer:
    principal: str = said["Principal"]
    conditions = {}
    if "SourceArn" in said:
        conditions["ArnLike"] = {"AWS:SourceArn": said["SourceArn"]}
    if "SourceAccount" in said:
        conditions["StringEquals"] = {"AWS:SourceAccount": said["SourceAccount"]}
    return {
        "Sid": said["StatementId"],
        "Effect": "Allow",
        "Principal": {"Service": principal} if principal.endswith(".amazonaws.com") else principal,
        "Action": said["Action"],
        "Resource": resource,
    } | ({"Condition": conditions} if conditions else {})
