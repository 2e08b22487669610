"""Conversion of a controller's log level to the stack setting for the functions' log level."""

import json
from typing import Final

LOG_LEVEL_SETTING: Final = "log-level"
_LEVEL_BY_ZAP_LEVEL: Final = {
    "debug": "DEBUG",
    "info": "INFO",
    "warn": "WARNING",
    "warning": "WARNING",
} | dict.fromkeys(("error", "dpanic", "panic", "fatal"), "ERROR")


def parse_zap_level(text: str) -> str:
    """Return the setting's value for a log level of zap; "" for an unknown level.

    >>> parse_zap_level("debug"), parse_zap_level("Warn"), parse_zap_level("loud")
    ('DEBUG', 'WARNING', '')
    """
    return _LEVEL_BY_ZAP_LEVEL.get(text.strip().lower(), "")


def parse_zap_config(config: str) -> str:
    """Return the setting's value for a zap configuration in JSON; "" if it has no known level.

    >>> parse_zap_config('{"level": "debug", "encoding": "console"}'), parse_zap_config("{"), parse_zap_config("[]")
    ('DEBUG', '', '')
    """
    try:
        parsed_config = json.loads(config)
    except ValueError:
        return ""
    return parse_zap_level(str(parsed_config.get("level", ""))) if isinstance(parsed_config, dict) else ""
