"""IAM requests, and the patterns and policy variables with which policies match them.

Names of condition keys ignore case, including the tag names in them; values are case-sensitive.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

Values = tuple[str, ...]
"""The values of one condition key; most keys have one value."""
RequestContext = Mapping[str, Values]
"""The values by condition key in lowercase; a missing key is absent."""

VARIABLE_PATTERN: Final = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_WITH_DEFAULT_PATTERN: Final = re.compile(r"([^,]+?)\s*,\s*'([^']*)'")
_LITERAL_VARIABLES: Final = frozenset("*?$")
"""``${*}`` is a star, not a wildcard."""


class UnsupportedPolicyError(Exception):
    """A policy uses a feature that is not evaluated here; a guess would prove nothing."""


class MissingValueError(Exception):
    """A policy variable has no value in this request: the statement does not match."""


class IamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One action on one resource; a call on several resources has several requests, all of which must be allowed."""

    action: str
    """The action, as ``ec2:RunInstances``."""
    resource: str = "*"
    """The ARN; ``*`` if the call has no resource-level permissions. A resource to be created has ``*`` as its name."""
    context: RequestContext = {}
    principal: str = "*"
    """The ARN of the caller, or a service as ``events.amazonaws.com``; only resource policies use it."""
    is_found: bool = True
    """Whether EC2 finds the resource; otherwise *context* lacks its tags, and a denial proves nothing."""


def build_context(values: Mapping[str, str | Iterable[str]]) -> dict[str, Values]:
    """Return *values* as a request context.

    >>> build_context({"aws:TagKeys": ["a", "b"], "aws:RequestedRegion": "us-east-1"})
    {'aws:tagkeys': ('a', 'b'), 'aws:requestedregion': ('us-east-1',)}
    """
    return {key.lower(): (value,) if isinstance(value, str) else tuple(value) for key, value in values.items()}


def is_match(pattern: str, text: str, context: RequestContext | None = None, *, ignore_case: bool = False) -> bool:
    """Return whether *text* matches *pattern*.

    In a pattern, ``*`` is any text, ``?`` is one character and ``${key}`` is the value of the key in *context*. Values
    of variables are literal: a star in a value is a star. Without *context* there are no variables, and only then case
    can be ignored.

    >>> is_match("ec2:Describe*", "ec2:DescribeSubnets"), is_match("a?c", "ac")
    (True, False)

    Raises:
        MissingValueError: a variable has no value, or several.
    """
    if context is None or "${" not in pattern:
        return _compile_pattern(pattern, ignore_case=ignore_case).fullmatch(text) is not None
    return re.fullmatch(_build_regex(pattern, context), text, re.DOTALL) is not None


def replace_variables(text: str, context: RequestContext) -> str:
    """Return *text* with its variables replaced; wildcards stay.

    Raises:
        MissingValueError: a variable has no value, or several.
    """
    return VARIABLE_PATTERN.sub(lambda variable_match: _get_variable_value(variable_match[1], context), text)


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(_convert_wildcards(pattern), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _build_regex(pattern: str, context: RequestContext) -> str:
    parts, end = [], 0
    for variable_match in VARIABLE_PATTERN.finditer(pattern):
        parts += [
            _convert_wildcards(pattern[end : variable_match.start()]),
            re.escape(_get_variable_value(variable_match[1], context)),
        ]
        end = variable_match.end()
    return "".join((*parts, _convert_wildcards(pattern[end:])))


def _convert_wildcards(text: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(character) or re.escape(character) for character in text)


def _get_variable_value(variable: str, context: RequestContext) -> str:
    if variable in _LITERAL_VARIABLES:
        return variable
    default_match = _VARIABLE_WITH_DEFAULT_PATTERN.fullmatch(variable)
    name, *default = default_match.groups() if default_match else (variable,)
    values = context.get(name.strip().lower(), ())
    if len(values) == 1:
        return values[0]
    if default and not values:
        return str(default[0])
    raise MissingValueError(f"${{{variable}}} has {len(values)} values")
