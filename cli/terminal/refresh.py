"""The refresh loop of all commands that redraw a page in a terminal."""

import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from cli.terminal.errors import InputError
from cli.terminal.screen import Screen
from cli.terminal.text import choose_palette
from shared.errors import Fault

T = TypeVar("T")
DrawnPage: TypeAlias = tuple[list[str], int]
"""The lines, and the last row that may be shown first."""
REFRESH_INTERVAL_SECONDS: Final = 5.0
"""Default interval between two refreshes."""
_QUIT: Final = ("q", "Q")
_FILTER_KEY: Final = "/"
_ESCAPE: Final = "\x1b"
_ENTER_KEYS: Final = ("\r", "\n")
_DELETE_KEYS: Final = ("\x7f", "\b")
_FIXED_LINES: Final = 3
"""Lines of a page that are not rows; page up and page down move by fewer rows."""


class Viewport(msgspec.Struct, frozen=True, kw_only=True):
    """The visible part of the page."""

    columns: int
    lines: int
    first: int = 0
    """The row that is shown first."""
    keys: tuple[str, ...] = ()
    """Pressed keys that do not move rows, oldest first."""
    filter_text: str | None = None
    """The typed filter; None: none was typed."""
    is_typing: bool = False
    """Whether keys are added to the filter."""

    def with_key(self, key: str) -> "Viewport":
        """Return the viewport after *key* was pressed."""
        if self.is_typing:
            return self._with_typed_key(key)
        if key in (_FILTER_KEY, _ESCAPE):
            text = "" if key == _ESCAPE else self.filter_text or ""
            return msgspec.structs.replace(self, first=0, filter_text=text, is_typing=key == _FILTER_KEY)
        page = max(self.lines - _FIXED_LINES, 1)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, " ": page}
        if key in steps:
            return msgspec.structs.replace(self, first=max(0, self.first + steps[key]))
        return msgspec.structs.replace(self, first=0, keys=(*self.keys, key))

    def _with_typed_key(self, key: str) -> "Viewport":
        """Return the viewport after *key* was typed into the filter."""
        text = self.filter_text or ""
        if key in _ENTER_KEYS:
            return msgspec.structs.replace(self, is_typing=False)
        if key == _ESCAPE:
            return msgspec.structs.replace(self, first=0, filter_text="", is_typing=False)
        if key in _DELETE_KEYS:
            text = text[:-1]
        elif len(key) == 1 and key.isprintable():
            text += key
        return msgspec.structs.replace(self, first=0, filter_text=text)


class BackgroundReader(Generic[T]):
    """Reads repeatedly in a separate thread, so that keys are handled during requests to the cluster."""

    def __init__(self, read: Callable[[], T], interval_seconds: float) -> None:
        """Start reading immediately."""
        self._read, self._interval_seconds = read, interval_seconds
        self.latest: T | None = None
        self.error_message = ""
        """Why the last read failed; "" if it did not."""
        self._is_stopped = Event()
        self._has_news = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def has_update(self) -> bool:
        """Return whether a read finished since the last call."""
        if not self._has_news.is_set():
            return False
        self._has_news.clear()
        return True

    def check_alive(self) -> None:
        """Check that the thread is alive.

        Raises:
            RuntimeError: it ended because of a bug in this program.
        """
        if not self._thread.is_alive():
            raise RuntimeError("looking came to an end: once, without a terminal, it says why")

    def stop(self) -> None:
        """Stop reading."""
        self._is_stopped.set()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            try:
                self.latest, self.error_message = self._read(), ""
            except (InputError, Fault) as error:
                self.error_message = str(error)
            self._has_news.set()
            self._is_stopped.wait(self._interval_seconds)


def watch(
    read: Callable[[], T], draw: Callable[[T, Viewport], DrawnPage], interval_seconds: float = REFRESH_INTERVAL_SECONDS
) -> int:
    """Show the result of *read* as *draw* renders it, until q or Ctrl-C; return the exit status.

    Raises:
        KeyboardInterrupt: Ctrl-C; the terminal is restored.
    """
    with Screen() as screen:
        reader = BackgroundReader(read, interval_seconds)
        try:
            _run_loop(screen, reader, draw)
        finally:
            reader.stop()
    return 0


def _run_loop(screen: Screen, reader: BackgroundReader[T], draw: Callable[[T, Viewport], DrawnPage]) -> None:
    view = Viewport(columns=screen.columns, lines=screen.lines)
    screen.show(["looking …"])
    while True:
        pressed_keys = screen.read_keys(0.25)
        reader.check_alive()
        for key in pressed_keys or ():
            if key in _QUIT and not view.is_typing:
                return
            view = view.with_key(key)
        if pressed_keys == [] and not reader.has_update():
            continue
        view = msgspec.structs.replace(view, columns=screen.columns, lines=screen.lines)
        lines, last = _draw_page(reader, draw, view)
        view = msgspec.structs.replace(view, first=min(view.first, last))
        screen.show(lines)


def _draw_page(reader: BackgroundReader[T], draw: Callable[[T, Viewport], DrawnPage], view: Viewport) -> DrawnPage:
    error_lines = [choose_palette(sys.stdout).colorize("red", reader.error_message)] if reader.error_message else []
    if reader.latest is None:
        return error_lines or ["looking …"], 0
    lines, last = draw(reader.latest, msgspec.structs.replace(view, lines=view.lines - len(error_lines)))
    return [*error_lines, *lines], last
