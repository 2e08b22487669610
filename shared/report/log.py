"""The log: one JSON object per line, written by the Logger of Powertools.

All functions write the same keys (`docs/reference/log.md`). Logs Insights, the dashboard and Lambda's own log filter
read them. The logger belongs to the process; each line goes to the World of its cycle, with the time of its clock.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import datetime
from io import TextIOBase
from logging import LogRecord
from typing import Any, Final, Literal, TypeAlias

import msgspec
from aws_lambda_powertools.logging import Logger

from shared.ports.world import World
from shared.settings_text import LOG_LEVELS

SERVICE: Final = "joiner"
LineLevel: TypeAlias = Literal["INFO", "WARNING", "ERROR"]
EmitLine: TypeAlias = Callable[[str], None]

_emit_line: ContextVar[EmitLine] = ContextVar("emit_line")
_line_time: ContextVar[datetime] = ContextVar("line_time")


class _WorldStream(TextIOBase):
    """Passes each line to the World that logs it."""

    def write(self, text: str) -> int:
        """Pass on *text* without its end of line."""
        line = text.rstrip("\n")
        if line:
            _emit_line.get()(line)
        return len(text)


def _encode_line(line: Mapping[str, Any]) -> str:
    return msgspec.json.encode(line).decode()


def _set_line_time(record: LogRecord) -> bool:
    """Give *record* the time of the World's clock, which simulations set, instead of the computer's."""
    record.created = _line_time.get().timestamp()
    return True


def _build_logger() -> Logger:
    """Build the logger: without the source location, which names no decision.

    Its level is INFO, because Lambda's own log filter, which Powertools gives precedence, keeps INFO for the metrics.
    `write_line` applies the level of the settings.
    """
    stream: Any = _WorldStream()
    logger = Logger(
        service=SERVICE,
        level="INFO",
        stream=stream,
        json_serializer=_encode_line,
        json_deserializer=str,  # a message is text, also one that looks like JSON
        log_record_order=["level", "message", "timestamp", "service"],
        utc=True,
        use_rfc3339=True,  # Lambda's log filter requires it
        location=None,
    )
    logger.addFilter(_set_line_time)
    return logger


_LOGGER: Final = _build_logger()
_METHOD_BY_LEVEL: Final[Mapping[LineLevel, Callable[..., None]]] = {
    "INFO": _LOGGER.info,
    "WARNING": _LOGGER.warning,
    "ERROR": _LOGGER.error,
}


@contextmanager
def add_log_fields(**fields: object) -> Iterator[None]:
    """Add *fields* to all lines that the block logs."""
    with _LOGGER.append_context_keys(**fields):
        yield


def log(level: LineLevel, message: str, world: World, fields: Mapping[str, object]) -> None:
    """Write one line with *message*, *fields* and the keys of the invocation, if the settings include *level*."""
    keys = {
        "cluster": world.settings.cluster_name,
        "function_request_id": world.name or None,
        "cold_start": world.is_cold_start,
    }
    write_line(level, message, keys | dict(fields), world.clock(), world.emit, world.settings.log_level)


def write_line(
    level: LineLevel,
    message: str,
    fields: Mapping[str, object],
    at: datetime,
    emit: EmitLine,
    min_level: str = "INFO",
) -> None:
    """Write one line as of *at* with *emit*, if *level* is at least *min_level*; without a World."""
    if min_level in LOG_LEVELS and LOG_LEVELS.index(level) < LOG_LEVELS.index(min_level):
        return
    copy_context().run(_write_in_context, level, message, fields, at, emit)


def _write_in_context(
    level: LineLevel, message: str, fields: Mapping[str, object], at: datetime, emit: EmitLine
) -> None:
    _emit_line.set(emit)
    _line_time.set(at)
    _METHOD_BY_LEVEL[level](message, extra=fields)
