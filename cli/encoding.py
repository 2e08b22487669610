"""What a command answers to other programs: JSON, or YAML."""

import msgspec


def encoded(some: object, output: str) -> str:
    """Answer *some* as JSON, indented, or as YAML where *output* is ``yaml``."""
    body = msgspec.json.encode(some)
    if output != "yaml":
        return msgspec.json.format(body, indent=1).decode() + "\n"
    import yaml  # noqa: PLC0415 - who has JSON need not wait for YAML

    return str(yaml.safe_dump(msgspec.json.decode(body), sort_keys=False, allow_unicode=True))
