"""Where the programs of a control plane come from; what builds them here only looks like Go."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controlplane import __main__ as prospects
from tests.controlplane import binaries
from tests.controlplane.binaries import API_SERVER, ASSETS, ETCD, PROGRAMS, NoPrograms, cache, programs, version

BUILDS = """#!/bin/sh
echo built >> "{log}"
while [ "$1" != -o ]; do shift; done
echo program > "$2"; chmod +x "$2"
"""
IS_AWAITED = 'until [ -e "{log}.awaited" ]; do sleep 0.02; done\n'
KNOWS = """#!/bin/sh
[ "$1" != env ] || {{ printf '%s\\n' "{log}" "{log}"; exit; }}
"""
IS_OLD = """#!/bin/sh
echo 'go: go.mod requires go >= 1.26.0 (running go 1.22.1; GOTOOLCHAIN=local)' >&2
exit 1
"""
SLEEPS = """#!/bin/sh
exec sleep 3600
"""
BREAKS = """#!/bin/sh
echo 'main.go:1: it is too late in the day' >&2
exit 1
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Answer what makes a script Go, in a cache of its own; it answers the file that the script logs to."""
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv(ASSETS, raising=False)
    monkeypatch.setattr(binaries, "_IMPATIENCE_SECONDS", 3600)
    monkeypatch.setattr(prospects, "NEEDED_GB", 0)

    def become(script: str) -> Path:
        folder.joinpath("go").write_text(script.format(log=log))
        folder.joinpath("go").chmod(0o755)
        return log

    return become


def test_the_version_is_that_of_go_mod() -> None:
    assert [part.isdecimal() for part in version().split(".")] == [True] * 3


def test_it_is_built_once_for_all_who_ask(go: Callable[[str], Path]) -> None:
    log = go(BUILDS.replace("echo program", f"{IS_AWAITED}echo program"))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            log.with_name("log.awaited").touch()

    with ThreadPoolExecutor(3) as pool:
        [folder] = set(pool.map(lambda _: programs(say=say), range(3)))
    assert programs(say=said.append) == folder
    assert log.read_text() == "built\n"
    assert sorted(each.name for each in folder.iterdir()) == sorted(PROGRAMS)
    assert sorted(each.name for each in cache().iterdir()) == [folder.name, "lock"]
    assert said == ["control plane: waiting for the build that another process has begun"] * 2


def test_a_build_that_fails_says_why_and_leaves_nothing(go: Callable[[str], Path]) -> None:
    go(BREAKS)
    with pytest.raises(NoPrograms, match="too late in the day"):
        programs()
    assert [each.name for each in cache().iterdir()] == ["lock"]


def test_without_go_one_is_told_what_would_help(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BUILDS)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(NoPrograms, match=r"go.*not on PATH.*https://go\.dev/dl.*KUBEBUILDER_ASSETS"):
        programs()


def test_what_somebody_has_is_used_if_it_is_all_that_is_wanted(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BUILDS)
    has = tmp_path / "assets"
    has.mkdir()
    for name in (ETCD, API_SERVER):
        has.joinpath(name).touch(0o755)
    monkeypatch.setenv(ASSETS, str(has))
    assert programs((ETCD, API_SERVER)) == has
    assert programs() != has


def test_a_build_that_takes_too_long_is_given_up(go: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    go(SLEEPS)
    monkeypatch.setattr(binaries, "LONGEST_SECONDS", 0)
    monkeypatch.setattr(binaries, "_IMPATIENCE_SECONDS", 0.05)
    with pytest.raises(NoPrograms, match="given up after 0 s"):
        programs(say=lambda _: None)


def test_a_machine_that_can_build_does(go: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    go(KNOWS + BUILDS.removeprefix("#!/bin/sh\n"))
    assert prospects.main() == 0
    assert prospects.main() == 0
    assert not capsys.readouterr().out


def test_a_build_that_fails_is_a_failure(go: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    go(KNOWS + BREAKS.removeprefix("#!/bin/sh\n"))
    assert prospects.main() == 1
    assert "too late in the day" in capsys.readouterr().out


def test_a_machine_that_cannot_build_says_why(
    go: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        assert prospects.main() == prospects.CANNOT
        return capsys.readouterr().out

    go(IS_OLD)
    assert "requires go >= 1.26.0" in said()
    go(SLEEPS)
    monkeypatch.setattr(prospects, "PATIENCE", 0.05)
    assert "has no answer" in said()
    monkeypatch.setattr(prospects, "PATIENCE", 3600)
    go(KNOWS)
    monkeypatch.setattr(prospects, "NEEDED_GB", 10**9)
    assert "GB of disk are needed" in said()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`go` is not on PATH" in said()


def test_who_has_the_programs_needs_nothing(
    go: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(BREAKS)
    for name in PROGRAMS:
        tmp_path.joinpath(name).touch(0o755)
    monkeypatch.setenv(ASSETS, str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert prospects.main() == 0
