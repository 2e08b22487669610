"""Objects -> YAML that every reader of YAML takes the same way: 1.1, 1.2 and what is in kubectl."""

import re
from typing import Any, Final

import yaml

_ELSEWHERE_NO_TEXT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0[xXoObB][0-9a-fA-F_]+|[yYnN]|[0-9]+(?::[0-9]+)+"
)
"""What some readers take for a number or a truth value, though YAML 1.1 does not."""
_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):
    """The safe dumper, with quotes where in doubt, and texts of several lines as they are read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _ELSEWHERE_NO_TEXT.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)
_Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign] # an anchor helps no reader


def written(value: Any) -> str:  # noqa: ANN401 - JSON
    r"""Write *value* as one document of YAML.

    >>> print(written({"owner": "099720109477", "spot": "y", "cpu": 4, "userData": "a\nb\n"}), end="")
    owner: '099720109477'
    spot: 'y'
    cpu: 4
    userData: |
      a
      b
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
