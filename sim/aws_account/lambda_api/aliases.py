"""Lambda aliases: each routes to one version, or to two with weights."""

from collections.abc import Callable

from sim.aws_account.lambda_api.function_store import HTTP_CONFLICT, HTTP_NOT_FOUND, Function
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse


class AliasApi:
    """The API calls for aliases; the aliases are stored in their function."""

    def __init__(self, find_function: Callable[[str], tuple[Function, str]]) -> None:
        """Find a function and a qualifier by name or ARN with *find_function*."""
        self._find_function = find_function
        self.handlers: ApiHandlers = {
            "CreateAlias": self._create,
            "DeleteAlias": self._delete,
            "GetAlias": self._get_alias_response,
            "ListAliases": self._list,
            "UpdateAlias": self._update,
        }

    def _get_alias(self, request: ApiDict) -> tuple[Function, ApiResponse]:
        function, name = self._find_function(request["FunctionName"])[0], request["Name"]
        if name not in function.aliases:
            raise ApiError("ResourceNotFoundException", f"Alias not found: {function.arn}:{name}", HTTP_NOT_FOUND)
        return function, function.aliases[name]

    def _create(self, request: ApiDict) -> ApiResponse:
        function, name = self._find_function(request["FunctionName"])[0], request["Name"]
        if name in function.aliases:
            raise ApiError("ResourceConflictException", f"Alias already exists: {function.arn}:{name}", HTTP_CONFLICT)
        function.aliases[name] = self._build_alias(function, {"Name": name, "Description": ""}, request)
        return self._get_alias_response(request)

    def _update(self, request: ApiDict) -> ApiResponse:
        function, alias = self._get_alias(request)
        function.aliases[request["Name"]] = self._build_alias(function, alias, request)
        return self._get_alias_response(request)

    def _build_alias(self, function: Function, alias_before: ApiResponse, request: ApiDict) -> ApiResponse:
        fields = ("Description", "FunctionVersion", "RoutingConfig")
        alias = {**alias_before, **{key: request[key] for key in fields if key in request}}
        function.get_version(alias["FunctionVersion"])
        for number in alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}):
            function.get_version(number)
        return alias

    def _get_alias_response(self, request: ApiDict) -> ApiResponse:
        function, alias = self._get_alias(request)
        return {**alias, "AliasArn": f"{function.arn}:{alias['Name']}"}

    def _list(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        names = sorted(function.aliases)
        return {"Aliases": [{**function.aliases[name], "AliasArn": f"{function.arn}:{name}"} for name in names]}

    def _delete(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        name = request["Name"]
        function.aliases.pop(name, None)
        function.permissions.pop(name, None)
        function.invoke_configs.pop(name, None)
        return {}
