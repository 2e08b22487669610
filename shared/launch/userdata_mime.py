"""MIME archives, which cloud-init and nodeadm read part by part: the user's parts first, ours last, so that it wins."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from email.message import Message

NODE_CONFIG: Final = "application/node.eks.aws"
SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
_BOUNDARY: Final = "//"
_ARCHIVE: Final = ("MIME-Version:", "Content-Type:")
_IS_NODE_CONFIG: Final = re.compile(
    r"^(?:kind|\"kind\")\s*:\s*[\"']?NodeConfig\b|^apiVersion\s*:\s*[\"']?node\.eks\.aws/", re.MULTILINE
)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of an archive."""

    headers: tuple[tuple[str, str], ...]
    text: str


def part(kind: str, text: str) -> Part:
    """Answer a part of that content type."""
    return Part(headers=(("Content-Type", kind),), text=text)


def archive(parts: Iterable[Part]) -> str:
    """Answer the archive, without carriage returns; its boundary stands in no part."""
    some = tuple(parts)
    boundary = _BOUNDARY
    while any(f"--{boundary}" in one.text for one in some):
        boundary += "/"
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n\n'
    body = "".join(f"--{boundary}\n{_headers(one)}\n{one.text}\n\n" for one in some)
    return (head + body + f"--{boundary}--\n").replace("\r", "")


def custom_parts(text: str, *, reads_node_config: bool) -> tuple[Part, ...]:
    """Answer the parts of the user's own *text*: those of its archive, or one.

    For nodeadm only the content types are kept, with the content decoded; for others all headers are.

    Raises:
        ValueError: it begins like an archive and is none.
    """
    stripped = text.strip()
    if not stripped:
        return ()
    if stripped.startswith(_ARCHIVE):
        return tuple(_parts_of(stripped, is_plain=reads_node_config))
    is_config = reads_node_config and not stripped.startswith("#!") and _IS_NODE_CONFIG.search(stripped) is not None
    return (part(NODE_CONFIG if is_config else SHELL, stripped),)


def is_script(text: str) -> bool:
    """Whether cloud-init will run *text*, if it is not an archive: only what begins with ``#!`` is a script to it."""
    return text.strip().startswith("#!")


def _parts_of(text: str, *, is_plain: bool) -> Iterator[Part]:
    from email.parser import Parser  # noqa: PLC0415 - 20 ms of a cold start that few need

    message = Parser().parsestr(text)
    if not message.is_multipart():
        raise ValueError(
            "spec.userData: begins like a MIME archive but has no parts: write `Content-Type: multipart/mixed; "
            'boundary="B"`, an empty line, and each part after a line `--B`'
        )
    for one in message.walk():
        if not one.is_multipart():
            yield part(str(one.get("Content-Type", "text/plain")), _content(one)) if is_plain else _kept(one)


def _kept(one: "Message") -> Part:
    headers = tuple((name, " ".join(str(value).split())) for name, value in one.items())
    return Part(headers=headers or (("Content-Type", "text/plain"),), text=str(one.get_payload()).rstrip("\n"))


def _content(one: "Message") -> str:
    if str(one.get("Content-Transfer-Encoding", "7bit")).lower() in ("7bit", "8bit", "binary"):
        return str(one.get_payload()).rstrip("\n")
    decoded = one.get_payload(decode=True)
    return decoded.decode(errors="replace").rstrip("\n") if isinstance(decoded, bytes) else ""


def _headers(one: Part) -> str:
    return "".join(f"{name}: {value}\n" for name, value in one.headers)
