"""The fleet document as JSON, and as text that is safe within an HTML page."""

from datetime import datetime
from typing import Final

import msgspec

from cli.fleet.document.fleet_document import FLEET_FORMAT, FLEET_VERSION, FleetDocument

_HTML_ESCAPES: Final = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")
"""Characters that could end a script element or a line of a script, and their JSON escapes."""
_ENCODER: Final = msgspec.json.Encoder()


class FleetFormatError(ValueError):
    """The document is not a fleet document, or not of this version."""


class _FleetHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a document that every version has."""

    format: str = ""
    version: int = 0


def encode_fleet_document(document: FleetDocument) -> bytes:
    """Return *document* as JSON in one line."""
    return _ENCODER.encode(document)


def escape_for_html(body: bytes) -> str:
    r"""Return the JSON text *body* for a script element: the text cannot end the element.

    >>> escape_for_html(b'"</script>"')
    '"\\u003c/script\\u003e"'
    """
    text = body.decode()
    for character, escape in _HTML_ESCAPES:
        text = text.replace(character, escape)
    return text


def decode_fleet_document(body: bytes) -> FleetDocument:
    """Decode a fleet document; unknown fields are ignored.

    Raises:
        FleetFormatError: *body* is not a fleet document, or has another version; the message names the fix.
    """
    try:
        header = msgspec.json.decode(body, type=_FleetHeader)
    except msgspec.DecodeError as error:
        raise FleetFormatError(f"not a fleet document: {error}") from None
    if header.format != FLEET_FORMAT:
        raise FleetFormatError(f"format {header.format!r}: not a fleet document, which has format {FLEET_FORMAT!r}")
    if header.version != FLEET_VERSION:
        raise FleetFormatError(
            f"version {header.version} is not supported: this version of Joiner reads version {FLEET_VERSION}; write "
            "the document again with the same version of Joiner"
        )
    try:
        return msgspec.json.decode(body, type=FleetDocument)
    except msgspec.DecodeError as error:
        raise FleetFormatError(f"not a fleet document: {error}") from None


def convert_to_milliseconds(instant: datetime) -> int:
    """Return *instant* as milliseconds since the Unix epoch.

    >>> from datetime import UTC
    >>> convert_to_milliseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    return round(instant.timestamp() * 1000)
