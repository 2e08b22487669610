"""What holds for every command of `joiner`: help, shapes, how it ends, and what it says where something is missing."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cli.main import COMMANDS, GROUPS, main, parser_for
from shared.errors import Unreachable
from tests.unit.fleet_files import small

Out = pytest.CaptureFixture[str]
Parser = argparse.ArgumentParser

LIVE: Final = {
    "audit": ("--cluster", "demo"),
    "consolidate": ("--instance-types", "examples/catalogue.json"),
    "drift": (),
    "pause": (),
    "plan": ("--instance-types", "examples/catalogue.json"),
    "rebalance": ("--plan", "--instance-types", "examples/catalogue.json"),
    "resume": (),
    "status": (),
    "top": (),
    "uninstall": ("--yes",),
}
"""What asks a cluster, and what else it has to be told."""
SILENT: Final = {
    "completion": "it prints a script",
    "playground": "it has commands of its own, and goes on until it is stopped",
}
"""What has no -o json, and why."""


def subparsers(parser: Parser) -> dict[str, Parser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            return dict(action.choices)
    return {}


def own(command: str) -> list[tuple[str, Parser]]:
    """Answer the parser of *command*, or of its own commands where it has some."""
    parser = subparsers(parser_for(command))[command]
    return [(f"{command} {name}", one) for name, one in subparsers(parser).items()] or [(command, parser)]


WHOLE: Final = [pytest.param(name, subparsers(parser_for(name))[name], id=name) for name in COMMANDS]
EVERY: Final = [pytest.param(name, one, id=name) for command in COMMANDS for name, one in own(command)]


def test_every_command_has_its_place_and_every_place_its_command() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert sorted(placed) == sorted(set(placed))
    assert set(COMMANDS) <= set(placed)
    assert list(COMMANDS) == sorted(COMMANDS)


@pytest.mark.parametrize(("name", "parser"), WHOLE)
def test_help_says_what_it_does_with_examples_and_exit_codes(name: str, parser: Parser) -> None:
    assert parser.description
    said = parser.format_help()
    assert "examples:\n" in said
    assert "exit codes: 0 " in said
    assert f"joiner {name}" in said.partition("examples:\n")[2]
    assert max(map(len, (parser.epilog or "").splitlines())) <= 120


@pytest.mark.parametrize(("name", "parser"), EVERY)
def test_an_action_of_a_command_says_what_it_does_too(name: str, parser: Parser) -> None:
    assert parser.description, name
    assert "exit codes: 0 " in parser.format_help()


@pytest.mark.parametrize(("name", "parser"), WHOLE)
def test_how_it_ends_when_it_is_interrupted_is_said(name: str, parser: Parser) -> None:
    said = " ".join(parser.format_help().partition("exit codes: ")[2].split())
    assert ("130 interrupted" in said) == (name not in SILENT)


@pytest.mark.parametrize(("name", "parser"), EVERY)
def test_every_option_says_what_it_is_for(name: str, parser: Parser) -> None:
    assert [one.dest for one in parser._actions if not one.help] == [], name  # noqa: SLF001 - argparse has no other list


@pytest.mark.parametrize(("name", "parser"), EVERY)
def test_there_is_json_with_its_shape_in_words(name: str, parser: Parser) -> None:
    if name.split(maxsplit=1)[0] in SILENT:
        return
    output = next(one for one in parser._actions if one.dest == "output")  # noqa: SLF001 - argparse has no other list
    assert output.choices is None or "json" in output.choices
    assert output.option_strings == ["-o", "--output"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_its_help(command: str, capsys: Out) -> None:
    told = []
    for arguments in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


def test_help_alone_is_that_of_all(capsys: Out) -> None:
    for arguments in (["help"], ["--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
    whole = capsys.readouterr().out
    assert all(f"{title}:" in whole for title, names in GROUPS.items() if set(names) & set(COMMANDS))


@pytest.mark.parametrize(
    ("typed", "meant"), [("stauts", "status"), ("pasue", "pause"), ("consoldiate", "consolidate"), ("xyzzy", "")]
)
def test_a_command_that_is_misspelt_is_guessed(typed: str, meant: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([typed])
    told = capsys.readouterr().err
    assert f"there is no command {typed!r}" in told
    assert (f"did you mean {meant!r}?" in told) == bool(meant)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_there_is_not_is_wrong_usage(command: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*complete(command), "--no-such-option"])
    told = capsys.readouterr()
    assert told.err.startswith("usage: joiner")
    assert "--no-such-option" in told.err
    assert told.out == ""


def raising(error: BaseException) -> Callable[..., int]:
    def run(*_: object, **__: object) -> int:
        raise error

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_130_without_a_traceback(command: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = import_module(f"cli.{command}")
    add_to = module.add_to

    def adding(parser: Parser) -> None:
        add_to(parser)
        for one in (parser, *subparsers(parser).values()):
            for action in one._actions:  # noqa: SLF001 - argparse has no other list
                action.required = False
            one.set_defaults(run=raising(KeyboardInterrupt()))

    monkeypatch.setattr(module, "add_to", adding)
    assert main(complete(command)) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


def complete(command: str) -> list[str]:
    """Answer the least that *command* can be called with."""
    found = [command]
    parser = subparsers(parser_for(command))[command]
    below = subparsers(parser)
    if below:
        name = next(iter(below))
        found, parser = [*found, name], below[name]
    for one in parser._actions:  # noqa: SLF001 - argparse has no other list
        if not one.option_strings and one.nargs not in ("?", "*") and not isinstance(one, argparse._SubParsersAction):  # noqa: SLF001 - as above
            found.append(str(next(iter(one.choices))) if one.choices else "x")
        elif one.option_strings and one.required:
            found += [one.option_strings[-1], "x"]
    return found


@pytest.mark.parametrize("command", sorted(LIVE))
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--kubeconfig", "{folder}/none"), "none: no such kubeconfig: name one with --kubeconfig"),
        (("--kubeconfig", "{folder}/broken"), "broken: context (the current one): "),
        (("--kubeconfig", "{folder}/config", "--context", "nobody"), "nobody"),
        (("--kubeconfig", "{folder}/config"), "GET /"),
        (("--kubeconfig", "{folder}/config", "-o", "json"), "GET /"),
    ],
)
def test_a_cluster_that_is_not_reached_is_named_with_what_to_do(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, command: str, given: tuple[str, ...], words: str
) -> None:
    from cli import clouds  # noqa: PLC0415 - what the command imports when it runs
    from cli.files import InputError  # noqa: PLC0415
    from cli.kubeconfig import ReadOnlyKube  # noqa: PLC0415

    def away(_: object, method: str, path: str, *__: object, **___: object) -> bytes:
        raise Unreachable(f"{method} {path}: nobody answers")

    monkeypatch.setattr(ReadOnlyKube, "_call", away)
    monkeypatch.setattr(clouds, "opened", raising(InputError("GET / of an account that is not asked")))
    (tmp_path / "broken").write_text("{")
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "here", "context": {"cluster": "c", "user": "u"}}
    config = {
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": {}}],
        "current-context": "here",
    }
    (tmp_path / "config").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
    assert main([command, *LIVE[command], *(one.format(folder=tmp_path) for one in given)]) == 1
    told = capsys.readouterr()
    assert told.err.startswith(f"joiner {command}: ")
    assert words in told.err
    assert "Traceback" not in told.err
    assert told.out == "", "a program that reads it would take this for an answer"


ON_FILES: Final = ("consolidate", "drift", "plan", "rebalance --plan", "status", "top")
"""What answers for files."""


@pytest.mark.parametrize("command", ON_FILES)
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_what_a_program_reads_can_be_read(tmp_path: Path, capsys: Out, command: str, output: str) -> None:
    files = [one for one in small(tmp_path) if command in CLOCKED or not one.startswith(("--now", "2026-"))]
    assert main([*command.split(), *files, "-o", output]) == 0
    told = capsys.readouterr().out
    assert json.loads(told) if output == "json" else yaml.safe_load(told)


@pytest.mark.parametrize("command", [*ON_FILES, "doctor"])
def test_files_of_which_nothing_can_be_read_are_no_empty_cluster(tmp_path: Path, capsys: Out, command: str) -> None:
    _, _, *catalogue = small(tmp_path)[:4]
    missing = str(tmp_path / "none.yaml")
    assert main([*command.split(), "-f", missing, *(catalogue if command != "doctor" else ())]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{missing}: No such file or directory: check the path" in told.err


PLANNING: Final = ("consolidate", "plan", "rebalance --plan")
"""What plans for files, or for the current context's cluster."""


