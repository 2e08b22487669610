"""MIME archives, which cloud-init and nodeadm read part by part.

The parts of the user come first and the part of Joiner last, so that it takes precedence.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from email.message import Message

NODE_CONFIG_TYPE: Final = "application/node.eks.aws"
SHELL_SCRIPT_TYPE: Final = 'text/x-shellscript; charset="us-ascii"'
_DEFAULT_BOUNDARY: Final = "//"
_ARCHIVE_PREFIXES: Final = ("MIME-Version:", "Content-Type:")
_NODE_CONFIG_PATTERN: Final = re.compile(
    r"^(?:kind|\"kind\")\s*:\s*[\"']?NodeConfig\b|^apiVersion\s*:\s*[\"']?node\.eks\.aws/", re.MULTILINE
)


class MimePart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a MIME archive."""

    headers: tuple[tuple[str, str], ...]
    text: str


def build_part(content_type: str, text: str) -> MimePart:
    """Build a part with *content_type*."""
    return MimePart(headers=(("Content-Type", content_type),), text=text)


def format_archive(parts: Iterable[MimePart]) -> str:
    """Format the archive, without carriage returns; its boundary occurs in no part."""
    part_list = tuple(parts)
    boundary = _DEFAULT_BOUNDARY
    while any(f"--{boundary}" in part.text for part in part_list):
        boundary += "/"
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n\n'
    body = "".join(f"--{boundary}\n{_format_headers(part)}\n{part.text}\n\n" for part in part_list)
    return (head + body + f"--{boundary}--\n").replace("\r", "")


def parse_user_parts(text: str, *, reads_node_config: bool) -> tuple[MimePart, ...]:
    """Return the parts of the user's own *text*: those of its archive, or a single part.

    For nodeadm only the content types are kept, with the content decoded; for others all headers are kept.

    Raises:
        ValueError: *text* begins like an archive but has no parts.
    """
    stripped = text.strip()
    if not stripped:
        return ()
    if stripped.startswith(_ARCHIVE_PREFIXES):
        return tuple(_parse_archive(stripped, is_decoded=reads_node_config))
    is_config = (
        reads_node_config and not stripped.startswith("#!") and _NODE_CONFIG_PATTERN.search(stripped) is not None
    )
    return (build_part(NODE_CONFIG_TYPE if is_config else SHELL_SCRIPT_TYPE, stripped),)


def is_script(text: str) -> bool:
    """Return whether cloud-init runs *text*, if it is no archive: only text that begins with ``#!`` is a script."""
    return text.strip().startswith("#!")


def _parse_archive(text: str, *, is_decoded: bool) -> Iterator[MimePart]:
    from email.parser import Parser  # noqa: PLC0415 - 20 ms of a cold start that few need

    message = Parser().parsestr(text)
    if not message.is_multipart():
        raise ValueError(
            "spec.userData: begins like a MIME archive but has no parts: write `Content-Type: multipart/mixed; "
            'boundary="B"`, an empty line, and each part after a line `--B`'
        )
    for message_part in message.walk():
        if not message_part.is_multipart():
            yield (
                build_part(str(message_part.get("Content-Type", "text/plain")), _decode_content(message_part))
                if is_decoded
                else _convert_part(message_part)
            )


def _convert_part(message_part: "Message") -> MimePart:
    headers = tuple((name, " ".join(str(value).split())) for name, value in message_part.items())
    return MimePart(
        headers=headers or (("Content-Type", "text/plain"),), text=str(message_part.get_payload()).rstrip("\n")
    )


def _decode_content(message_part: "Message") -> str:
    if str(message_part.get("Content-Transfer-Encoding", "7bit")).lower() in ("7bit", "8bit", "binary"):
        return str(message_part.get_payload()).rstrip("\n")
    decoded = message_part.get_payload(decode=True)
    return decoded.decode(errors="replace").rstrip("\n") if isinstance(decoded, bytes) else ""


def _format_headers(part: MimePart) -> str:
    return "".join(f"{name}: {value}\n" for name, value in part.headers)
