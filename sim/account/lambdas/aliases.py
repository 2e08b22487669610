"""Aliases: names that lead to a version, or for a while to two."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sim.account.lambdas.store import CONFLICT, NOT_FOUND, Function
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]


class Aliases:
    """The calls about them; each function keeps its own."""

    def __init__(self, named: Callable[[str], tuple[Function, str]]) -> None:
        """*named* finds a function and a qualifier by name or ARN."""
        self._find = named
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "CreateAlias": self._create,
            "DeleteAlias": self._delete,
            "GetAlias": self._shown,
            "ListAliases": self._list,
            "UpdateAlias": self._update,
        }

    def _known(self, said: Wire) -> tuple[Function, Answer]:
        function, name = self._find(said["FunctionName"])[0], said["Name"]
        if name not in function.aliases:
            raise ApiError("ResourceNotFoundException", f"Alias not found: {function.arn}:{name}", NOT_FOUND)
        return function, function.aliases[name]

    def _create(self, said: Wire) -> Answer:
        function, name = self._find(said["FunctionName"])[0], said["Name"]
        if name in function.aliases:
            raise ApiError("ResourceConflictException", f"Alias already exists: {function.arn}:{name}", CONFLICT)
        function.aliases[name] = self._leading(function, {"Name": name, "Description": ""}, said)
        return self._shown(said)

    def _update(self, said: Wire) -> Answer:
        function, before = self._known(said)
        function.aliases[said["Name"]] = self._leading(function, before, said)
        return self._shown(said)

    def _leading(self, function: Function, before: Answer, said: Wire) -> Answer:
        fields = ("Description", "FunctionVersion", "RoutingConfig")
        wanted = {**before, **{key: said[key] for key in fields if key in said}}
        function.version(wanted["FunctionVersion"])
        for number in wanted.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}):
            function.version(number)
        return wanted

    def _shown(self, said: Wire) -> Answer:
        function, found = self._known(said)
        return {**found, "AliasArn": f"{function.arn}:{found['Name']}"}

    def _list(self, said: Wire) -> Answer:
        function, _ = self._find(said["FunctionName"])
        names = sorted(function.aliases)
        return {"Aliases": [{**function.aliases[one], "AliasArn": f"{function.arn}:{one}"} for one in names]}

    def _delete(self, said: Wire) -> Answer:
        function, _ = self._find(said["FunctionName"])
        name = said["Name"]
        function.aliases.pop(name, None)
        function.permissions.pop(name, None)
        function.invoke_configs.pop(name, None)
        return {}
