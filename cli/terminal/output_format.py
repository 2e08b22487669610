"""The machine-readable output of commands: JSON or YAML."""

from typing import Any, Final

import msgspec

API_VERSION: Final = "joiner/v1"


def encode_output(value: object, output: str) -> str:
    """Return *value* as indented JSON, or as YAML if *output* is ``yaml``, with Joiner's ``apiVersion``.

    A list has no place for ``apiVersion``: its items carry it.
    """
    document = msgspec.to_builtins(value)
    document = (
        [_add_api_version(item) for item in document] if isinstance(document, list) else _add_api_version(document)
    )
    if output != "yaml":
        return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"
    import yaml  # noqa: PLC0415 - JSON needs no YAML library

    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _add_api_version(document: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION} | document
