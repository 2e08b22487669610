"""What a selector term matches, as EC2's filters have it: `*` and `?` are wildcards, so a value of `*` is any."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from shared.model.ec2 import Tags


def has_tags(have: Mapping[str, str], wanted: Tags) -> bool:
    """Say whether every wanted tag is there; an empty *wanted* asks for nothing and gets nothing."""
    return bool(wanted) and all(key in have and matches(have[key], pattern) for key, pattern in wanted)


def matches(text: str, pattern: str) -> bool:
    """Say whether the whole *text* fits *pattern*; a backslash takes a wildcard literally."""
    return _compiled(pattern).fullmatch(text) is not None


def sorted_tags(tags: Mapping[str, str] | Iterable[tuple[str, str]]) -> Tags:
    """Answer *tags* as the model has them, the last of equal keys."""
    return tuple(sorted(dict(tags).items()))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    wildcards = {"*": ".*", "?": "."}
    return re.compile("".join(wildcards.get(piece) or re.escape(piece[-1]) for piece in pieces), re.DOTALL)
