"""Parsing of option values: context values as text, lists, tags, and suggestions for misspelled option names."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from shared.settings_text import split_list

TAG_KEY_PATTERN: Final = re.compile(r"[\w .:/+@-]{1,128}")
TAG_VALUE_PATTERN: Final = re.compile(r"[\w .:/=+@-]{0,256}")
RESERVED_KEY_PATTERN: Final = re.compile(r"(aws|eks):|(.*\.)?(k8s|kubernetes)\.io/|karpenter\.|joiner\.dev/")
"""Tag keys that permissions, EKS and AWS depend on."""
RENAMED_OPTIONS: Final = {"hints": "pod-nominations"}
"""Names of earlier versions, with today's names."""


def parse_stack_tags(text: str) -> dict[str, str]:
    """Parse tags from command-line text.

    >>> parse_stack_tags("team=platform, cost-centre=42")
    {'team': 'platform', 'cost-centre': '42'}

    Raises:
        ValueError: an item is not a tag, or its key is reserved.
    """
    tags: dict[str, str] = {}
    for item in split_list(text):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not TAG_KEY_PATTERN.fullmatch(key) or not TAG_VALUE_PATTERN.fullmatch(value):
            raise ValueError(f"{item!r} is not a tag: use KEY=VALUE,KEY=VALUE")
        if RESERVED_KEY_PATTERN.match(key):
            raise ValueError(f"{key!r} is reserved: AWS, EKS and the permissions of functions depend on such keys")
        tags[key] = value
    return tags


def check_option_names(keys: Iterable[str], option_keys: Iterable[str]) -> None:
    """Check that every `joiner:` key in *keys* is an option.

    Raises:
        ValueError: the message suggests the option that was probably meant.
    """
    names = [key.removeprefix("joiner:") for key in option_keys]
    for key in sorted(keys):
        name = key.removeprefix("joiner:")
        if name != key and name not in names:
            suggestions = [RENAMED_OPTIONS[name]] if name in RENAMED_OPTIONS else get_close_matches(name, names, 1)
            advice = f"did you mean joiner:{suggestions[0]}?" if suggestions else "cdk.json lists all settings"
            raise ValueError(f"{key} is not a setting: {advice}")
