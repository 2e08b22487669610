"""Resolves the intrinsic functions and references of a template, when the referenced resources exist."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.aws_account.cloudformation.template_parser import REFERENCE_PATTERN, InvalidTemplate, Json, Template
from sim.aws_account.resource_types.resource_provider import PhysicalResource

NO_VALUE: Final = object()
"""The value of ``AWS::NoValue``: the property is removed."""
_LIST_TYPES: Final = ("CommaDelimitedList", "List<String>")
_SSM_PARAMETER_TYPE: Final = "AWS::SSM::Parameter::Value<String>"


class TemplateResolver:
    """Resolves one template with its parameter values."""

    def __init__(
        self,
        template: Template,
        *,
        parameters: Mapping[str, str],
        pseudo_parameters: Mapping[str, str],
        physical_resources: Mapping[str, PhysicalResource],
        read_ssm_parameter: Callable[[str], str],
        get_export: Callable[[str], str],
    ) -> None:
        """Resolve references to *physical_resources*, which may grow.

        *read_ssm_parameter* reads the Parameter Store, *get_export* the exports of other stacks.

        Raises:
            InvalidTemplate: a parameter has no value, or is not declared.
        """
        self._template, self._pseudo_parameters = template, pseudo_parameters
        self._physical_resources, self._get_export = physical_resources, get_export
        declared: Mapping[str, Any] = template.get("Parameters", {})
        if unknown := sorted(parameters.keys() - declared.keys()):
            raise InvalidTemplate(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
        self.parameter_values = {name: _get_parameter_value(name, node, parameters) for name, node in declared.items()}
        self._typed_parameters = {
            name: _convert_parameter(declared[name], value, read_ssm_parameter)
            for name, value in self.parameter_values.items()
        }
        self._intrinsic_functions: dict[str, Callable[[Any], Json]] = {
            "Ref": self._resolve_ref,
            "Condition": self.is_condition_met,
            "Fn::And": lambda node: all(map(self._is_true, node)),
            "Fn::Base64": lambda node: b64encode(str(self.resolve(node)).encode()).decode(),
            "Fn::Equals": lambda node: self.resolve(node[0]) == self.resolve(node[1]),
            "Fn::FindInMap": self._resolve_find_in_map,
            "Fn::GetAtt": self._resolve_get_att,
            "Fn::GetAZs": lambda node: [
                f"{self.resolve(node) or self._pseudo_parameters['AWS::Region']}{zone_suffix}" for zone_suffix in "abc"
            ],
            "Fn::If": lambda node: self.resolve(node[1 if self.is_condition_met(node[0]) else 2]),
            "Fn::ImportValue": lambda node: self._get_export(self.resolve(node)),
            "Fn::Join": lambda node: str(node[0]).join(map(_format_text, self.resolve(node[1]))),
            "Fn::Not": lambda node: not self._is_true(node[0]),
            "Fn::Or": lambda node: any(map(self._is_true, node)),
            "Fn::Select": lambda node: self.resolve(node[1])[int(self.resolve(node[0]))],
            "Fn::Split": lambda node: str(self.resolve(node[1])).split(node[0]),
            "Fn::Sub": self._resolve_sub,
        }

    def resolve(self, value: Json) -> Json:
        """Return *value* with all intrinsic functions replaced by their values.

        Raises:
            InvalidTemplate: a function or a reference is unknown.
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
                raise InvalidTemplate(f"Template error: {key} is not understood here")
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def is_condition_met(self, name: str) -> bool:
        """Return whether the condition *name* of the template is true.

        Raises:
            InvalidTemplate: there is no such condition.
        """
        conditions = self._template.get("Conditions", {})
        if name not in conditions:
            raise InvalidTemplate(f"Template error: unresolved condition dependency {name}")
        return self._is_true(conditions[name])

    def select_resources(self) -> dict[str, Any]:
        """Return the resource definitions whose conditions are true, by logical id."""
        definitions: Mapping[str, Any] = self._template["Resources"]
        return {
            name: definition
            for name, definition in definitions.items()
            if "Condition" not in definition or self.is_condition_met(definition["Condition"])
        }

    def resolve_outputs(self) -> list[dict[str, str]]:
        """Return the outputs whose conditions are true, in the format of DescribeStacks."""
        outputs: Mapping[str, Any] = self._template.get("Outputs", {})
        return [
            {"OutputKey": name, "OutputValue": _format_text(self.resolve(output["Value"]))}
            | ({"Description": output["Description"]} if "Description" in output else {})
            | ({"ExportName": self.resolve(output["Export"]["Name"])} if "Export" in output else {})
            for name, output in sorted(outputs.items())
            if "Condition" not in output or self.is_condition_met(output["Condition"])
        ]

    def _is_true(self, expression: Json) -> bool:
        return bool(self.resolve(expression))

    def _resolve_ref(self, name: str) -> Json:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._pseudo_parameters:
            return self._pseudo_parameters[name]
        if name in self._typed_parameters:
            return self._typed_parameters[name]
        return self._get_resource(name).ref

    def _get_resource(self, name: str) -> PhysicalResource:
        if name not in self._physical_resources:
            raise InvalidTemplate(f"Template format error: Unresolved resource dependencies [{name}]")
        return self._physical_resources[name]

    def _resolve_get_att(self, argument: str | list[str]) -> Json:
        name, attribute = (
            argument.split(".", 1) if isinstance(argument, str) else (argument[0], self.resolve(argument[1]))
        )
        attributes = self._get_resource(name).attributes
        if attribute not in attributes:
            raise InvalidTemplate(f"Requested attribute {attribute} does not exist in schema for {name}")
        return attributes[attribute]

    def _resolve_find_in_map(self, keys: list[Json]) -> Json:
        mapping = self._template.get("Mappings", {})
        for key in keys:
            mapping = mapping[self.resolve(key)]
        return mapping

    def _resolve_sub(self, argument: str | list[Json]) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        values = {name: _format_text(self.resolve(value)) for name, value in variables.items()}

        def replace_reference(literal: str, name: str) -> str:
            if literal:
                return f"${{{name}}}"
            if name in values:
                return values[name]
            return _format_text(self._resolve_get_att(name) if "." in name else self._resolve_ref(name))

        return REFERENCE_PATTERN.sub(lambda match: replace_reference(match[1], match[2]), text)


def _get_parameter_value(name: str, declaration: Template, parameters: Mapping[str, str]) -> str:
    if name in parameters:
        return parameters[name]
    if "Default" in declaration:
        return _format_text(declaration["Default"])
    raise InvalidTemplate(f"Parameters: [{name}] must have values")


def _convert_parameter(declaration: Template, value: str, read_ssm_parameter: Callable[[str], str]) -> Json:
    if declaration["Type"] in _LIST_TYPES:
        return value.split(",")
    return read_ssm_parameter(value) if declaration["Type"] == _SSM_PARAMETER_TYPE else value


def _format_text(value: Json) -> str:
    """Return *value* as CloudFormation puts it into text.

    >>> _format_text(True), _format_text(["a", "b"])
    ('true', 'a,b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_format_text, value)) if isinstance(value, list) else str(value)
