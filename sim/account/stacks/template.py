"""Templates as they are written: JSON, or YAML with the short forms of functions."""

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, TypeAlias, cast

import yaml

Json: TypeAlias = Any
"""Whatever a document may hold."""
Template: TypeAlias = Mapping[str, Json]

REFERENCE: Final = re.compile(r"\$\{(!?)([^}]+)\}")
_SHORT: Final = ("Ref", "Condition")


class InvalidTemplate(Exception):
    """CloudFormation would not take it, or it says what is not understood here; the message says where."""


class _Loader(yaml.SafeLoader):
    """Reads dates as text, and ``!Sub`` as ``Fn::Sub``."""


def _short_form(loader: _Loader, tag: str, node: yaml.Node) -> Json:
    name = tag if tag in _SHORT else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        value: Json = loader.construct_scalar(node)
        return {name: value.split(".", 1) if tag == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    # Neither one thing nor a list: the only node that is left is a mapping.
    return {name: loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)}


_Loader.add_multi_constructor("!", _short_form)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in some if tag != "tag:yaml.org,2002:timestamp"]
    for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_template(text: str) -> Template:
    """Read *text*.

    Raises:
        InvalidTemplate: it is no template.
    """
    try:
        # A safe loader, with the short forms besides.
        found = yaml.load(text, _Loader)  # noqa: S506
    except yaml.YAMLError as error:
        raise InvalidTemplate(f"Template format error: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("Resources"), dict) or not found["Resources"]:
        raise InvalidTemplate("Template format error: At least one Resources member must be defined.")
    return found


def references(value: Json) -> frozenset[str]:
    """Answer the names that *value* refers to, resources' and others'.

    >>> sorted(references({"Fn::Sub": "${Queue.Arn}/${!not}/${AWS::Region}"}))
    ['AWS::Region', 'Queue']
    """
    if isinstance(value, list):
        return frozenset().union(*map(references, value))
    if not isinstance(value, Mapping):
        return frozenset()
    if len(value) == 1:
        [(key, said)] = value.items()
        if key == "Ref":
            return frozenset({said})
        if key == "Fn::GetAtt":
            return frozenset({said.split(".", 1)[0] if isinstance(said, str) else said[0]})
        if key == "Fn::Sub":
            text, given = (said, {}) if isinstance(said, str) else said
            named = {found[2].split(".", 1)[0] for found in REFERENCE.finditer(text) if not found[1]}
            return frozenset(named - given.keys()) | references(list(given.values()))
    return frozenset().union(*map(references, value.values()))


def needs(definition: Template) -> frozenset[str]:
    """Answer the names that a resource waits for; some may be no resources."""
    said = definition.get("DependsOn", ())
    awaited = {said} if isinstance(said, str) else set(said)
    return references(definition.get("Properties", {})) | references(definition.get("UpdatePolicy", {})) | awaited


def sorter_of(resources: Mapping[str, Iterable[str]]) -> TopologicalSorter[str]:
    """Answer who tells which of *resources* is ready, as soon as all that it needs is done.

    Raises:
        InvalidTemplate: some need each other.
    """
    sorter = TopologicalSorter({name: sorted(set(some) & resources.keys()) for name, some in sorted(resources.items())})
    try:
        sorter.prepare()
    except CycleError as error:
        names = ", ".join(error.args[1][:-1])
        raise InvalidTemplate(f"Circular dependency between resources: [{names}]") from error
    return sorter


def ordered(resources: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Answer the names of *resources*, each after all that it needs, by name where nothing else says.

    Raises:
        InvalidTemplate: some need each other.
    """
    sorter = sorter_of(resources)
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += ready
        sorter.done(*ready)
    return tuple(found)
