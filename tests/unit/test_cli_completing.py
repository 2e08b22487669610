"""What completes a word, asked directly; tests/unit/test_cli_every.py asks as a shell does."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from argcomplete.completers import FilesCompleter

from cli.completing import _completer
from tests.contract.kube_front import create
from tests.unit.fleet_files import POOL, machine
from tests.unit.live_cases import Guarded, live


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("cli.completing.PATIENCE", 600)  # this machine may be slow
    with live(tmp_path) as (kube, path):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for name in ("node-a", "node-b"):
            for one in machine(name, 4):
                create(kube, "/api/v1/nodes", one)
        yield path


def offered(dest: str, prefix: str = "", *, metavar: str = "", **chosen: str) -> list[str]:
    action = argparse.Action(["--x"], dest, metavar=metavar)
    return list(_completer(action)(prefix=prefix, parsed_args=argparse.Namespace(**chosen)))


@pytest.mark.loopback
def test_names_are_asked_of_the_cluster_that_is_meant(config: str) -> None:
    assert offered("nodepool", kubeconfig=config) == ["default"]
    assert offered("node", "node-b", kubeconfig=config) == ["node-b"]
    assert offered("name", kind="node", kubeconfig=config, context="here") == ["node-a", "node-b"]
    assert offered("name", kind="pod", kubeconfig=config) == []
    assert {path.partition("?")[2] for _, path, _ in Guarded.asked} == {"limit=500"}


@pytest.mark.loopback
def test_contexts_are_those_of_the_kubeconfig(config: str) -> None:
    assert offered("context", kubeconfig=config) == ["here", "away"]
    assert offered("context", "a", kubeconfig=config) == ["away"]


@pytest.mark.loopback
def test_who_is_refused_is_offered_nothing(config: str) -> None:
    Guarded.forbidden = "/nodepools"
    assert offered("nodepool", kubeconfig=config) == []


@pytest.mark.parametrize("text", ["{", "- a", "contexts: 3", ""])
def test_a_kubeconfig_that_cannot_be_read_offers_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    assert offered("context", kubeconfig=str(tmp_path / "config")) == []
    assert offered("nodepool", kubeconfig=str(tmp_path / "config")) == []


@pytest.mark.parametrize(("metavar", "is_file"), [("FILE|DIR|-", True), ("CATALOGUE", True), ("TEXT", False)])
def test_files_complete_what_is_a_file(metavar: str, is_file: bool) -> None:  # noqa: FBT001
    action = argparse.Action(["--x"], "x", metavar=metavar)
    assert isinstance(_completer(action), FilesCompleter) == is_file
    assert is_file or offered("x", metavar=metavar) == []
