"""Writing of a settings file: a commented file with all defaults, and changes that keep everything else."""

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Final

import msgspec

from infra.settings.descriptions import read_descriptions
from infra.settings.files.reading import read_nodes
from infra.settings.settings import StackOptions, format_setting_name, list_options
from shared.settings_text import describe_allowed, encode_text

LINE_WIDTH: Final = 120
HEADER: Final = """\
# Settings of one cluster: this file's name without .yaml is the name of the EKS cluster.
# Each setting is shown with its default. To change a setting, remove the # before its name, and deploy:
#
#   npx cdk deploy -c cluster=NAME
#
# Lists and maps can be written as in YAML, or as text: [a, b] or a,b; {team: platform} or team=platform.
"""


def render_settings_file() -> str:
    """Return the text of a settings file: all settings as comments, with description and default."""
    descriptions, defaults = read_descriptions(StackOptions), msgspec.structs.asdict(StackOptions())
    paragraphs = [HEADER]
    for field in list_options():
        allowed = describe_allowed(field.type)
        comment = f"{descriptions[field.name]} Allowed: {allowed}." if allowed else descriptions[field.name]
        lines = textwrap.wrap(comment, LINE_WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        name = format_setting_name(field.name)
        paragraphs.append("\n".join([*lines, f"# {name}: {render_value(name, defaults[field.name])}"]) + "\n")
    return "\n".join(paragraphs)


def change_settings(text: str, values: Mapping[str, object]) -> str:
    """Return the settings file *text* with *values* by setting; other settings and comments stay as they are.

    Raises:
        ValueError: *text* cannot be parsed.
    """
    for name, value in values.items():
        line = f"{name}: {render_value(name, value)}"
        node = read_nodes(text).get(name)
        if node is not None:
            text = text[: node.start] + line + text[node.end :]
            continue
        commented = re.search(rf"^# ?{re.escape(name)}:.*$", text, re.MULTILINE)
        if commented:
            text = text[: commented.start()] + line + text[commented.end() :]
        else:
            text = f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
    return text


def render_value(name: str, value: object) -> str:
    """Return *value* in YAML, without quotes if these are not necessary.

    >>> render_value("log-days", 7), render_value("region", ""), render_value("tags", {"team": "platform"})
    ('7', '""', '{"team": "platform"}')
    """
    if isinstance(value, tuple | list | dict):
        return json.dumps(value, ensure_ascii=False)
    text = encode_text(value)
    try:
        is_plain = read_nodes(f"{name}: {text}")[name].value == text
    except (KeyError, ValueError):
        is_plain = False
    return text if is_plain else json.dumps(text, ensure_ascii=False)
