"""`-c cluster=NAME` selects settings files; everything else is refused with the command to run instead."""

import re
from pathlib import Path

import pytest

from infra.settings.files.selection import ROOT, load_cluster, select_clusters
from infra.settings.settings import StackOptions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prod.yaml").write_text("mode: plan\nreaction: watch\n")
    (tmp_path / "test.yaml").write_text("log-days: 7\n")
    (tmp_path / "prod-eu.yaml").write_text("cluster: prod\nregion: eu-west-1\n")
    (tmp_path / "example.yaml").write_text("")
    return tmp_path


def test_two_clusters_have_their_own_settings(folder: Path) -> None:
    assert select_clusters({"cluster": "prod, test", "clusters-folder": str(folder), "@aws-cdk/core:x": True}) == (
        StackOptions(cluster="prod", mode="plan", reaction="watch"),
        StackOptions(cluster="test", log_days=7),
    )


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {},
            (
                "no cluster is selected: add `-c cluster=NAME`, for example `npx cdk deploy -c cluster=prod`; {folder} "
                "has settings of prod, prod-eu, test"
            ),
        ),
        ({"cluster": " , "}, "no cluster is selected"),
        (
            {"cluster": "tset"},
            (
                "{folder}/tset.yaml does not exist: did you mean test? {folder} has settings of prod, prod-eu, test; "
                "to create it, run `make settings CLUSTER=tset`"
            ),
        ),
        ({"cluster": "prod,prod"}, "-c cluster=prod,prod: prod is there twice"),
        ({"cluster": "prod,prod-eu"}, "two of the selected files are for the cluster prod: deploy one of them after"),
        ({"cluster": "../prod"}, "'../prod' is not the name of a cluster: must be a name of at most 60 letters"),
        ({"joiner:cluster": "prod"}, "-c joiner:cluster=prod: write -c cluster=prod"),
        (
            {"cluster": "prod", "joiner:mode": "active"},
            (
                "-c joiner:mode=active: the command line has no settings, because the next deployment would not have "
                "them; to fix: run `make settings CLUSTER=prod SET='mode=active'`, or write `mode: active` into "
                "clusters/prod.yaml"
            ),
        ),
        ({"cluster": "prod", "mode": "active"}, "-c mode=active: the command line has no settings"),
        ({"joiner:mode": "active"}, "run `make settings CLUSTER=NAME SET='mode=active'`"),
        ({"cluster": "prod", "joiner:mod": "x"}, "-c joiner:mod: mod is not a setting: did you mean mode?"),
        (
            {"cluster": "prod", "joiner:log-days": 7},
            (
                "cdk.json has joiner:log-days, but settings are in a file for each cluster: run `make settings "
                "CLUSTER=prod FROM=cdk.json`, and then `git checkout cdk.json`"
            ),
        ),
    ],
)
def test_refused_context_names_the_command_to_run(context: dict[str, object], message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message.format(folder=folder))):
        select_clusters({"clusters-folder": str(folder), **context}, ["joiner:log-days"])


def test_without_any_file_the_error_says_how_to_create_one(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"run `make settings CLUSTER=NAME`, which .* `npx cdk deploy -c cluster=NAME`"
    ):
        select_clusters({"clusters-folder": str(tmp_path)})
    with pytest.raises(ValueError, match="there are no settings files; to create it, run `make settings CLUSTER=prod`"):
        load_cluster("prod", tmp_path)


def test_an_error_names_the_file(folder: Path) -> None:
    (folder / "prod.yaml").write_text("mode: often\n")
    with pytest.raises(ValueError, match=re.escape(f"{folder}/prod.yaml: line 1: mode is 'often': must be active or")):
        load_cluster("prod", folder)
    (folder / "prod.yaml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"prod.yaml cannot be read"):
        load_cluster("prod", folder)


def test_files_of_users_are_ignored_by_git_and_the_example_is_not() -> None:
    lines = (ROOT / ".gitignore").read_text().splitlines()
    assert lines.index("/clusters/*") < lines.index("!/clusters/example.yaml")
