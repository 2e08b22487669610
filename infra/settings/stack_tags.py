"""Parsing of the tags of a stack."""

import re
from typing import Final

from shared.settings_text import split_list

TAG_KEY_PATTERN: Final = re.compile(r"[\w .:/+@-]{1,128}")
TAG_VALUE_PATTERN: Final = re.compile(r"[\w .:/=+@-]{0,256}")
RESERVED_KEY_PATTERN: Final = re.compile(r"(aws|eks):|(.*\.)?(k8s|kubernetes)\.io/|karpenter\.|joiner\.dev/")
"""Tag keys that permissions, EKS and AWS depend on."""


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
