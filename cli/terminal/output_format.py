"""The machine-readable output of commands: JSON or YAML."""

import msgspec


def encode_output(value: object, output: str) -> str:
    """Return *value* as indented JSON, or as YAML if *output* is ``yaml``."""
    body = msgspec.json.encode(value)
    if output != "yaml":
        return msgspec.json.format(body, indent=1).decode() + "\n"
    import yaml  # noqa: PLC0415 - who has JSON need not wait for YAML

    return str(yaml.safe_dump(msgspec.json.decode(body), sort_keys=False, allow_unicode=True))
