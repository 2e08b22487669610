"""`make settings` creates and changes settings files; settings survive every later command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.settings.files.changes import render_settings_file
from infra.settings.files.command import main
from infra.settings.files.selection import ROOT, load_cluster, select_clusters
from infra.settings.settings import StackOptions
from infra.stack.application import CDK_JSON


def run(folder: Path, *arguments: str) -> int:
    return main(["--folder", str(folder), *arguments])


def test_settings_survive_consecutive_deployments_with_different_commands(tmp_path: Path) -> None:
    """The first installation, disruption, a slower reaction, an emergency stop and its end: nothing is forgotten."""
    folder, selected = tmp_path / "clusters", {"cluster": "prod", "clusters-folder": str(tmp_path / "clusters")}
    steps: list[tuple[str, dict[str, str]]] = [
        ("", {"disruption": "plan", "reaction": "watch", "mode": "active"}),
        ("disruption=active", {"disruption": "active", "reaction": "watch", "mode": "active"}),
        ("reaction=tick", {"disruption": "active", "reaction": "tick", "mode": "active"}),
        ("mode=plan", {"disruption": "active", "reaction": "tick", "mode": "plan"}),
        ("mode=active", {"disruption": "active", "reaction": "tick", "mode": "active"}),
    ]
    for assignment, expected in steps:
        assert run(folder, "prod", *filter(None, [assignment])) == 0
        for _ in range(2):  # a deployment without a change applies the same settings
            [options] = select_clusters(selected)
            assert options == StackOptions(cluster="prod", **expected)  # type: ignore[arg-type]


def test_the_first_run_writes_all_settings_as_comments_and_a_second_run_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "prod") == 0
    assert (tmp_path / "prod.yaml").read_text() == render_settings_file()
    (tmp_path / "prod.yaml").write_text("mode: plan # mine\n")
    assert run(tmp_path, "prod") == 0
    assert (tmp_path / "prod.yaml").read_text() == "mode: plan # mine\n"
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/prod.yaml: created",
        "To deploy: npx cdk deploy -c cluster=prod",
        f"{tmp_path}/prod.yaml: unchanged",
        "To deploy: npx cdk deploy -c cluster=prod",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prod", "mode=often"], "prod.yaml: line 1: mode is 'often': must be active or plan"),
        (["prod", "mod=plan"], "mod is not a setting: did you mean mode?"),
        (["prod", "mode"], "'mode' is not like NAME=VALUE"),
        (["prod", "network=private"], "network is private: set subnets"),
        (["a,b"], "'a,b' is not the name of a cluster"),
        ([""], "name the cluster: make settings CLUSTER=prod"),
        (["prod", "--from", "missing.json"], "missing.json is not a cdk.json"),
    ],
)
def test_an_invalid_change_leaves_the_file_as_it_is(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prod.yaml").write_text("mode: active\n")
    assert run(tmp_path, *arguments) == 2
    assert message in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mode: active\n"]


def test_settings_of_version_0_1_0_are_moved_with_the_options_of_the_last_deployment(tmp_path: Path) -> None:
    context = {
        "//joiner:mode": "a comment",
        "joiner:cluster": "demo",
        "joiner:mode": "active",
        "joiner:log-days": 7,
        "joiner:windows": True,
        "joiner:tags": {"team": "platform"},
        "joiner:disruption-budgets": [{"nodes": "5%"}],
        "joiner:node-roles": "a,b",
        "@aws-cdk/core:x": True,
    }
    old = tmp_path / "old-cdk.json"
    old.write_text(json.dumps({"app": "x", "context": context}))
    assert run(tmp_path, "prod", "--from", str(old), "joiner:reaction=watch") == 0
    assert load_cluster("prod", tmp_path) == StackOptions(
        cluster="prod",
        log_days=7,
        windows=True,
        tags={"team": "platform"},
        disruption_budgets='[{"nodes":"5%"}]',
        node_roles=("a", "b"),
        reaction="watch",
    )
    assert "\nmode:" not in (tmp_path / "prod.yaml").read_text()


def test_a_setting_of_version_0_1_0_with_another_name_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"context": {"joiner:hints": "Given"}}))
    assert run(tmp_path, "prod", "--from", str(old)) == 2
    assert "hints is not a setting: did you mean pod-nominations?" in capsys.readouterr().err
    assert not (tmp_path / "prod.yaml").exists()


def test_cdk_json_has_neither_a_cluster_nor_settings() -> None:
    assert all(
        key.startswith(("@aws-cdk", "@aws-cdk-containers")) for key in json.loads(CDK_JSON.read_text())["context"]
    )


@pytest.mark.parametrize(
    ("context", "error"),
    [
        ('{"cluster": "none-such"}', "joiner: clusters/none-such.yaml does not exist: "),
        ('{"joiner:cluster": "prod"}', "joiner: -c joiner:cluster=prod: write -c cluster=prod"),
        ("{}", "joiner: no cluster is selected: "),
    ],
)
def test_the_application_prints_one_line_and_no_traceback(context: str, error: str) -> None:
    completed = subprocess.run(
        [sys.executable, str(ROOT / "app.py")],
        cwd=ROOT,
        env={**os.environ, "CDK_CONTEXT_JSON": context},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1].startswith(error)
    assert "Traceback" not in completed.stderr
