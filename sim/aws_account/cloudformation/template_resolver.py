"""Resolves the intrinsic functions and references of a template, when the referenced resources exist."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.aws_account.cloudformation.template_parser import InvalidTemplate, Template
from sim.aws_account.resource_types.resource_provider import PhysicalResource
from sim.lambda_runtime.stack_template.intrinsic_functions import NO_VALUE, IntrinsicFunctions, Json, format_text

_LIST_TYPES: Final = ("CommaDelimitedList", "List<String>")
_SSM_PARAMETER_TYPE: Final = "AWS::SSM::Parameter::Value<String>"


class TemplateResolver(IntrinsicFunctions):
    """Resolves one template with its parameter values."""

    unsupported_error = InvalidTemplate

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
        super().__init__()
        self._intrinsic_functions |= {
            "Condition": self.is_condition_met,
            "Fn::And": lambda node: all(map(self._is_true, node)),
            "Fn::Base64": lambda node: b64encode(str(self.resolve(node)).encode()).decode(),
            "Fn::Equals": lambda node: self.resolve(node[0]) == self.resolve(node[1]),
            "Fn::FindInMap": self._resolve_find_in_map,
            "Fn::GetAZs": lambda node: [
                f"{self.resolve(node) or self._pseudo_parameters['AWS::Region']}{zone_suffix}" for zone_suffix in "abc"
            ],
            "Fn::If": lambda node: self.resolve(node[1 if self.is_condition_met(node[0]) else 2]),
            "Fn::ImportValue": lambda node: self._get_export(self.resolve(node)),
            "Fn::Not": lambda node: not self._is_true(node[0]),
            "Fn::Or": lambda node: any(map(self._is_true, node)),
        }

    def resolve_ref(self, name: str) -> Json:
        """Return the value of a parameter, or the `Ref` of a resource that exists."""
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._pseudo_parameters:
            return self._pseudo_parameters[name]
        if name in self._typed_parameters:
            return self._typed_parameters[name]
        return self._get_resource(name).ref

    def get_attribute(self, logical_id: str, attribute: str) -> Json:
        """Return an attribute of a resource that exists."""
        attributes = self._get_resource(logical_id).attributes
        if attribute not in attributes:
            raise InvalidTemplate(f"Requested attribute {attribute} does not exist in schema for {logical_id}")
        return attributes[attribute]

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
            {"OutputKey": name, "OutputValue": format_text(self.resolve(output["Value"]))}
            | ({"Description": output["Description"]} if "Description" in output else {})
            | ({"ExportName": self.resolve(output["Export"]["Name"])} if "Export" in output else {})
            for name, output in sorted(outputs.items())
            if "Condition" not in output or self.is_condition_met(output["Condition"])
        ]

    def _is_true(self, expression: Json) -> bool:
        return bool(self.resolve(expression))

    def _get_resource(self, name: str) -> PhysicalResource:
        if name not in self._physical_resources:
            raise InvalidTemplate(f"Template format error: Unresolved resource dependencies [{name}]")
        return self._physical_resources[name]

    def _resolve_find_in_map(self, keys: list[Json]) -> Json:
        mapping = self._template.get("Mappings", {})
        for key in keys:
            mapping = mapping[self.resolve(key)]
        return mapping


def _get_parameter_value(name: str, declaration: Template, parameters: Mapping[str, str]) -> str:
    if name in parameters:
        return parameters[name]
    if "Default" in declaration:
        return format_text(declaration["Default"])
    raise InvalidTemplate(f"Parameters: [{name}] must have values")


def _convert_parameter(declaration: Template, value: str, read_ssm_parameter: Callable[[str], str]) -> Json:
    if declaration["Type"] in _LIST_TYPES:
        return value.split(",")
    return read_ssm_parameter(value) if declaration["Type"] == _SSM_PARAMETER_TYPE else value
