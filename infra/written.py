"""How knobs are written, as text whatever a context has; lists and tags; and which knob somebody meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

TAG_KEY: Final = re.compile(r"[\w .:/+@-]{1,128}")
TAG_VALUE: Final = re.compile(r"[\w .:/=+@-]{0,256}")
RESERVED: Final = re.compile(r"(aws|eks):|(.*\.)?(k8s|kubernetes)\.io/|karpenter\.|joiner\.dev/")
"""What rights, EKS and AWS go by."""


def listed(value: str) -> list[str]:
    """Answer the items of a comma-separated *value*.

    >>> listed("a, b,"), listed("")
    (['a', 'b'], [])
    """
    return [item.strip() for item in value.split(",") if item.strip()]


def as_text(value: object) -> object:
    """Answer a number, a truth or a list of words as a command line has it; everything else as it is.

    >>> as_text(True), as_text(500), as_text(["a", "b"]), as_text("a")
    ('true', '500', 'a,b', 'a')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return str(value) if isinstance(value, int | float) else value


def tags_from(text: str) -> dict[str, str]:
    """Answer tags that are written as a command line has them.

    >>> tags_from("team=platform, cost-centre=42")
    {'team': 'platform', 'cost-centre': '42'}

    Raises:
        ValueError: one is none, or is not for people to choose.
    """
    tags: dict[str, str] = {}
    for item in listed(text):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not TAG_KEY.fullmatch(key) or not TAG_VALUE.fullmatch(value):
            raise ValueError(f"joiner:tags has {item!r}: want KEY=VALUE,KEY=VALUE")
        if RESERVED.match(key):
            raise ValueError(f"joiner:tags has {key!r}: AWS, EKS and the rights of functions go by such keys")
        tags[key] = value
    return tags


def check_names(keys: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a context that has a knob which there is not.

    Raises:
        ValueError: the message says which is meant, if that can be guessed.
    """
    names = list(known)
    for key in sorted(keys):
        prefix, _, name = key.partition("joiner:")
        if name and not prefix and name not in names:
            meant = get_close_matches(name, names, 1)
            said = f"did you mean joiner:{meant[0]}?" if meant else "cdk.json has them all"
            raise ValueError(f"{key} is no knob: {said}")
