"""Looking again and again, in a terminal: the one loop of all commands that refresh."""

import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from cli.files import InputError
from cli.screen import Screen
from cli.text import cut, palette_of
from shared.errors import Fault

T = TypeVar("T")
Drawn: TypeAlias = tuple[list[str], int]
"""Lines, and which row may be the first at most."""
EVERY: Final = 5.0
"""Seconds between two looks, unless it is said otherwise."""
_QUIT: Final = ("q", "Q")
_BARE: Final = 3
"""Lines of a page that are no rows, for turning it over."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """How it is looked at."""

    columns: int
    lines: int
    first: int = 0
    """The row that is shown first."""
    keys: tuple[str, ...] = ()
    """What was pressed so far that is not about rows, oldest first."""

    def moved(self, key: str) -> "View":
        """Answer the view after *key* was pressed."""
        page = max(self.lines - _BARE, 1)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, " ": page}
        if key in steps:
            return msgspec.structs.replace(self, first=max(0, self.first + steps[key]))
        return msgspec.structs.replace(self, first=0, keys=(*self.keys, key))


class Looks(Generic[T]):
    """Looks again and again in a thread of its own: whoever presses keys need not wait for the cluster."""

    def __init__(self, look: Callable[[], T], every: float) -> None:
        """Begin at once."""
        self._look, self._every = look, every
        self.latest: T | None = None
        self.trouble = ""
        """Why the last look failed; "" if it did not."""
        self._is_over = Event()
        self._news = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_news(self) -> bool:
        """Whether there was a look since this was last asked."""
        if not self._news.is_set():
            return False
        self._news.clear()
        return True

    def check(self) -> None:
        """See that it still looks.

        Raises:
            RuntimeError: there is a mistake in this program.
        """
        if not self._thread.is_alive():
            raise RuntimeError("looking came to an end: once, without a terminal, it says why")

    def end(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.latest, self.trouble = self._look(), ""
            except (InputError, Fault) as error:
                self.trouble = str(error)
            self._news.set()
            self._is_over.wait(self._every)


def watch(look: Callable[[], T], draw: Callable[[T, View], Drawn], every: float = EVERY) -> int:
    """Show what *look* answers as *draw* says, until q or Ctrl-C; answer the exit status.

    Raises:
        KeyboardInterrupt: Ctrl-C; the terminal is as it was.
    """
    with Screen() as screen:
        looks = Looks(look, every)
        try:
            _loop(screen, looks, draw)
        finally:
            looks.end()
    return 0


def _loop(screen: Screen, looks: Looks[T], draw: Callable[[T, View], Drawn]) -> None:
    view = View(columns=screen.columns, lines=screen.lines)
    screen.show(["looking …"])
    while True:
        pressed = screen.keys(0.25)
        if pressed is not None and any(key in _QUIT for key in pressed):
            return
        looks.check()
        for key in pressed or ():
            view = view.moved(key)
        if pressed == [] and not looks.is_news():
            continue
        view = msgspec.structs.replace(view, columns=screen.columns, lines=screen.lines)
        lines, last = _page(looks, draw, view)
        view = msgspec.structs.replace(view, first=min(view.first, last))
        screen.show(lines)


def _page(looks: Looks[T], draw: Callable[[T, View], Drawn], view: View) -> Drawn:
    trouble = [palette_of(sys.stdout).paint("red", cut(looks.trouble, view.columns))] if looks.trouble else []
    if looks.latest is None:
        return trouble or ["looking …"], 0
    lines, last = draw(looks.latest, msgspec.structs.replace(view, lines=view.lines - len(trouble)))
    return [*trouble, *lines], last