@pytest.mark.parametrize("command", PLANNING)
def test_who_names_neither_files_nor_a_cluster_and_has_no_kubeconfig_is_told_both_ways(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(command.split()) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{tmp_path / 'none'}: no such kubeconfig: name one with --kubeconfig" in told.err
    assert told.err.endswith("; or name files with -f\n")


@pytest.mark.parametrize("command", ["--version", "drift", "lint"])
def test_where_nobody_reads_what_is_written_it_ends_as_otherwise(tmp_path: Path, command: str) -> None:
    files = small(tmp_path)[:2] if command != "--version" else []
    code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
    inner = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    run = [sys.executable, "-c", code, inner, command, *files]
    process = subprocess.run(run, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in process.stderr
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")  # noqa: PTH110 - no path of ours
@pytest.mark.parametrize("command", ["--version", "drift"])
def test_an_answer_that_cannot_be_written_is_no_success(tmp_path: Path, command: str) -> None:
    files = small(tmp_path)[:2] if command != "--version" else []
    code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    with open("/dev/full", "w") as full:  # noqa: PTH123 - as above
        run = [sys.executable, "-c", code, command, *files]
        process = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.stderr.startswith("joiner: the answer could not be written: ")
    assert "Traceback" not in process.stderr
    assert process.returncode == 1


CLOCKED: Final = ("consolidate", "plan", "rebalance --plan")
"""What may be told the time."""


@pytest.mark.parametrize("command", [*ON_FILES, "completion bash", "help"])
def test_a_reader_that_has_gone_gets_no_traceback(tmp_path: Path, command: str) -> None:
    files = small(tmp_path)[:4] if command in ON_FILES else []
    code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    read, write = os.pipe()
    os.close(read)
    run = [sys.executable, "-c", code, *command.split(), *files]
    try:
        process = subprocess.run(run, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert "Traceback" not in process.stderr
    assert "Exception ignored" not in process.stderr
    assert process.returncode in (0, 1)


SIGNS: Final = "wéb-…-🚀"


@pytest.mark.parametrize("command", [*ON_FILES, "help", "pause --help", "nothing-…"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_characters_gets_its_answer(tmp_path: Path, command: str, encoding: str) -> None:
    files = named_oddly(tmp_path) if command in ON_FILES else []
    process = ran(*command.split(), *files, PYTHONIOENCODING=encoding, COLUMNS="40")
    assert "Traceback" not in process.stderr
    assert process.returncode in ((0, 1) if command in ON_FILES else (0, 2))
    process.stdout.encode(encoding)


@pytest.mark.parametrize("command", ON_FILES)
def test_json_is_the_same_where_few_characters_are_known(tmp_path: Path, command: str) -> None:
    if command in CLOCKED:
        return
    files = named_oddly(tmp_path)
    plain, few = (ran(*command.split(), *files, "-o", "json", PYTHONIOENCODING=one) for one in ("utf-8", "ascii"))
    timeless = [
        {**read, "at": None} if isinstance(read := json.loads(one.stdout), dict) else read for one in (plain, few)
    ]
    assert timeless[0] == timeless[1]


def named_oddly(tmp_path: Path) -> list[str]:
    """Write the small fleet with names that few terminals know."""
    files = small(tmp_path)[:4]
    for path in tmp_path.rglob("*.json"):
        path.write_text(path.read_text().replace("shop", SIGNS))
    return files


def ran(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, **environment}
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, encoding=encoding, check=False
    )


# Completion


def completed(line: str, tmp_path: Path, **environment: str) -> list[str]:
    """Answer what the tab key offers behind *line*."""
    out = tmp_path / "completions"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    # A machine may be too slow for whoever waits for the tab key.
    code = "import cli.completing; cli.completing.PATIENCE = 600; from cli.main import main; main([])"
    run = [sys.executable, "-c", code]
    process = subprocess.run(
        run, env={**os.environ, **asked, **environment}, capture_output=True, text=True, check=True
    )
    assert (process.stdout, process.stderr) == ("", "")
    return out.read_text().split("\013")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("joiner pa", ["pause"]),
        ("joiner plan -o ", ["table", "json", "yaml"]),
        ("joiner pause --rea", ["--reason"]),
        ("joiner explain no", ["node", "nodepool", "nodeclaim"]),
        ("joiner completion ", ["bash", "zsh", "fish"]),
        ("joiner help unin", ["uninstall"]),
        ("joiner plan -f READ", ["README.md"]),
        ("joiner pause --for ", [""]),
    ],
)
def test_what_can_be_typed_is_offered(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == offered


def test_shells_that_show_more_are_told_what_a_command_does(tmp_path: Path) -> None:
    [offered] = completed("joiner pa", tmp_path, _ARGCOMPLETE_SHELL="zsh")
    assert offered == f"pause:{COMMANDS['pause']}"


def test_all_commands_are_offered(tmp_path: Path) -> None:
    assert sorted(completed("joiner ", tmp_path)) == sorted([*COMMANDS, "help"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    from tests.contract.kube_front import create  # noqa: PLC0415
    from tests.unit.fleet_files import POOL, machine  # noqa: PLC0415
    from tests.unit.live_cases import live  # noqa: PLC0415

    with live(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for one in machine("node-a", 4):
            create(kube, "/api/v1/nodes", one)
        yield config


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("joiner pause --nodepool ", ["default"]),
        ("joiner top --nodepool def", ["default"]),
        ("joiner drift no", ["node-a"]),
        ("joiner explain node ", ["node-a"]),
        ("joiner explain pod ", [""]),
        ("joiner status --context ", ["here", "away"]),
        ("joiner pause --context away --nodepool ", [""]),
    ],
)
def test_names_are_those_of_the_cluster(line: str, offered: list[str], served: str, tmp_path: Path) -> None:
    assert completed(line, tmp_path, KUBECONFIG=served) == offered


@pytest.mark.parametrize("line", ["joiner pause --nodepool ", "joiner status --context "])
def test_where_there_is_no_cluster_nothing_is_offered_and_nothing_said(line: str, tmp_path: Path) -> None:
    assert completed(line, tmp_path, KUBECONFIG=str(tmp_path / "none")) == [""]


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete "), ("zsh", "#compdef"), ("fish", "complete ")])
def test_each_shell_has_its_script(shell: str, word: str, capsys: Out) -> None:
    assert main(["completion", shell]) == 0
    told = capsys.readouterr().out
    assert word in told
    assert "joiner" in told
