"""Parses CloudFormation templates: JSON, or YAML with the short forms of intrinsic functions."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias, cast

import yaml

from sim.lambda_runtime.stack_template.intrinsic_functions import REFERENCE_PATTERN, Json

Template: TypeAlias = Mapping[str, Json]

_FUNCTIONS_WITHOUT_PREFIX: Final = ("Ref", "Condition")


class InvalidTemplate(Exception):
    """CloudFormation would reject the template, or it uses an unsupported feature; the message says where."""


class _Loader(yaml.SafeLoader):
    """A loader that reads dates as text, and ``!Sub`` as ``Fn::Sub``."""


def _construct_short_form(loader: _Loader, tag: str, node: yaml.Node) -> Json:
    name = tag if tag in _FUNCTIONS_WITHOUT_PREFIX else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        value: Json = loader.construct_scalar(node)
        return {name: value.split(".", 1) if tag == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    # Neither scalar nor sequence: the remaining node type is a mapping.
    return {name: loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)}


_Loader.add_multi_constructor("!", _construct_short_form)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_template(text: str) -> Template:
    """Parse *text*.

    Raises:
        InvalidTemplate: it is not a template.
    """
    try:
        # A safe loader that also knows the short forms.
        template = yaml.load(text, _Loader)  # noqa: S506
    except yaml.YAMLError as error:
        raise InvalidTemplate(f"Template format error: {error}") from error
    if not isinstance(template, dict) or not isinstance(template.get("Resources"), dict) or not template["Resources"]:
        raise InvalidTemplate("Template format error: At least one Resources member must be defined.")
    return template


def find_references(value: Json) -> frozenset[str]:
    """Return the names of the resources, parameters and pseudo parameters to which *value* refers.

    >>> sorted(find_references({"Fn::Sub": "${Queue.Arn}/${!not}/${AWS::Region}"}))
    ['AWS::Region', 'Queue']
    """
    if isinstance(value, list):
        return frozenset().union(*map(find_references, value))
    if not isinstance(value, Mapping):
        return frozenset()
    if len(value) == 1:
        [(key, argument)] = value.items()
        if key == "Ref":
            return frozenset({argument})
        if key == "Fn::GetAtt":
            return frozenset({argument.split(".", 1)[0] if isinstance(argument, str) else argument[0]})
        if key == "Fn::Sub":
            text, variables = (argument, {}) if isinstance(argument, str) else argument
            names = {match[2].split(".", 1)[0] for match in REFERENCE_PATTERN.finditer(text) if not match[1]}
            return frozenset(names - variables.keys()) | find_references(list(variables.values()))
    return frozenset().union(*map(find_references, value.values()))


def find_dependencies(definition: Template) -> frozenset[str]:
    """Return the names on which a resource depends; these can be names of parameters too."""
    depends_on = definition.get("DependsOn", ())
    explicit_names = {depends_on} if isinstance(depends_on, str) else set(depends_on)
    return (
        find_references(definition.get("Properties", {}))
        | find_references(definition.get("UpdatePolicy", {}))
        | explicit_names
    )


def build_sorter(dependencies_by_name: Mapping[str, Iterable[str]]) -> TopologicalSorter[str]:
    """Return a prepared topological sorter of *dependencies_by_name*; other names than its keys are ignored.

    Raises:
        InvalidTemplate: the dependencies have a cycle.
    """
    sorter = TopologicalSorter(
        {
            name: sorted(set(dependencies) & dependencies_by_name.keys())
            for name, dependencies in sorted(dependencies_by_name.items())
        }
    )
    try:
        sorter.prepare()
    except CycleError as error:
        names = ", ".join(error.args[1][:-1])
        raise InvalidTemplate(f"Circular dependency between resources: [{names}]") from error
    return sorter


def sort_by_dependency(dependencies_by_name: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the keys of *dependencies_by_name*, each after its dependencies, ties by name.

    Raises:
        InvalidTemplate: the dependencies have a cycle.
    """
    sorter = build_sorter(dependencies_by_name)
    names: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        names += ready
        sorter.done(*ready)
    return tuple(names)
