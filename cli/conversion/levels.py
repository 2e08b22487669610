"""How much a controller logged -> the knob for how much functions do."""

import json
from typing import Final

KNOB: Final = "joiner:log-level"
_LEVELS: Final = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "warning": "WARNING"} | dict.fromkeys(
    ("error", "dpanic", "panic", "fatal"), "ERROR"
)


def level_from(text: str) -> str:
    """Answer the knob's value for a level of zap; "" if it is none.

    >>> level_from("debug"), level_from("Warn"), level_from("loud")
    ('DEBUG', 'WARNING', '')
    """
    return _LEVELS.get(text.strip().lower(), "")


def level_in(config: str) -> str:
    """Answer the same for a configuration of zap, which is JSON; "" if it says none that there is.

    >>> level_in('{"level": "debug", "encoding": "console"}'), level_in("{"), level_in("[]")
    ('DEBUG', '', '')
    """
    try:
        read = json.loads(config)
    except ValueError:
        return ""
    return level_from(str(read.get("level", ""))) if isinstance(read, dict) else ""
