"""Completion of words, called directly; tests/unit/cli/test_every_command.py calls it as a shell does."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from argcomplete.completers import FilesCompleter

from cli.completion.completer import _choose_completer
from tests.contract.kube_front import create
from tests.support.cli.fleet_files import POOL, make_node_manifests
from tests.support.cli.live_cases import Guarded, serve_cluster


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("cli.completion.completer.NAME_QUERY_TIMEOUT_SECONDS", 600)  # this machine may be slow
    with serve_cluster(tmp_path) as (kube, path):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for name in ("node-a", "node-b"):
            for manifest in make_node_manifests(name, 4):
                create(kube, "/api/v1/nodes", manifest)
        yield path


def complete_word(dest: str, prefix: str = "", *, metavar: str = "", **options: str) -> list[str]:
    action = argparse.Action(["--x"], dest, metavar=metavar)
    return list(_choose_completer(action)(prefix=prefix, parsed_args=argparse.Namespace(**options)))


@pytest.mark.loopback
def test_names_are_completed_from_the_selected_cluster(config: str) -> None:
    assert complete_word("nodepool", kubeconfig=config) == ["default"]
    assert complete_word("node", "node-b", kubeconfig=config) == ["node-b"]
    assert complete_word("name", kind="node", kubeconfig=config, context="here") == ["node-a", "node-b"]
    assert complete_word("name", kind="pod", kubeconfig=config) == []
    assert {path.partition("?")[2] for _, path, _ in Guarded.requests} == {"limit=500"}


@pytest.mark.loopback
def test_contexts_are_completed_from_the_kubeconfig(config: str) -> None:
    assert complete_word("context", kubeconfig=config) == ["here", "away"]
    assert complete_word("context", "a", kubeconfig=config) == ["away"]


@pytest.mark.loopback
def test_forbidden_list_request_completes_to_nothing(config: str) -> None:
    Guarded.forbidden = "/nodepools"
    assert complete_word("nodepool", kubeconfig=config) == []


@pytest.mark.parametrize("text", ["{", "- a", "contexts: 3", ""])
def test_unreadable_kubeconfig_completes_to_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    assert complete_word("context", kubeconfig=str(tmp_path / "config")) == []
    assert complete_word("nodepool", kubeconfig=str(tmp_path / "config")) == []


@pytest.mark.parametrize(("metavar", "is_file"), [("FILE|DIR|-", True), ("CATALOGUE", True), ("TEXT", False)])
def test_file_options_complete_file_names(metavar: str, is_file: bool) -> None:  # noqa: FBT001
    action = argparse.Action(["--x"], "x", metavar=metavar)
    assert isinstance(_choose_completer(action), FilesCompleter) == is_file
    assert is_file or complete_word("x", metavar=metavar) == []
