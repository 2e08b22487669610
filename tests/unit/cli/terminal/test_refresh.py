"""Looking again and again in a terminal: the loop of `joiner top` and `joiner status --watch`, in this process."""

import os
import pty
import termios
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TextIO

import pytest

from cli.terminal.errors import InputError
from cli.terminal.refresh import BackgroundReader, DrawnPage, Viewport, watch
from cli.terminal.screen import ENTER_SCREEN, LEAVE_SCREEN, Screen
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

    def type_keys(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read_output(self) -> str:
        output = b""
        while True:
            try:
                output += os.read(self.master, 65536)
            except BlockingIOError:
                return output.decode()

    def close(self) -> None:
        self.keys.close()
        self.out.close()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    opened_desk = Desk()
    monkeypatch.setattr("cli.terminal.screen.sys", SimpleNamespace(stdin=opened_desk.keys, stdout=opened_desk.out))
    yield opened_desk
    opened_desk.close()


class PageRecorder(list[str]):
    """Record the drawn pages, and type the next keys after each page."""

    def __init__(self, desk: Desk, *keys: str) -> None:
        """Type *keys* one after the other."""
        super().__init__()
        self._desk, self._keys = desk, [*keys, "q"]
        self.views: list[Viewport] = []

    def __call__(self, content: str, view: Viewport) -> DrawnPage:
        self.views.append(view)
        self.append(content)
        if self._keys:
            self._desk.type_keys(self._keys.pop(0))
        return [f"{content} from {view.first}"], 7


def test_page_is_shown_until_q_and_the_terminal_is_restored(desk: Desk) -> None:
    recorder = PageRecorder(desk)
    assert watch(lambda: "fleet", recorder, 3600) == 0
    output = desk.read_output()
    assert output.startswith(ENTER_SCREEN)
    assert "fleet from 0" in output
    assert output.endswith(LEAVE_SCREEN)
    assert termios.tcgetattr(desk.slave) == desk.before


def test_keys_scroll_within_bounds_and_are_remembered(desk: Desk) -> None:
    recorder = PageRecorder(desk, "j", " ", "\x1b[6~\x1b[6~\x1b[6~", "k", "c")
    watch(lambda: "fleet", recorder, 3600)
    assert [(view.first, view.keys) for view in recorder.views] == [
        (0, ()),
        (1, ()),
        (3, ()),
        (9, ()),
        (6, ()),
        (0, ("c",)),
    ]


def test_window_resize_redraws_the_page(desk: Desk) -> None:
    def draw(content: str, view: Viewport) -> DrawnPage:
        sizes.append((view.columns, view.lines))
        if len(sizes) == 1:
            termios.tcsetwinsize(desk.slave, (9, 40))
        else:
            desk.type_keys("q")
        return [content], 0

    sizes: list[tuple[int, int]] = []
    watch(lambda: "fleet", draw, 3600)
    assert sizes[0] == (20, 5)
    assert sizes[-1] == (40, 9)


@pytest.mark.parametrize("error", [InputError("here: nobody answers"), Unreachable("here: nobody answers")])
def test_failed_refresh_is_reported_with_the_last_successful_content(desk: Desk, error: Exception) -> None:
    looks: list[int] = []

    def look() -> str:
        looks.append(1)
        if len(looks) > 1:
            raise error
        return "fleet"

    def draw(content: str, view: Viewport) -> DrawnPage:
        if view.lines == 4:
            desk.type_keys("q")
        return [content], 0

    watch(look, draw, 0.05)
    assert "here: nobody answer" in desk.read_output()


def test_error_is_shown_before_the_first_successful_refresh(desk: Desk) -> None:
    def look() -> str:
        desk.type_keys("xq")
        raise InputError("nobody answers")

    watch(look, lambda content, _: ([content], 0), 3600)
    assert "looking …" in desk.read_output()


def test_ctrl_c_restores_the_terminal(desk: Desk) -> None:
    def draw(_: str, __: Viewport) -> DrawnPage:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(lambda: "fleet", draw, 3600)
    assert termios.tcgetattr(desk.slave) == desk.before
    assert desk.read_output().endswith(LEAVE_SCREEN)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_unexpected_exception_in_the_reader_ends_the_loop(desk: Desk) -> None:
    def look() -> str:
        raise ZeroDivisionError

    desk.type_keys("x")
    with pytest.raises(RuntimeError, match="once, without a terminal, it says why"):
        watch(look, lambda content, _: ([content], 0), 3600)


def test_background_reader_reports_each_update_once(desk: Desk) -> None:
    del desk
    looks = BackgroundReader(lambda: "fleet", 3600)
    while not looks.has_update():
        pass
    assert (looks.has_update(), looks.latest, looks.error_message) == (False, "fleet", "")
    looks.stop()


@pytest.mark.parametrize(
    ("typed", "keys"),
    [("", []), ("c", ["c"]), ("\x1b[A\x1b[Bq", ["up", "down", "q"]), ("\x1b[5~", ["page up"])],
)
def test_key_sequences_are_decoded_to_key_names(desk: Desk, typed: str, keys: list[str]) -> None:
    with Screen() as screen:
        if typed:
            desk.type_keys(typed)
        assert screen.read_keys(0.0 if not typed else 3600) == keys
