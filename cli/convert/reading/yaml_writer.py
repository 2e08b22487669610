"""YAML output that all YAML parsers read the same way: YAML 1.1, 1.2 and kubectl's."""

import re
from typing import Any, Final

import yaml

_AMBIGUOUS_SCALAR_PATTERN: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0[xXoObB][0-9a-fA-F_]+|[yYnN]|[0-9]+(?::[0-9]+)+"
)
"""Texts that some parsers read as a number or a boolean, although YAML 1.1 does not."""
_LINE_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):
    """The safe dumper, with quotes around ambiguous texts and block style for multi-line texts."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS_SCALAR_PATTERN.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)
_Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign] # an anchor helps no reader


def format_yaml(value: Any) -> str:  # noqa: ANN401 - JSON
    r"""Return *value* as one YAML document.

    >>> print(format_yaml({"owner": "099720109477", "spot": "y", "cpu": 4, "userData": "a\nb\n"}), end="")
    owner: '099720109477'
    spot: 'y'
    cpu: 4
    userData: |
      a
      b
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH)
