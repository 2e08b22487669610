"""Origin of the control plane's programs; the Go that builds them here is a fake."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controlplane import __main__ as prospects
from tests.controlplane import binaries
from tests.controlplane.binaries import (
    API_SERVER,
    ASSETS,
    ETCD,
    PROGRAMS,
    NoPrograms,
    ensure_programs,
    get_cache_folder,
    read_kubernetes_version,
)

BUILD_SCRIPT = """#!/bin/sh
echo built >> "{log}"
while [ "$1" != -o ]; do shift; done
echo program > "$2"; chmod +x "$2"
"""
WAIT_COMMAND = 'until [ -e "{log}.awaited" ]; do sleep 0.02; done\n'
ENV_SCRIPT = """#!/bin/sh
[ "$1" != env ] || {{ printf '%s\\n' "{log}" "{log}"; exit; }}
"""
OLD_GO_SCRIPT = """#!/bin/sh
echo 'go: go.mod requires go >= 1.26.0 (running go 1.22.1; GOTOOLCHAIN=local)' >&2
exit 1
"""
SLEEP_SCRIPT = """#!/bin/sh
exec sleep 3600
"""
BROKEN_SCRIPT = """#!/bin/sh
echo 'main.go:1: it is too late in the day' >&2
exit 1
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that installs a script as Go, with its own cache, and returns the script's log file."""
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv(ASSETS, raising=False)
    monkeypatch.setattr(binaries, "_FIRST_REPORT_SECONDS", 3600)
    monkeypatch.setattr(prospects, "MIN_FREE_DISK_GB", 0)

    def install_script(script: str) -> Path:
        folder.joinpath("go").write_text(script.format(log=log))
        folder.joinpath("go").chmod(0o755)
        return log

    return install_script


def test_kubernetes_version_is_read_from_go_mod() -> None:
    assert [part.isdecimal() for part in read_kubernetes_version().split(".")] == [True] * 3


def test_programs_are_built_once_for_concurrent_callers(go: Callable[[str], Path]) -> None:
    log = go(BUILD_SCRIPT.replace("echo program", f"{WAIT_COMMAND}echo program"))
    messages: list[str] = []

    def record_message(line: str) -> None:
        messages.append(line)
        if len(messages) == 2:
            log.with_name("log.awaited").touch()

    with ThreadPoolExecutor(3) as pool:
        [folder] = set(pool.map(lambda _: ensure_programs(say=record_message), range(3)))
    assert ensure_programs(say=messages.append) == folder
    assert log.read_text() == "built\n"
    assert sorted(path.name for path in folder.iterdir()) == sorted(PROGRAMS)
    assert sorted(path.name for path in get_cache_folder().iterdir()) == [folder.name, "lock"]
    assert messages == ["control plane: waiting for the build that another process has begun"] * 2


def test_failed_build_reports_the_compiler_error_and_leaves_no_files(go: Callable[[str], Path]) -> None:
    go(BROKEN_SCRIPT)
    with pytest.raises(NoPrograms, match="too late in the day"):
        ensure_programs()
    assert [path.name for path in get_cache_folder().iterdir()] == ["lock"]


def test_missing_go_is_reported_with_installation_instructions(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BUILD_SCRIPT)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(NoPrograms, match=r"go.*not on PATH.*https://go\.dev/dl.*KUBEBUILDER_ASSETS"):
        ensure_programs()


def test_existing_binaries_are_used_only_if_all_required_programs_are_present(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BUILD_SCRIPT)
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in (ETCD, API_SERVER):
        assets.joinpath(name).touch(0o755)
    monkeypatch.setenv(ASSETS, str(assets))
    assert ensure_programs((ETCD, API_SERVER)) == assets
    assert ensure_programs() != assets


def test_build_is_aborted_after_its_timeout(go: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    go(SLEEP_SCRIPT)
    monkeypatch.setattr(binaries, "BUILD_TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(binaries, "_FIRST_REPORT_SECONDS", 0.05)
    with pytest.raises(NoPrograms, match="given up after 0 s"):
        ensure_programs(say=lambda _: None)


def test_check_succeeds_on_a_host_that_can_build(go: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    go(ENV_SCRIPT + BUILD_SCRIPT.removeprefix("#!/bin/sh\n"))
    assert prospects.main() == 0
    assert prospects.main() == 0
    assert not capsys.readouterr().out


def test_check_fails_when_the_build_fails(go: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    go(ENV_SCRIPT + BROKEN_SCRIPT.removeprefix("#!/bin/sh\n"))
    assert prospects.main() == 1
    assert "too late in the day" in capsys.readouterr().out


def test_check_reports_why_a_host_cannot_build(
    go: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_refusal() -> str:
        assert prospects.main() == prospects.CANNOT_BUILD_EXIT_CODE
        return capsys.readouterr().out

    go(OLD_GO_SCRIPT)
    assert "requires go >= 1.26.0" in read_refusal()
    go(SLEEP_SCRIPT)
    monkeypatch.setattr(prospects, "GO_ENV_TIMEOUT_S", 0.05)
    assert "has no answer" in read_refusal()
    monkeypatch.setattr(prospects, "GO_ENV_TIMEOUT_S", 3600)
    go(ENV_SCRIPT)
    monkeypatch.setattr(prospects, "MIN_FREE_DISK_GB", 10**9)
    assert "GB of disk are needed" in read_refusal()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`go` is not on PATH" in read_refusal()


def test_check_succeeds_without_go_when_the_programs_exist(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BROKEN_SCRIPT)
    for name in PROGRAMS:
        tmp_path.joinpath(name).touch(0o755)
    monkeypatch.setenv(ASSETS, str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert prospects.main() == 0
