"""Permissions to invoke a function, its reserved concurrency, and the settings of asynchronous invocations."""

import json
from collections.abc import Callable

from sim.aws_account.lambda_api.function_store import HTTP_CONFLICT, HTTP_NOT_FOUND, LATEST_QUALIFIER, Function
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse


class InvocationApi:
    """The API calls; each handler gets the parameters of a call and returns its response."""

    def __init__(self, find_function: Callable[[str], tuple[Function, str]]) -> None:
        """Find a function and a qualifier by name or ARN with *find_function*."""
        self._find_function = find_function
        self.handlers: ApiHandlers = {
            "AddPermission": self._add_permission,
            "DeleteFunctionConcurrency": self._set_concurrency,
            "DeleteFunctionEventInvokeConfig": self._delete_invoke_config,
            "GetFunctionConcurrency": self._get_concurrency,
            "GetFunctionEventInvokeConfig": self._get_invoke_config,
            "GetFunctionRecursionConfig": self._get_recursion_config,
            "GetPolicy": self._get_policy,
            "ListFunctionEventInvokeConfigs": self._list_invoke_configs,
            "PutFunctionConcurrency": self._set_concurrency,
            "PutFunctionEventInvokeConfig": self._put_invoke_config,
            "PutFunctionRecursionConfig": self._put_recursion_config,
            "RemovePermission": self._remove_permission,
        }

    def _find_function_and_qualifier(self, request: ApiDict) -> tuple[Function, str]:
        function, qualifier = self._find_function(request["FunctionName"])
        return function, qualifier or request.get("Qualifier", "")

    def _add_permission(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        function.get_version(qualifier)
        statements = function.permissions.setdefault(qualifier, {})
        if request["StatementId"] in statements:
            message = f"The statement id ({request['StatementId']}) provided already exists."
            raise ApiError("ResourceConflictException", message, HTTP_CONFLICT)
        resource = f"{function.arn}:{qualifier}" if qualifier else function.arn
        statements[request["StatementId"]] = statement = _build_statement(request, resource)
        return {"Statement": json.dumps(statement)}

    def _remove_permission(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        if request["StatementId"] not in function.permissions.get(qualifier, {}):
            message = f"Statement {request['StatementId']} is not found in resource policy."
            raise ApiError("ResourceNotFoundException", message, HTTP_NOT_FOUND)
        del function.permissions[qualifier][request["StatementId"]]
        return {}

    def _get_policy(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        statement_by_id = function.permissions.get(qualifier, {})
        if not statement_by_id:
            raise ApiError("ResourceNotFoundException", "The resource you requested does not exist.", HTTP_NOT_FOUND)
        statements = [statement for _, statement in sorted(statement_by_id.items())]
        return {"Policy": json.dumps({"Version": "2012-10-17", "Id": "default", "Statement": statements})}

    def _put_invoke_config(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        function.get_version(qualifier)
        fields = ("DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts")
        function.invoke_configs[qualifier or LATEST_QUALIFIER] = {key: request[key] for key in fields if key in request}
        return self._get_invoke_config(request)

    def _get_invoke_config(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        arn = f"{function.arn}:{qualifier or LATEST_QUALIFIER}"
        if (qualifier or LATEST_QUALIFIER) not in function.invoke_configs:
            message = f"The function {arn} doesn't have an EventInvokeConfig"
            raise ApiError("ResourceNotFoundException", message, HTTP_NOT_FOUND)
        return {"FunctionArn": arn, **function.invoke_configs[qualifier or LATEST_QUALIFIER]}

    def _list_invoke_configs(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        configs = sorted(function.invoke_configs.items())
        return {
            "FunctionEventInvokeConfigs": [
                {"FunctionArn": f"{function.arn}:{key}", **config} for key, config in configs
            ]
        }

    def _delete_invoke_config(self, request: ApiDict) -> ApiResponse:
        self._get_invoke_config(request)
        function, qualifier = self._find_function_and_qualifier(request)
        del function.invoke_configs[qualifier or LATEST_QUALIFIER]
        return {}

    def _set_concurrency(self, request: ApiDict) -> ApiResponse:
        """Set the reserved concurrency; without a number in *request*, remove it."""
        function, _ = self._find_function(request["FunctionName"])
        function.reserved_concurrency = request.get("ReservedConcurrentExecutions")
        return self._get_concurrency(request)

    def _get_concurrency(self, request: ApiDict) -> ApiResponse:
        reserved = self._find_function(request["FunctionName"])[0].reserved_concurrency
        return {} if reserved is None else {"ReservedConcurrentExecutions": reserved}

    def _put_recursion_config(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        function.recursive_loop = request["RecursiveLoop"]
        return self._get_recursion_config(request)

    def _get_recursion_config(self, request: ApiDict) -> ApiResponse:
        return {"RecursiveLoop": self._find_function(request["FunctionName"])[0].recursive_loop}


def _build_statement(request: ApiDict, resource: str) -> ApiResponse:
    principal: str = request["Principal"]
    conditions = {}
    if "SourceArn" in request:
        conditions["ArnLike"] = {"AWS:SourceArn": request["SourceArn"]}
    if "SourceAccount" in request:
        conditions["StringEquals"] = {"AWS:SourceAccount": request["SourceAccount"]}
    return {
        "Sid": request["StatementId"],
        "Effect": "Allow",
        "Principal": {"Service": principal} if principal.endswith(".amazonaws.com") else principal,
        "Action": request["Action"],
        "Resource": resource,
    } | ({"Condition": conditions} if conditions else {})
