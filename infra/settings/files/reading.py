"""Reading of a settings file: YAML with a line number for each setting.

Scalars keep the text of the file, because the declaration of a setting has its type. YAML alone would read `on` as true
and the account `012345678901` as a number.
"""

import re
import sys
from typing import Final

import msgspec
import yaml

from infra.settings.errors import InvalidSettingsError
from infra.settings.load import encode_values, load_options
from infra.settings.settings import StackOptions

TYPED_SETTINGS: Final = ("scheduler-config",)
"""Settings in the format of another program, which has numbers and booleans of its own."""
_NULL_TAG: Final = "tag:yaml.org,2002:null"
_BOOLEAN_TAG: Final = "tag:yaml.org,2002:bool"


class SettingNode(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in a file."""

    value: object
    line: int
    """Line of its name, counted from 1."""
    start: int
    end: int
    """Range of its name and value in the text, without the comment behind it."""


def read_nodes(text: str) -> dict[str, SettingNode]:
    """Return the settings in the YAML document *text*, by name, in the order of the document.

    Raises:
        InvalidSettingsError: *text* is not a map in YAML, names a setting twice, or has a setting without a value; the
            messages have the lines.
    """
    errors: list[str] = []
    nodes = _read_valid_nodes(text, errors)
    if errors:
        raise InvalidSettingsError(errors)
    return nodes


def parse_settings(text: str, cluster: str) -> StackOptions:
    """Return the settings in the YAML document *text*; *cluster* is the name of the cluster, unless *text* has one.

    Raises:
        InvalidSettingsError: *text* cannot be parsed, or settings are unknown or invalid; the messages have the lines.
    """
    errors: list[str] = []
    nodes = _read_valid_nodes(text, errors)

    def locate(name: str) -> str:
        return f"line {nodes[name].line}: {name}" if name in nodes else name

    values = {name: node.value for name, node in nodes.items()}
    values["cluster"] = values.get("cluster") or cluster
    try:
        if not errors:
            return load_options(values, locate)
        errors.extend(encode_values(values, locate)[1])
    except InvalidSettingsError as error:
        errors.extend(error.errors)
    raise InvalidSettingsError(sorted(errors, key=_get_line))


def _get_line(message: str) -> int:
    """Return the line in *message*; messages about several settings have none and come last."""
    match = re.match(r"line ([0-9]+):", message)
    return int(match.group(1)) if match is not None else sys.maxsize


def _read_valid_nodes(text: str, errors: list[str]) -> dict[str, SettingNode]:
    """Return the settings in *text* that can be read; the others add to *errors*."""
    nodes: dict[str, SettingNode] = {}
    for key_node, value_node in _parse_map(text, errors):
        try:
            key, line = _read_key(key_node), key_node.start_mark.line + 1
            if key in nodes:
                message = f"line {line}: {key} is set twice, first in line {nodes[key].line}: remove one of them"
                raise ValueError(message)  # noqa: TRY301 - collected like the other errors
            is_typed = key in TYPED_SETTINGS and not isinstance(value_node, yaml.ScalarNode)
            value = _construct_value(value_node) if is_typed else _read_value(value_node, f"line {line}: {key}")
        except ValueError as error:
            errors.append(str(error))
            continue
        start = key_node.start_mark.index
        length = len(text[start : _find_end(value_node)].rstrip())
        nodes[key] = SettingNode(value=value, line=line, start=start, end=start + length)
    return nodes


def _parse_map(text: str, errors: list[str]) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return the keys and values of *text*; if it is not a map in YAML, that is an error."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        errors.append(f"line {line}: is not YAML: {error.problem}")
        return []
    except yaml.YAMLError as error:
        errors.append(f"is not YAML: {error}")
        return []
    if root is None or root.tag == _NULL_TAG:
        return []
    if not isinstance(root, yaml.MappingNode):
        errors.append("is not a map: write each setting on a line of its own, like `mode: active`")
        return []
    items: list[tuple[yaml.Node, yaml.Node]] = root.value
    return items


def _read_key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"line {node.start_mark.line + 1}: a name is missing before the value")  # noqa: TRY004 - the file is what is wrong
    return str(node.value)


def _read_value(node: yaml.Node, name: str) -> object:
    """Return the text of a scalar, or a list or map of texts."""
    if isinstance(node, yaml.SequenceNode):
        return [_read_value(item, f"{name}[{number}]") for number, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = _read_key(key_node)
            if key in values:
                raise ValueError(f"{name}: {key} is there twice: remove one of them")
            values[key] = _read_value(value_node, f"{name}.{key}")
        return values
    text = str(node.value)
    if node.tag == _NULL_TAG:
        raise ValueError(f"{name} has no value: write one, or remove the line to get the default")
    return text.lower() if node.tag == _BOOLEAN_TAG and text.lower() in ("true", "false") else text


def _construct_value(node: yaml.Node) -> object:
    loader = yaml.SafeLoader("")
    try:
        value: object = loader.construct_document(node)
    finally:
        loader.dispose()
    return value


def _find_end(node: yaml.Node) -> int:
    """Return the end of a value; for a block, that of its last scalar: the block's own end includes comments below."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        children: list[yaml.Node] = [
            child for item in node.value for child in (item if isinstance(item, tuple) else (item,))
        ]
        return max((_find_end(child) for child in children), default=int(node.end_mark.index))
    return int(node.end_mark.index)
