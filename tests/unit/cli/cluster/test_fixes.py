"""Error messages with fixes for clusters and accounts that do not respond or deny access."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.aws.session import describe_fault
from cli.cluster.fixes import (
    KUBECTL_HINT,
    SIGN_IN_HINT,
    is_credential_error,
    suggest_account_fix,
    suggest_connection_fix,
    suggest_response_fix,
)
from cli.cluster.kubeconfig import connect_to_cluster
from cli.main import main
from cli.terminal.errors import InputError
from shared.errors import Fault, Forbidden, Invalid, NotFound, Throttled, Unreachable
from shared.kubernetes.errors import build_fault
from tests.support.cli.live_cases import write_kubeconfig

Out = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate",
            "certificate-authority",
        ),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "does not use TLS"),
        ("Failed to resolve 'x.eks' ([Errno -2] Name or service not known)", "the host does not exist"),
        ("Read timed out. (read timeout=60)", "a private endpoint responds only within its VPC"),
        ("[Errno 111] Connection refused", KUBECTL_HINT),
    ],
)
def test_unreachable_cluster_error_suggests_a_fix(words: str, remedy: str) -> None:
    assert remedy in suggest_connection_fix(Unreachable(f"GET /version: {words}"))


@pytest.mark.parametrize(
    ("fault", "embedded", "words"),
    [
        (Forbidden("s3:ListObjectsV2: Unable to locate credentials"), False, SIGN_IN_HINT),
        (
            Forbidden("ec2:DescribeSubnets: ExpiredToken: the token is expired"),
            True,
            f"{SIGN_IN_HINT}, or use --embedded",
        ),
        (
            NotFound("s3:ListObjectsV2: NoSuchBucket: nosuch"),
            False,
            "the bucket's name is the stack output JoinerBucketName",
        ),
        (
            Forbidden("ec2:DescribeSubnets: AccessDenied"),
            False,
            "`aws sts get-caller-identity`, and its permissions",
        ),
        (
            Unreachable('Could not connect to the endpoint URL: "https://ec2.eu-west-9"'),
            False,
            "check --region, $AWS_REGION and the network",
        ),
        (Unreachable("the answer is no XML"), False, "check --region and the network"),
        (Throttled("slow down"), False, "try again in a minute"),
        (NotFound("ssm:GetParameter /x"), False, "check the name, the account and --region"),
        (Invalid("ec2:DescribeImages: bad id"), False, ""),
    ],
)
def test_aws_account_error_suggests_a_fix(fault: Fault, *, embedded: bool, words: str) -> None:
    assert words in suggest_account_fix(fault, embedded=embedded)
    assert ("--embedded" in describe_fault(fault, embedded=embedded)) is embedded


@pytest.mark.parametrize(
    ("code", "words"), [(401, "the token has expired"), (429, "is overloaded"), (403, "check with kubectl")]
)
def test_cli_error_hints_address_the_user_instead_of_the_function(code: int, words: str) -> None:
    fault = build_fault("GET /api/v1/nodes", code, b"", {}, suggest_response_fix)
    assert words in str(fault)
    assert "the function" not in str(fault)
    assert suggest_response_fix(403, "nodes is forbidden") == ""


def test_sign_in_hint_is_only_for_credential_errors() -> None:
    assert is_credential_error("The SSO session associated with this profile has expired")
    assert not is_credential_error(Forbidden("AccessDenied: you may not"))


@pytest.mark.parametrize(
    ("context", "words"), [("hree", "did you mean 'here'?"), ("elsewhere-entirely", "`kubectl config get-contexts`")]
)
def test_misspelled_context_gets_a_suggestion(tmp_path: Path, context: str, words: str) -> None:
    config = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", username="anybody")
    with pytest.raises(InputError, match=words.replace("?", "[?]")):
        connect_to_cluster(config, context)


def with_plugin(path: Path, *command: str) -> str:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": command[0], "args": [*command[1:]]}
    return write_kubeconfig(path / "config", "http://127.0.0.1:1", exec=plugin)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("no-such-plugin",), "no-such-plugin': install the command of users[].user.exec"),
        (("sh", "-c", "echo 'Unable to locate credentials' >&2; exit 255"), SIGN_IN_HINT),
        (("sh", "-c", "echo 'no idea' >&2; exit 3"), "no idea: run the command of users[].user.exec yourself"),
    ],
)
def test_failing_exec_plugin_is_reported_with_a_fix(tmp_path: Path, command: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError) as raised:
        connect_to_cluster(with_plugin(tmp_path, *command), "")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


PROFILED = (
    ("audit", "--cluster", "x", "--region", "eu-west-1"),
    ("catalog", "build", "--region", "eu-west-1", "-o", "x"),
    ("cost", "--journal", "s3://x"),
    ("doctor", "--cluster", "x", "--region", "eu-west-1"),
    ("explain", "pod", "x", "--journal", "s3://x"),
    ("replay", "latest", "--journal", "s3://x"),
    ("report", "--journal", "s3://x"),
)


@pytest.mark.parametrize("command", PROFILED, ids=lambda one: one[0])
@pytest.mark.parametrize("output", [(), ("-o", "json")], ids=["table", "json"])
def test_missing_aws_profile_prints_a_one_line_error(
    tmp_path: Path, command: tuple[str, ...], output: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main([*command, *(() if "-o" in command else output)]) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"joiner {command[0]}: $AWS_PROFILE: ")
    assert captured.err.count("\n") == 1
    assert "`aws configure list-profiles` lists the profiles" in captured.err


def test_status_shows_the_fleet_despite_a_missing_aws_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    empty: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": []}
    (tmp_path / "c.json").write_text(json.dumps(empty))
    assert main(["status", "-f", str(tmp_path / "c.json"), "--cluster", "x", "--region", "eu-west-1"]) == 0
    assert "joiner-x could not be read: $AWS_PROFILE: " in capsys.readouterr().out
