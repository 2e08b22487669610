"""Looking again and again in a terminal: the loop of `joiner top` and `joiner status --watch`, in this process."""

import os
import pty
import termios
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TextIO

import pytest

from cli.files import InputError
from cli.screen import ENTER, LEAVE, Screen
from cli.watching import Drawn, Looks, View, watch
from shared.errors import Unreachable


class Desk:
    """A terminal, and what was written to it."""

    def __init__(self) -> None:
        """Open one of 5 lines and 20 columns."""
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (5, 20))
        self.before = termios.tcgetattr(self.slave)
        self.keys: TextIO = os.fdopen(os.dup(self.slave), "r")
        self.out: TextIO = os.fdopen(os.dup(self.slave), "w")
        os.set_blocking(self.master, False)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def seen(self) -> str:
        found = b""
        while True:
            try:
                found += os.read(self.master, 65536)
            except BlockingIOError:
                return found.decode()

    def close(self) -> None:
        self.keys.close()
        self.out.close()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    one = Desk()
    monkeypatch.setattr("cli.screen.sys", SimpleNamespace(stdin=one.keys, stdout=one.out))
    yield one
    one.close()


class Told(list[str]):
    """What pages were drawn; types the next keys once one was."""

    def __init__(self, desk: Desk, *keys: str) -> None:
        """Type *keys* one after the other."""
        super().__init__()
        self._desk, self._keys = desk, [*keys, "q"]
        self.views: list[View] = []

    def __call__(self, found: str, view: View) -> Drawn:
        self.views.append(view)
        self.append(found)
        if self._keys:
            self._desk.type(self._keys.pop(0))
        return [f"{found} from {view.first}"], 7


def test_a_page_is_shown_until_q_and_the_terminal_is_as_it_was(desk: Desk) -> None:
    told = Told(desk)
    assert watch(lambda: "fleet", told, 3600) == 0
    seen = desk.seen()
    assert seen.startswith(ENTER)
    assert "fleet from 0" in seen
    assert seen.endswith(LEAVE)
    assert termios.tcgetattr(desk.slave) == desk.before


def test_keys_move_rows_within_what_there_is_and_are_remembered(desk: Desk) -> None:
    told = Told(desk, "j", " ", "\x1b[6~\x1b[6~\x1b[6~", "k", "c")
    watch(lambda: "fleet", told, 3600)
    assert [(one.first, one.keys) for one in told.views] == [
        (0, ()),
        (1, ()),
        (3, ()),
        (9, ()),
        (6, ()),
        (0, ("c",)),
    ]


def test_another_size_of_the_window_is_seen(desk: Desk) -> None:
    def draw(found: str, view: View) -> Drawn:
        sizes.append((view.columns, view.lines))
        if len(sizes) == 1:
            termios.tcsetwinsize(desk.slave, (9, 40))
        else:
            desk.type("q")
        return [found], 0

    sizes: list[tuple[int, int]] = []
    watch(lambda: "fleet", draw, 3600)
    assert sizes[0] == (20, 5)
    assert sizes[-1] == (40, 9)


@pytest.mark.parametrize("error", [InputError("here: nobody answers"), Unreachable("here: nobody answers")])
def test_a_look_that_fails_is_told_beside_the_last_that_did_not(desk: Desk, error: Exception) -> None:
    looks: list[int] = []

    def look() -> str:
        looks.append(1)
        if len(looks) > 1:
            raise error
        return "fleet"

    def draw(found: str, view: View) -> Drawn:
        if view.lines == 4:
            desk.type("q")
        return [found], 0

    watch(look, draw, 0.05)
    assert "here: nobody answer" in desk.seen()


def test_before_the_first_answer_only_the_trouble_is_shown(desk: Desk) -> None:
    def look() -> str:
        desk.type("xq")
        raise InputError("nobody answers")

    watch(look, lambda found, _: ([found], 0), 3600)
    assert "looking …" in desk.seen()


def test_ctrl_c_leaves_the_terminal_as_it_was(desk: Desk) -> None:
    def draw(_: str, __: View) -> Drawn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(lambda: "fleet", draw, 3600)
    assert termios.tcgetattr(desk.slave) == desk.before
    assert desk.seen().endswith(LEAVE)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_in_this_program_ends_it(desk: Desk) -> None:
    def look() -> str:
        raise ZeroDivisionError

    desk.type("x")
    with pytest.raises(RuntimeError, match="once, without a terminal, it says why"):
        watch(look, lambda found, _: ([found], 0), 3600)


def test_news_are_told_once(desk: Desk) -> None:
    del desk
    looks = Looks(lambda: "fleet", 3600)
    while not looks.is_news():
        pass
    assert (looks.is_news(), looks.latest, looks.trouble) == (False, "fleet", "")
    looks.end()


@pytest.mark.parametrize(
    ("typed", "keys"),
    [("", []), ("c", ["c"]), ("\x1b[A\x1b[Bq", ["up", "down", "q"]), ("\x1b[5~", ["page up"])],
)
def test_keys_have_names(desk: Desk, typed: str, keys: list[str]) -> None:
    with Screen() as screen:
        if typed:
            desk.type(typed)
        assert screen.keys(0.0 if not typed else 3600) == keys
