"""Tests of the commands that the hub suggests for a cluster."""

import shlex
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.hub.hub_file import HubCluster
from cli.hub.next_steps import list_next_steps
from cli.hub.session import HubRow
from cli.hub.summary.cluster_summary import ClusterSummary
from cli.main import main

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
ROLE = "arn:aws:iam::444455556666:role/joiner-hub"
PLAIN = HubCluster(name="prod", bucket="joiner-prod", region="us-east-1", context="prod")
WITH_ROLE = HubCluster(name="batch", bucket="joiner-batch", region="eu-west-1", role=ROLE, external_id="joiner-hub")
FOLDER = HubCluster(name="copy", folder="my copies/prod")


def list_commands(cluster: HubCluster, *, error: str = "", **values: Any) -> list[str]:
    summary = None if error else ClusterSummary(last_entry_at=AT, **values)
    return [step.command for step in list_next_steps(HubRow(cluster=cluster, summary=summary, error=error))]


def test_cluster_without_problems_leads_to_its_page_and_costs() -> None:
    assert list_commands(PLAIN) == [
        "AWS_REGION=us-east-1 joiner ui --journal s3://joiner-prod",
        "AWS_REGION=us-east-1 joiner cost --journal s3://joiner-prod",
    ]
    assert list_commands(FOLDER)[0] == "joiner ui --journal 'my copies/prod'"


@pytest.mark.parametrize(
    ("values", "command"),
    [
        ({"is_silent": True}, "joiner doctor --context prod"),
        ({"pending_pods": 2}, "joiner status --context prod"),
        ({"pauses": ("by anna",)}, "joiner status --context prod"),
        ({"drifted_nodes": 1}, "joiner drift --context prod"),
    ],
)
def test_most_urgent_command_comes_first(values: dict[str, Any], command: str) -> None:
    assert list_commands(PLAIN, **values)[0] == command


def test_without_a_context_in_the_hub_file_the_command_has_a_placeholder() -> None:
    assert list_commands(WITH_ROLE, drifted_nodes=1)[0] == "joiner drift --context CONTEXT"


def test_refused_role_leads_to_the_caller_and_the_role() -> None:
    commands = list_commands(WITH_ROLE, error="AccessDenied")
    assume = f"aws sts assume-role --role-arn {ROLE} --role-session-name joiner-hub --external-id joiner-hub"
    assert commands[:2] == ["aws sts get-caller-identity", f"{assume} --query AssumedRoleUser"]
    assert commands[3:] == [
        "aws s3 ls s3://joiner-batch/journal/ --region eu-west-1",
        "joiner doctor --context CONTEXT",
    ]
    assert list_commands(PLAIN, error="AccessDenied") == [
        "aws s3 ls s3://joiner-prod/journal/ --region us-east-1",
        "joiner doctor --context prod",
    ]
    assert list_commands(FOLDER, error="folder not found") == ["ls 'my copies/prod'/journal"]


def test_export_command_sets_the_credentials_that_sts_returns(tmp_path: Any) -> None:
    stub = tmp_path / "aws"
    stub.write_text('#!/bin/sh\necho "$@" > arguments\nprintf "AKID\\tSECRET/+\\tTOKEN="\n')
    stub.chmod(0o755)
    [export] = [command for command in list_commands(WITH_ROLE) if command.startswith("export ")]
    script = f'{export}\necho "$AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY $AWS_SESSION_TOKEN"'
    shell = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert shell.stdout.decode().split() == ["AKID", "SECRET/+", "TOKEN="]
    arguments = (tmp_path / "arguments").read_text()
    assert f"--role-arn {ROLE}" in arguments
    assert "--external-id joiner-hub" in arguments


@pytest.mark.parametrize("cluster", [PLAIN, WITH_ROLE])
def test_suggested_joiner_commands_exist_with_their_options(
    cluster: HubCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    values: dict[str, Any] = {"is_silent": True, "pending_pods": 1, "drifted_nodes": 1, "pauses": ("x",)}
    for command in list_commands(cluster, **values):
        words = [word for word in shlex.split(command) if not word.startswith("AWS_")]
        if words[0] == "joiner":
            with pytest.raises(SystemExit, match="0"):
                main([*words[1:], "--help"])
            assert words[2] in capsys.readouterr().out
