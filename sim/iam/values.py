"""Requests, and the patterns and variables that a policy describes them with.

Names of condition keys do not mind case, those of tags within them neither; values do.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

Values = tuple[str, ...]
"""Of one condition key; most keys have one."""
Context = Mapping[str, Values]
"""Condition keys, in small letters; a key that is missing is not there at all."""

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_DEFAULTED: Final = re.compile(r"([^,]+?)\s*,\s*'([^']*)'")
_LITERAL: Final = frozenset("*?$")
"""``${*}`` is a star and no wildcard."""


class UnsupportedPolicyError(Exception):
    """A policy says something that is not evaluated here: a guess would be no proof."""


class MissingValueError(Exception):
    """A variable has no value in this request: what names it matches nothing."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One action on one resource; a call that touches several is several requests, all of which must be allowed."""

    action: str
    """As ``ec2:RunInstances``."""
    resource: str = "*"
    """Its ARN; ``*`` where the call knows no resources. What is yet to be made has ``*`` for a name."""
    context: Context = {}
    principal: str = "*"
    """ARN of who asks, or a service as ``events.amazonaws.com``; only resource policies look at it."""


def context(values: Mapping[str, str | Iterable[str]]) -> dict[str, Values]:
    """Answer *values* as a request has them.

    >>> context({"aws:TagKeys": ["a", "b"], "aws:RequestedRegion": "us-east-1"})
    {'aws:tagkeys': ('a', 'b'), 'aws:requestedregion': ('us-east-1',)}
    """
    return {key.lower(): (one,) if isinstance(one, str) else tuple(one) for key, one in values.items()}


def matches(pattern: str, text: str, known: Context | None = None, *, is_caseless: bool = False) -> bool:
    """Whether *text* is what *pattern* describes: ``*`` is anything, ``?`` one character, ``${key}`` what *known* has.

    What a variable stands for is taken literally: a star in it is a star. Without *known* there are no variables, and
    only then case may not matter.

    >>> matches("ec2:Describe*", "ec2:DescribeSubnets"), matches("a?c", "ac")
    (True, False)

    Raises:
        MissingValueError: a variable has no value, or several.
    """
    if known is None or "${" not in pattern:
        return _compiled(pattern, is_caseless=is_caseless).fullmatch(text) is not None
    return re.fullmatch(_expression(pattern, known), text, re.DOTALL) is not None


def filled(text: str, known: Context) -> str:
    """Answer *text* with its variables replaced; wildcards stay what they are.

    Raises:
        MissingValueError: a variable has no value, or several.
    """
    return VARIABLE.sub(lambda found: _value(found[1], known), text)


@lru_cache(maxsize=4096)
def _compiled(pattern: str, *, is_caseless: bool) -> re.Pattern[str]:
    return re.compile(_wild(pattern), re.DOTALL | (re.IGNORECASE if is_caseless else 0))


def _expression(pattern: str, known: Context) -> str:
    parts, end = [], 0
    for found in VARIABLE.finditer(pattern):
        parts += [_wild(pattern[end : found.start()]), re.escape(_value(found[1], known))]
        end = found.end()
    return "".join((*parts, _wild(pattern[end:])))


def _wild(text: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(one) or re.escape(one) for one in text)


def _value(variable: str, known: Context) -> str:
    if variable in _LITERAL:
        return variable
    defaulted = _DEFAULTED.fullmatch(variable)
    name, *default = defaulted.groups() if defaulted else (variable,)
    values = known.get(name.strip().lower(), ())
    if len(values) == 1:
        return values[0]
    if default and not values:
        return str(default[0])
    raise MissingValueError(f"${{{variable}}} has {len(values)} values")
