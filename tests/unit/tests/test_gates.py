"""Tests of `.ci/run`, with stand-ins for make and the build of the control plane: steps, output, exit code."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RUN = Path(__file__).parents[3] / ".ci" / "run"
MAKE = """#!/bin/sh
echo "make $*"
case "$*" in *plays|*test-kubernetes) echo "== 1 passed in 0.1s ==";; esac
case "$*" in *"$FAILS") exit 2;; esac
"""
BUILD = """#!/bin/sh
case "$*" in *tests.ui.browser) echo "because of browser $BROWSER"; exit "$BROWSER";; esac
echo $$ >building
sleep "$SECONDS_TO_BUILD"
echo "because of $BUILDS"; echo "main.go:1: no" >&2
exit "$BUILDS"
"""
ALL = ["setup", "checks", "coverage", "test-ui", "plays", "e2e", "test-kubernetes"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Yield a function that starts a copy of `.ci/run`; its build exits with *builds* and its target *fails* fails."""
    for name, script in (("bin/make", MAKE), (".venv/bin/python", BUILD)):
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        tmp_path.joinpath(name).write_text(script)
        tmp_path.joinpath(name).chmod(0o755)
    tmp_path.joinpath(".ci").mkdir()
    tmp_path.joinpath("tmp").mkdir()
    shutil.copy(RUN, tmp_path / ".ci" / "run")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    # A process that was started in the background ignores SIGINT, and so would its child processes.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def start(builds: int = 0, fails: str = "nothing", seconds: float = 0, browser: int = 0) -> subprocess.Popen[str]:
        environment = {
            "BUILDS": str(builds),
            "FAILS": fails,
            "SECONDS_TO_BUILD": str(seconds),
            "BROWSER": str(browser),
        }
        return subprocess.Popen(
            [str(tmp_path / ".ci" / "run")],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    yield start
    signal.signal(signal.SIGINT, before)


def list_make_targets(output: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in output.splitlines() if line.startswith("make ")]


def test_ci_run_executes_all_make_targets(run: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = run()
    output, _ = process.communicate()
    assert (process.returncode, list_make_targets(output)) == (0, ALL)
    assert "!!!" not in output
    assert not list(tmp_path.joinpath("tmp").iterdir())


@pytest.mark.parametrize(("builds", "code", "expected_text"), [(3, 0, "NOT RUN"), (1, 1, "FAILED")])
def test_skipped_targets_are_reported_before_the_last_line(
    run: Callable[..., subprocess.Popen[str]], builds: int, code: int, expected_text: str
) -> None:
    process = run(builds)
    output, _ = process.communicate()
    assert (process.returncode, list_make_targets(output)) == (code, ALL[:5])
    assert f"{expected_text}: the" in output
    assert f"because of {builds}" in output
    assert sum(line.startswith("!!!!!") for line in output.splitlines()) == 4
    assert output.splitlines()[-1] == "== 1 passed in 0.1s =="


@pytest.mark.parametrize(("browser", "code", "expected_text"), [(3, 0, "NOT RUN"), (1, 1, "FAILED")])
def test_missing_browser_is_reported_before_the_last_line(
    run: Callable[..., subprocess.Popen[str]], browser: int, code: int, expected_text: str
) -> None:
    process = run(browser=browser)
    output, _ = process.communicate()
    targets = ALL[:3] + ALL[4:] if code == 0 else ALL[:3]
    assert (process.returncode, list_make_targets(output)) == (code, targets)
    assert f"{expected_text}: the" in output
    assert f"because of browser {browser}" in output


@pytest.mark.parametrize("fails", ALL)
def test_failing_make_target_ends_the_run_with_its_exit_code(
    run: Callable[..., subprocess.Popen[str]], fails: str
) -> None:
    process = run(fails=fails)
    output, _ = process.communicate()
    assert (process.returncode, list_make_targets(output)) == (2, ALL[: ALL.index(fails) + 1])


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_run_and_its_build_process(
    run: Callable[..., subprocess.Popen[str]], end: signal.Signals, tmp_path: Path
) -> None:
    process = run(seconds=3600)
    building = tmp_path / "building"
    while not building.exists() or not building.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(end)
    process.communicate(timeout=600)
    assert process.returncode == 128 + end
    assert not list(tmp_path.joinpath("tmp").iterdir())
    with pytest.raises(ProcessLookupError):
        poll_process(int(building.read_text()))


def poll_process(pid: int) -> None:
    while True:
        os.kill(pid, 0)
        time.sleep(0.05)


def test_make_help_is_aligned_and_shows_durations_of_long_targets() -> None:
    command = ["make", "--no-print-directory", "help"]
    output = subprocess.run(command, cwd=RUN.parents[1], capture_output=True, text=True, check=True).stdout
    lines = output.splitlines()
    assert all(line[16:18].isspace() and not line[18].isspace() for line in lines if len(line) > 18), output
    for target in (
        "quick",
        "test-ui",
        "test",
        "test-thorough",
        "coverage",
        "mutants",
        "test-kubernetes",
        "e2e",
        "bench",
        "chaos",
        "weeks",
        "cost",
    ):
        [description] = [line for line in lines if line.split()[0] == target]
        assert " min" in description, description
