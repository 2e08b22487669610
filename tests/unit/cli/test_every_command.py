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

from cli.commands import COMMAND_GROUPS, COMMANDS, get_command_module
from cli.main import build_parser, main
from shared.errors import Unreachable
from tests.support.cli.fleet_files import write_small_fleet

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
"""Commands that read a cluster, and the other flags they need."""
SILENT: Final = {
    "completion": "it prints a script",
    "metrics": "it prints the text format of Prometheus, or serves it until it is stopped",
    "playground": "it has commands of its own, and goes on until it is stopped",
    "ui": "it serves a page until it is stopped",
}
"""Commands without -o json, and why."""


def get_subparsers(parser: Parser) -> dict[str, Parser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            return dict(action.choices)
    return {}


def list_parsers(command: str) -> list[tuple[str, Parser]]:
    """Return the parser of *command*, or the parsers of its subcommands."""
    parser = get_subparsers(build_parser(command))[command]
    return [(f"{command} {name}", subparser) for name, subparser in get_subparsers(parser).items()] or [
        (command, parser)
    ]


COMMAND_PARSERS: Final = [pytest.param(name, get_subparsers(build_parser(name))[name], id=name) for name in COMMANDS]
ALL_PARSERS: Final = [
    pytest.param(name, subparser, id=name) for command in COMMANDS for name, subparser in list_parsers(command)
]


def test_every_command_is_in_exactly_one_help_group() -> None:
    placed = [name for names in COMMAND_GROUPS.values() for name in names]
    assert sorted(placed) == sorted(set(placed))
    assert set(COMMANDS) <= set(placed)
    assert list(COMMANDS) == sorted(COMMANDS)


@pytest.mark.parametrize(("name", "parser"), COMMAND_PARSERS)
def test_help_of_every_command_has_description_examples_and_exit_codes(name: str, parser: Parser) -> None:
    assert parser.description
    help_text = parser.format_help()
    assert "examples:\n" in help_text
    assert "exit codes: 0 " in help_text
    assert f"joiner {name}" in help_text.partition("examples:\n")[2]
    assert max(map(len, (parser.epilog or "").splitlines())) <= 120


@pytest.mark.parametrize(("name", "parser"), ALL_PARSERS)
def test_help_of_every_subcommand_has_description_and_exit_codes(name: str, parser: Parser) -> None:
    assert parser.description, name
    assert "exit codes: 0 " in parser.format_help()


@pytest.mark.parametrize(("name", "parser"), COMMAND_PARSERS)
def test_help_documents_the_interrupt_exit_code(name: str, parser: Parser) -> None:
    exit_codes = " ".join(parser.format_help().partition("exit codes: ")[2].split())
    assert ("130 interrupted" in exit_codes) == (name not in SILENT)


@pytest.mark.parametrize(("name", "parser"), ALL_PARSERS)
def test_every_option_has_help_text(name: str, parser: Parser) -> None:
    assert [action.dest for action in parser._actions if not action.help] == [], name  # noqa: SLF001 - argparse has no other list


@pytest.mark.parametrize(("name", "parser"), ALL_PARSERS)
def test_every_reporting_command_has_json_output(name: str, parser: Parser) -> None:
    if name.split(maxsplit=1)[0] in SILENT:
        return
    output = next(action for action in parser._actions if action.dest == "output")  # noqa: SLF001 - argparse has no other list
    assert output.choices is None or "json" in output.choices
    assert output.option_strings == ["-o", "--output"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_command_prints_the_same_as_the_help_flag(command: str, capsys: Out) -> None:
    outputs = []
    for arguments in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_help_without_a_command_lists_all_command_groups(capsys: Out) -> None:
    for arguments in (["help"], ["--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
    output = capsys.readouterr().out
    assert all(f"{title}:" in output for title, names in COMMAND_GROUPS.items() if set(names) & set(COMMANDS))


@pytest.mark.parametrize(
    ("typed", "suggestion"), [("stauts", "status"), ("pasue", "pause"), ("consoldiate", "consolidate"), ("xyzzy", "")]
)
def test_misspelled_command_gets_a_suggestion(typed: str, suggestion: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([typed])
    stderr = capsys.readouterr().err
    assert f"unknown command {typed!r}" in stderr
    assert (f"did you mean {suggestion!r}?" in stderr) == bool(suggestion)


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option_is_rejected(command: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*build_minimal_arguments(command), "--no-such-option"])
    captured = capsys.readouterr()
    assert captured.err.startswith("usage: joiner")
    assert "--no-such-option" in captured.err
    assert captured.out == ""


def build_raiser(error: BaseException) -> Callable[..., int]:
    def run(*_: object, **__: object) -> int:
        raise error

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_exits_with_130_without_a_traceback(command: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = import_module(get_command_module(command))
    add_to = module.add_to

    def add_without_required(parser: Parser) -> None:
        add_to(parser)
        for subparser in (parser, *get_subparsers(parser).values()):
            for action in subparser._actions:  # noqa: SLF001 - argparse has no other list
                action.required = False
            subparser.set_defaults(run=build_raiser(KeyboardInterrupt()))

    monkeypatch.setattr(module, "add_to", add_without_required)
    assert main(build_minimal_arguments(command)) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


def build_minimal_arguments(command: str) -> list[str]:
    """Return the shortest valid arguments of *command*."""
    arguments = [command]
    parser = get_subparsers(build_parser(command))[command]
    below = get_subparsers(parser)
    if below:
        name = next(iter(below))
        arguments, parser = [*arguments, name], below[name]
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        is_subcommand = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
        if not action.option_strings and action.nargs not in ("?", "*") and not is_subcommand:
            arguments.append(str(next(iter(action.choices))) if action.choices else "x")
        elif action.option_strings and action.required:
            arguments += [action.option_strings[-1], "x"]
    return arguments


@pytest.mark.parametrize("command", sorted(LIVE))
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--kubeconfig", "{folder}/none"), "none: no such kubeconfig: add --kubeconfig FILE"),
        (("--kubeconfig", "{folder}/broken"), "broken: context (current): "),
        (("--kubeconfig", "{folder}/config", "--context", "nobody"), "nobody"),
        (("--kubeconfig", "{folder}/config"), "GET /"),
        (("--kubeconfig", "{folder}/config", "-o", "json"), "GET /"),
    ],
)
def test_unreachable_cluster_is_reported_with_a_fix(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, command: str, flags: tuple[str, ...], words: str
) -> None:
    from cli.aws import session  # noqa: PLC0415 - what the command imports when it runs
    from cli.cluster.kubeconfig import ReadOnlyKube  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    def raise_unreachable(_: object, method: str, path: str, *__: object, **___: object) -> bytes:
        raise Unreachable(f"{method} {path}: nobody answers")

    monkeypatch.setattr(ReadOnlyKube, "_call", raise_unreachable)
    monkeypatch.setattr(session, "open_clients", build_raiser(InputError("GET / of an account that is not asked")))
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
    assert main([command, *LIVE[command], *(flag.format(folder=tmp_path) for flag in flags)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"joiner {command}: ")
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == "", "a program that reads it would take this for an answer"


ON_FILES: Final = ("consolidate", "drift", "plan", "rebalance --plan", "status", "top")
"""Commands that work on files."""


@pytest.mark.parametrize("command", ON_FILES)
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_json_and_yaml_output_can_be_parsed(tmp_path: Path, capsys: Out, command: str, output: str) -> None:
    files = [
        argument
        for argument in write_small_fleet(tmp_path)
        if command in CLOCKED or not argument.startswith(("--now", "2026-"))
    ]
    assert main([*command.split(), *files, "-o", output]) == 0
    stdout = capsys.readouterr().out
    assert json.loads(stdout) if output == "json" else yaml.safe_load(stdout)


@pytest.mark.parametrize("command", [*ON_FILES, "doctor"])
def test_unreadable_files_are_not_treated_as_an_empty_cluster(tmp_path: Path, capsys: Out, command: str) -> None:
    _, _, *catalogue = write_small_fleet(tmp_path)[:4]
    missing = str(tmp_path / "none.yaml")
    assert main([*command.split(), "-f", missing, *(catalogue if command != "doctor" else ())]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{missing}: No such file or directory: check the path" in captured.err


PLANNING: Final = ("consolidate", "plan", "rebalance --plan")
"""Commands that plan for files, or for the cluster of the current context."""


@pytest.mark.parametrize("command", PLANNING)
def test_missing_files_and_kubeconfig_error_names_both_options(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(command.split()) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{tmp_path / 'none'}: no such kubeconfig: add --kubeconfig FILE" in captured.err
    assert captured.err.endswith("; or name files with -f\n")


@pytest.mark.parametrize("command", ["--version", "drift", "lint"])
def test_closed_standard_output_does_not_change_the_exit_code(tmp_path: Path, command: str) -> None:
    files = write_small_fleet(tmp_path)[:2] if command != "--version" else []
    code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
    inner = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    run = [sys.executable, "-c", code, inner, command, *files]
    process = subprocess.run(run, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in process.stderr
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")  # noqa: PTH110 - no path of ours
@pytest.mark.parametrize("command", ["--version", "drift"])
def test_failed_output_write_is_an_error(tmp_path: Path, command: str) -> None:
    files = write_small_fleet(tmp_path)[:2] if command != "--version" else []
    code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    with open("/dev/full", "w") as full:  # noqa: PTH123 - as above
        run = [sys.executable, "-c", code, command, *files]
        process = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.stderr.startswith("joiner: the output could not be written: ")
    assert "Traceback" not in process.stderr
    assert process.returncode == 1


CLOCKED: Final = ("consolidate", "plan", "rebalance --plan")
"""Commands that accept --now."""


@pytest.mark.parametrize("command", [*ON_FILES, "completion bash", "help"])
def test_broken_output_pipe_causes_no_traceback(tmp_path: Path, command: str) -> None:
    files = write_small_fleet(tmp_path)[:4] if command in ON_FILES else []
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
def test_output_works_with_limited_terminal_encodings(tmp_path: Path, command: str, encoding: str) -> None:
    files = write_oddly_named_fleet(tmp_path) if command in ON_FILES else []
    process = run_joiner(*command.split(), *files, PYTHONIOENCODING=encoding, COLUMNS="40")
    assert "Traceback" not in process.stderr
    assert process.returncode in ((0, 1) if command in ON_FILES else (0, 2))
    process.stdout.encode(encoding)


@pytest.mark.parametrize("command", ON_FILES)
def test_json_output_is_equal_with_ascii_encoding(tmp_path: Path, command: str) -> None:
    if command in CLOCKED:
        return
    files = write_oddly_named_fleet(tmp_path)
    plain, ascii_run = (
        run_joiner(*command.split(), *files, "-o", "json", PYTHONIOENCODING=encoding) for encoding in ("utf-8", "ascii")
    )
    timeless = [
        {**read, "at": None} if isinstance(read := json.loads(process.stdout), dict) else read
        for process in (plain, ascii_run)
    ]
    assert timeless[0] == timeless[1]


def write_oddly_named_fleet(tmp_path: Path) -> list[str]:
    """Write the small fleet with names that few terminals know."""
    files = write_small_fleet(tmp_path)[:4]
    for path in tmp_path.rglob("*.json"):
        path.write_text(path.read_text().replace("shop", SIGNS))
    return files


def run_joiner(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, **environment}
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, encoding=encoding, check=False
    )


# Completion


def list_completions(line: str, tmp_path: Path, **environment: str) -> list[str]:
    """Return what the tab key offers after *line*."""
    out = tmp_path / "completions"
    completion_variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    # A machine may be too slow for whoever waits for the tab key.
    code = (
        "import cli.completion.completer as completer; completer.NAME_QUERY_TIMEOUT_SECONDS = 600; "
        "from cli.main import main; main([])"
    )
    run = [sys.executable, "-c", code]
    process = subprocess.run(
        run, env={**os.environ, **completion_variables, **environment}, capture_output=True, text=True, check=True
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
def test_shell_completion_offers_commands_and_options(line: str, offered: list[str], tmp_path: Path) -> None:
    assert list_completions(line, tmp_path) == offered


def test_zsh_completion_includes_command_descriptions(tmp_path: Path) -> None:
    [offered] = list_completions("joiner pa", tmp_path, _ARGCOMPLETE_SHELL="zsh")
    assert offered == f"pause:{COMMANDS['pause']}"


def test_shell_completion_offers_all_commands(tmp_path: Path) -> None:
    assert sorted(list_completions("joiner ", tmp_path)) == sorted([*COMMANDS, "help"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    from tests.contract.kube_front import create  # noqa: PLC0415
    from tests.support.cli.fleet_files import POOL, make_node_manifests  # noqa: PLC0415
    from tests.support.cli.live_cases import serve_cluster  # noqa: PLC0415

    with serve_cluster(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for node in make_node_manifests("node-a", 4):
            create(kube, "/api/v1/nodes", node)
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
def test_shell_completion_offers_names_from_the_cluster(
    line: str, offered: list[str], served: str, tmp_path: Path
) -> None:
    assert list_completions(line, tmp_path, KUBECONFIG=served) == offered


@pytest.mark.parametrize("line", ["joiner pause --nodepool ", "joiner status --context "])
def test_shell_completion_without_a_cluster_is_empty(line: str, tmp_path: Path) -> None:
    assert list_completions(line, tmp_path, KUBECONFIG=str(tmp_path / "none")) == [""]


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete "), ("zsh", "#compdef"), ("fish", "complete ")])
def test_each_supported_shell_has_a_completion_script(shell: str, word: str, capsys: Out) -> None:
    assert main(["completion", shell]) == 0
    output = capsys.readouterr().out
    assert word in output
    assert "joiner" in output
