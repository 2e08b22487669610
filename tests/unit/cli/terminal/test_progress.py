"""Progress of slow operations: a line on standard error of a terminal, which disappears."""

import io
import sys
from threading import Event

import pytest
from rich.progress import Progress

from cli.terminal.stderr import show_progress


class Tty(io.StringIO):
    """A text buffer that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Tty:
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


def test_a_fast_operation_shows_nothing(terminal: Tty) -> None:
    with show_progress("reading", delay_seconds=3600) as report_progress:
        report_progress("3 steps")
    assert terminal.getvalue() == ""


def test_a_slow_operation_shows_its_activity_and_then_the_reported_text(terminal: Tty, shown_event: Event) -> None:
    with show_progress("reading [bold]x[/bold]", delay_seconds=0) as report_progress:
        assert shown_event.wait(600)
        report_progress("3 steps")
    output = terminal.getvalue()
    assert "joiner: reading [bold]x[/bold] …" in output
    assert "joiner: 3 steps" in output.partition("reading")[2]
    assert output.endswith("\x1b[2K")


def test_output_printed_during_progress_goes_to_stdout(
    terminal: Tty, shown_event: Event, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_progress("reading", delay_seconds=0):
        assert shown_event.wait(600)
        sys.stdout.write('{"a": 1}\n')
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert '{"a"' not in terminal.getvalue()


def test_an_operation_within_another_has_its_own_line(terminal: Tty, shown_event: Event) -> None:
    with show_progress("outer", delay_seconds=0):
        assert shown_event.wait(600)
        shown_event.clear()
        with show_progress("inner", delay_seconds=0):
            assert shown_event.wait(600)
    assert "joiner: outer" in terminal.getvalue()
    assert "joiner: inner" in terminal.getvalue()


def test_a_log_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress("reading", delay_seconds=0):
        pass
    assert stream.getvalue() == ""
