"""The follower runs a page as written, and reports differences."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.guide.awscli import NoSuchCall, parse_command, render_response
from tests.guide.following import Follower, NotAsWritten
from tests.guide.pages import Block, list_followed_blocks, parse_blocks

PAGE = """# A page

```sh
export GREETING=hello
echo $GREETING NAME
```

```text
hello …
```

<!-- not followed: nobody can -->
```sh
false
```

- indented

  ```sh
  echo "$GREETING again"
  ```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    monkeypatch.setattr("tests.guide.pages.ROOT", tmp_path)
    return path


@pytest.fixture
def follower() -> Iterator[Follower]:
    with Follower({}, {"NAME": "prod"}, ()) as follower:
        yield follower


def make_block(text: str, expected: str = "") -> Block:
    return Block(page="page.md", line=1, language="sh", text=text, expected=expected)


def test_page_blocks_run_in_order_in_one_shell_session(page: Path, follower: Follower) -> None:
    first, unfollowed, last = parse_blocks(page)
    assert (first.expected, unfollowed.unfollowed, last.line) == ("hello …\n", "nobody can", 19)
    assert [follower.play(page_block) for page_block in list_followed_blocks(page)] == ["hello prod\n", "hello again\n"]


def test_failing_command_or_unexpected_output_is_reported(follower: Follower) -> None:
    with pytest.raises(NotAsWritten, match="ends with 3"):
        follower.play(make_block("echo before; (exit 3)\necho behind"))
    assert follower.play(msgspec.structs.replace(make_block("echo so; exit 3"), ends=(1, 3))) == "so\n"
    with pytest.raises(NotAsWritten, match="ends with 1"):
        follower.play(make_block("false | cat"))
    with pytest.raises(NotAsWritten, match="'b …'"):
        follower.follow([make_block("echo a"), make_block("echo a; echo b", "b …\na")])


def test_follower_has_no_aws_credentials_and_writes_only_to_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    messages: list[str] = []
    with Follower({"AWS_REGION": "here"}, {}, (), tell=messages.append) as follower:
        assert follower.play(make_block("env | grep AWS_")) == "AWS_REGION=here\n"
        assert "env | grep AWS_" in messages[0]
        follower.play(make_block("test -e cdk.json && test ! -e cdk.out && touch written-by-a-page"))
    assert not Path("written-by-a-page").exists()


@pytest.mark.parametrize(
    ("line", "parameters"),
    [
        (
            "eks update-nodegroup-config --cluster-name a --nodegroup-name b --scaling-config minSize=0,desiredSize=1",
            {"clusterName": "a", "nodegroupName": "b", "scalingConfig": {"minSize": 0, "desiredSize": 1}},
        ),
        (
            "ec2 describe-instances --filters Name=tag:a,Values=b,c --dry-run",
            {"Filters": [{"Name": "tag:a", "Values": ["b", "c"]}], "DryRun": True},
        ),
        ('sqs send-message --queue-url u --message-body {"a":1}', None),
        ("eks update-nodegroup-config --cluster-name a", None),
        ("eks update-nodegroup --cluster-name a", None),
        ("ekss list-clusters", None),
        ("eks list-clusters --names a", None),
        ("eks list-clusters a", None),
        ("eks update-nodegroup-config --scaling-config small", None),
        ("eks update-nodegroup-config --scaling-config minimum=1", None),
    ],
)
def test_aws_command_is_parsed_like_the_aws_cli_or_rejected(line: str, parameters: object) -> None:
    if parameters is None:
        with pytest.raises(NoSuchCall):
            parse_command(line.split())
    else:
        assert parse_command(line.split())[2] == parameters


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (["--query", "Stacks[0].Outputs[?OutputKey=='Bucket'].OutputValue", "--output", "text"], "b-1\n"),
        (["--query", "Stacks[].StackName", "--output", "text"], "first\tsecond\n"),
        (["--query", "Stacks[1].StackName"], '"second"\n'),
    ],
)
def test_aws_response_is_selected_by_query_and_printed_as_text(options: list[str], output: str) -> None:
    outputs = [{"OutputKey": "Bucket", "OutputValue": "b-1"}, {"OutputKey": "Table", "OutputValue": "t-1"}]
    response = {"Stacks": [{"StackName": "first", "Outputs": outputs}, {"StackName": "second"}]}
    assert render_response(response, ["cloudformation", "describe-stacks", *options]) == output


def test_interrupted_follower_kills_its_child_processes() -> None:
    pids: list[int] = []

    def interrupt_wait(process: subprocess.Popen[bytes]) -> int:
        pids.append(process.pid)
        raise KeyboardInterrupt

    with Follower({}, {}, (), wait=interrupt_wait) as follower, pytest.raises(KeyboardInterrupt):
        follower.play(make_block("sleep 60"))
    for _ in range(6000):  # the parent that inherits the ended process reaps it asynchronously
        try:
            os.killpg(pids[0], 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(pids)
