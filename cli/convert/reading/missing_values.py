"""Placeholders for values that a manifest lacks, and the comments that say what to write instead."""

import re
from typing import Final

NAME: Final = "${OBJECT_NAME}"
NODE_CLASS_NAME: Final = "${EC2NODECLASS_NAME}"
DISCOVERY_TAG: Final = "${DISCOVERY_TAG}"
NODE_ROLE: Final = "${KARPENTER_NODE_ROLE}"
_MEANING_BY_PLACEHOLDER: Final = {
    NAME: "a name for this object",
    NODE_CLASS_NAME: "the name of an EC2NodeClass",
    DISCOVERY_TAG: "the value of the discovery tag, usually the cluster's name",
    NODE_ROLE: "the name of the IAM role of your nodes",
}
_LINE_PATTERN: Final = re.compile(rf"^.*: '?({'|'.join(map(re.escape, _MEANING_BY_PLACEHOLDER))})'?$", re.MULTILINE)


def describe_missing_value(placeholder: str) -> str:
    """Return the message for a field that has *placeholder* instead of a value."""
    return f"set to the placeholder {placeholder}: replace it with {_MEANING_BY_PLACEHOLDER[placeholder]}"


def add_comments(text: str) -> str:
    """Return the YAML document *text* with a comment behind each placeholder.

    >>> add_comments("role: ${KARPENTER_NODE_ROLE}")
    'role: ${KARPENTER_NODE_ROLE}  # replace with the name of the IAM role of your nodes'
    """
    return _LINE_PATTERN.sub(lambda match: f"{match[0]}  # replace with {_MEANING_BY_PLACEHOLDER[match[1]]}", text)
