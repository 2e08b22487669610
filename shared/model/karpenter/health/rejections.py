"""Texts about images and launch configurations that a canary has rejected."""

from typing import Final

CANARY_REJECTED_REASON: Final = "CanaryRejected"
"""Of the condition, and of the event about a new rejection."""
_IMAGE_PREFIX: Final = "ami-"
_REJECTED_WORDS: Final = " is rejected: "


def is_image(identity: str) -> bool:
    """Return whether *identity* is the id of an image, not the hash of a launch configuration."""
    return identity.startswith(_IMAGE_PREFIX)


def describe_identity(identity: str) -> str:
    """Return *identity* after the name of its kind.

    >>> describe_identity("ami-0a1b2c")
    'image ami-0a1b2c'
    """
    return f"image {identity}" if is_image(identity) else f"launch configuration {identity}"


def describe_rejection(identity: str, because: str) -> str:
    """Return the message about the rejection of *identity*."""
    return f"{describe_identity(identity)}{_REJECTED_WORDS}{because}"


def parse_rejected_identity(message: str) -> str:
    """Return the identity in a message of `describe_rejection`; "" if it is another message.

    >>> parse_rejected_identity(describe_rejection("ami-0a1b2c", "its node is not Ready"))
    'ami-0a1b2c'
    """
    subject, words, _ = message.partition(_REJECTED_WORDS)
    return subject.rpartition(" ")[2] if words else ""
