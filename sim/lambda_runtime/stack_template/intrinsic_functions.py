"""CloudFormation's intrinsic functions, without the references: what a resource is called depends on who resolves."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

Json: TypeAlias = Any
"""Any value of a JSON document."""
NO_VALUE: Final = object()
"""The value of ``AWS::NoValue``: the property is removed."""
REFERENCE_PATTERN: Final = re.compile(r"\$\{(!?)([^}]+)\}")
"""A reference in the text of ``Fn::Sub``; with an exclamation mark, it is literal."""


class IntrinsicFunctions(ABC):
    """Resolves intrinsic functions; a subclass resolves references, and may support more functions."""

    unsupported_error: ClassVar[type[Exception]]
    """Raised for a function that is not supported."""

    def __init__(self) -> None:
        """Support the functions that need nothing but references."""
        self._intrinsic_functions: dict[str, Callable[[Any], Json]] = {
            "Ref": self.resolve_ref,
            "Fn::GetAtt": self._resolve_get_att,
            "Fn::Join": lambda node: str(node[0]).join(map(format_text, self.resolve(node[1]))),
            "Fn::Select": lambda node: self.resolve(node[1])[int(self.resolve(node[0]))],
            "Fn::Split": lambda node: str(self.resolve(node[1])).split(node[0]),
            "Fn::Sub": self._resolve_sub,
        }

    @abstractmethod
    def resolve_ref(self, name: str) -> Json:
        """Return the value of `Ref` for the pseudo parameter, parameter or resource *name*."""

    @abstractmethod
    def get_attribute(self, logical_id: str, attribute: str) -> Json:
        """Return the value of `Fn::GetAtt` for an attribute of a resource."""

    def resolve(self, value: Json) -> Json:
        """Return *value* with all intrinsic functions replaced by their values.

        Raises:
            Exception: of type `unsupported_error`: a function or a reference is unknown.
        """
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            [(key, argument)] = value.items()
            # IAM policies have a key "Condition" too; its value distinguishes it from the intrinsic function.
            if key in self._intrinsic_functions and not (key == "Condition" and not isinstance(argument, str)):
                return self._intrinsic_functions[key](argument)
            if str(key).startswith("Fn::"):
                raise self.unsupported_error(f"Template error: {key} is not understood here")
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def _resolve_get_att(self, argument: str | list[Json]) -> Json:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.get_attribute(logical_id, self.resolve(attribute))

    def _resolve_sub(self, argument: str | list[Json]) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        values = {name: format_text(self.resolve(value)) for name, value in variables.items()}

        def replace_reference(literal: str, name: str) -> str:
            if literal:
                return f"${{{name}}}"
            if name in values:
                return values[name]
            return format_text(self._resolve_get_att(name) if "." in name else self.resolve_ref(name))

        return REFERENCE_PATTERN.sub(lambda match: replace_reference(match[1], match[2]), text)


def format_text(value: Json) -> str:
    """Return *value* as CloudFormation puts it into text.

    >>> format_text(True), format_text(["a", "b"])
    ('true', 'a,b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(format_text, value)) if isinstance(value, list) else str(value)
