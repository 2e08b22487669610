"""What a template's functions and references give, once the resources that they name are there."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.account.kinds.kind import Made
from sim.account.stacks.template import REFERENCE, InvalidTemplate, Json, Template

NO_VALUE: Final = object()
"""What ``AWS::NoValue`` gives: the property is not there."""
_LISTS: Final = ("CommaDelimitedList", "List<String>")
_STORED: Final = "AWS::SSM::Parameter::Value<String>"


class Scope:
    """The values of one template, with the parameters that somebody gave it."""

    def __init__(
        self,
        template: Template,
        *,
        given: Mapping[str, str],
        pseudo: Mapping[str, str],
        made: Mapping[str, Made],
        stored: Callable[[str], str],
        exported: Callable[[str], str],
    ) -> None:
        """Resolve against *made*, which may grow; *stored* reads the parameter store, *exported* other stacks.

        Raises:
            InvalidTemplate: a parameter has no value, or there is none of a given name.
        """
        self._template, self._pseudo, self._made, self._exported = template, pseudo, made, exported
        declared: Mapping[str, Any] = template.get("Parameters", {})
        if unknown := sorted(given.keys() - declared.keys()):
            raise InvalidTemplate(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
        self.said = {name: _given(name, said, given) for name, said in declared.items()}
        self._parameters = {name: _typed(declared[name], value, stored) for name, value in self.said.items()}
        self._functions: dict[str, Callable[[Any], Json]] = {
            "Ref": self._ref,
            "Condition": self.holds,
            "Fn::And": lambda said: all(map(self._condition, said)),
            "Fn::Base64": lambda said: b64encode(str(self.resolve(said)).encode()).decode(),
            "Fn::Equals": lambda said: self.resolve(said[0]) == self.resolve(said[1]),
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._attribute,
            "Fn::GetAZs": lambda said: [f"{self.resolve(said) or self._pseudo['AWS::Region']}{one}" for one in "abc"],
            "Fn::If": lambda said: self.resolve(said[1 if self.holds(said[0]) else 2]),
            "Fn::ImportValue": lambda said: self._exported(self.resolve(said)),
            "Fn::Join": lambda said: str(said[0]).join(map(_text, self.resolve(said[1]))),
            "Fn::Not": lambda said: not self._condition(said[0]),
            "Fn::Or": lambda said: any(map(self._condition, said)),
            "Fn::Select": lambda said: self.resolve(said[1])[int(self.resolve(said[0]))],
            "Fn::Split": lambda said: str(self.resolve(said[1])).split(said[0]),
            "Fn::Sub": self._substitute,
        }

    def resolve(self, value: Json) -> Json:
        """Answer *value* with every function in it replaced by what it gives.

        Raises:
            InvalidTemplate: a function or a reference is unknown.
        """
        if isinstance(value, list):
            return [one for one in map(self.resolve, value) if one is not NO_VALUE]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            [(key, said)] = value.items()
            # IAM's own word for conditions is that of templates; what it holds tells them apart.
            if key in self._functions and not (key == "Condition" and not isinstance(said, str)):
                return self._functions[key](said)
            if str(key).startswith("Fn::"):
                raise InvalidTemplate(f"Template error: {key} is not understood here")
        found = {key: self.resolve(one) for key, one in value.items()}
        return {key: one for key, one in found.items() if one is not NO_VALUE}

    def holds(self, name: str) -> bool:
        """Whether the condition called *name* does.

        Raises:
            InvalidTemplate: there is none.
        """
        conditions = self._template.get("Conditions", {})
        if name not in conditions:
            raise InvalidTemplate(f"Template error: unresolved condition dependency {name}")
        return self._condition(conditions[name])

    def resources(self) -> dict[str, Any]:
        """Answer the resources whose conditions hold."""
        every: Mapping[str, Any] = self._template["Resources"]
        return {name: one for name, one in every.items() if "Condition" not in one or self.holds(one["Condition"])}

    def outputs(self) -> list[dict[str, str]]:
        """Answer the outputs whose conditions hold, as DescribeStacks does."""
        found: Mapping[str, Any] = self._template.get("Outputs", {})
        return [
            {"OutputKey": name, "OutputValue": _text(self.resolve(one["Value"]))}
            | ({"Description": one["Description"]} if "Description" in one else {})
            | ({"ExportName": self.resolve(one["Export"]["Name"])} if "Export" in one else {})
            for name, one in sorted(found.items())
            if "Condition" not in one or self.holds(one["Condition"])
        ]

    def _condition(self, said: Json) -> bool:
        return bool(self.resolve(said))

    def _ref(self, name: str) -> Json:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._parameters:
            return self._parameters[name]
        return self._resource(name).ref

    def _resource(self, name: str) -> Made:
        if name not in self._made:
            raise InvalidTemplate(f"Template format error: Unresolved resource dependencies [{name}]")
        return self._made[name]

    def _attribute(self, said: str | list[str]) -> Json:
        name, attribute = said.split(".", 1) if isinstance(said, str) else (said[0], self.resolve(said[1]))
        attributes = self._resource(name).attributes
        if attribute not in attributes:
            raise InvalidTemplate(f"Requested attribute {attribute} does not exist in schema for {name}")
        return attributes[attribute]

    def _find_in_map(self, said: list[Json]) -> Json:
        found = self._template.get("Mappings", {})
        for key in said:
            found = found[self.resolve(key)]
        return found

    def _substitute(self, said: str | list[Json]) -> str:
        text, given = (said, {}) if isinstance(said, str) else said
        values = {name: _text(self.resolve(value)) for name, value in given.items()}

        def replaced(literal: str, name: str) -> str:
            if literal:
                return f"${{{name}}}"
            if name in values:
                return values[name]
            return _text(self._attribute(name) if "." in name else self._ref(name))

        return REFERENCE.sub(lambda found: replaced(found[1], found[2]), text)


def _given(name: str, declared: Template, given: Mapping[str, str]) -> str:
    if name in given:
        return given[name]
    if "Default" in declared:
        return _text(declared["Default"])
    raise InvalidTemplate(f"Parameters: [{name}] must have values")


def _typed(declared: Template, value: str, stored: Callable[[str], str]) -> Json:
    if declared["Type"] in _LISTS:
        return value.split(",")
    return stored(value) if declared["Type"] == _STORED else value


def _text(value: Json) -> str:
    """Answer *value* as CloudFormation puts it into text.

    >>> _text(True), _text(["a", "b"])
    ('true', 'a,b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)
