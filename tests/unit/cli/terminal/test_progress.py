"""Progress of slow operations: a line on standard error of a terminal, which disappears."""

import io
import sys
from threading import Event
from typing import Final

import pytest
from rich.progress import Progress

from cli.terminal.stderr import show_progress

MAX_WAIT_SECONDS: Final = 30


class Tty(io.StringIO):
    """A text buffer that claims to be a terminal, and signals when the text of an inner activity is written."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.inner_event = Event()

    def write(self, text: str) -> int:
        if "joiner: inner" in text:
            self.inner_event.set()
        return super().write(text)

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Tty:
    """Replace standard error by a terminal; not a fixture, because pytest sets standard error again after the setup."""
    stream = Tty()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


@pytest.fixture
def shown_event(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Return an event that is set as soon as a line is shown."""
    event, start = Event(), Progress.start

    def start_and_signal(progress: Progress) -> None:
        start(progress)
        event.set()

    monkeypatch.setattr(Progress, "start", start_and_signal)
    return event


def test_a_fast_operation_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with show_progress("reading", delay_seconds=3600) as report_progress:
        report_progress("3 steps")
    assert terminal.getvalue() == ""


def test_a_slow_operation_shows_its_activity_and_then_the_reported_text(
    monkeypatch: pytest.MonkeyPatch, shown_event: Event
) -> None:
    terminal = open_terminal(monkeypatch)
    with show_progress("reading [bold]x[/bold]", delay_seconds=0) as report_progress:
        assert shown_event.wait(MAX_WAIT_SECONDS)
        report_progress("3 steps")
    output = terminal.getvalue()
    assert "joiner: reading [bold]x[/bold] …" in output
    assert "joiner: 3 steps" in output.partition("reading")[2]
    assert output.endswith("\x1b[2K")


def test_output_printed_during_progress_goes_to_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shown_event: Event
) -> None:
    terminal = open_terminal(monkeypatch)
    with show_progress("reading", delay_seconds=0):
        assert shown_event.wait(MAX_WAIT_SECONDS)
        sys.stdout.write('{"a": 1}\n')
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert '{"a"' not in terminal.getvalue()


def test_an_operation_within_another_has_its_own_line(monkeypatch: pytest.MonkeyPatch, shown_event: Event) -> None:
    terminal = open_terminal(monkeypatch)
    with show_progress("outer", delay_seconds=0):
        assert shown_event.wait(MAX_WAIT_SECONDS)
        shown_event.clear()
        with show_progress("inner", delay_seconds=0):
            assert shown_event.wait(MAX_WAIT_SECONDS)
            assert terminal.inner_event.wait(MAX_WAIT_SECONDS), "the next refresh of the outer line draws both"
    assert "joiner: outer" in terminal.getvalue()


def test_a_log_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress("reading", delay_seconds=0):
        pass
    assert stream.getvalue() == ""
