"""Names in pages exist: commands, options, settings, targets, files, links, tests; and manifests are valid."""

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from cli.commands import COMMANDS
from cli.convert.reading.sources import read_objects
from cli.lint.rules import lint_objects
from cli.main import build_parser
from docs.reference.commands import get_subparsers
from infra.settings.files.command import parse_assignments
from infra.settings.files.reading import parse_settings
from infra.settings.load import load_options
from infra.settings.settings import SETTING_NAMES
from tests.guide.awscli import parse_command
from tests.guide.pages import DOCS, GUIDE, ROOT, Block, list_followed_blocks, list_pages, parse_blocks, split_commands

PAGES = list_pages()
LINKING_PAGES = (*PAGES, *sorted({*ROOT.glob("*.md")} - {*PAGES}))
BLOCKS = [block for path in PAGES for block in parse_blocks(path) if block.language == "sh"]
COMMAND_LINES = [(block, words) for block in BLOCKS for words in split_commands(block.text)]
KUBECTL_COMMANDS = frozenset(
    ("annotate", "apply", "cordon", "delete", "describe", "drain", "get", "label", "patch", "rollout", "scale", "wait")
)
PLAIN_PROGRAMS = frozenset(("cp", "export", "git", "sed", "xargs"))
EXTERNAL_WORDS = frozenset(
    (
        "AccessDenied",
        "AdministratorAccess",
        "BackoffLimitExceeded",
        "CDKToolkit",
        "ContainerCreating",
        "FailedScheduling",
        "JoinerBucketName",
    )
)
"""Names of other products, and of stack outputs."""
HISTORICAL_PAGES = (DOCS / "plan.md", *DOCS.glob("adr/*.md"))
"""These pages describe features that do not exist, or not yet."""


def list_calls(program: str) -> list[tuple[Block, tuple[str, ...]]]:
    return [(block, words[1:]) for block, words in COMMAND_LINES if words[0] == program]


def read_current_names(path: Path) -> str:
    """Return the text of a page without the section about names of earlier versions."""
    return path.read_text().partition("\n## Changed names\n")[0]


def read_prose(path: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    text = path.read_text()
    for block in parse_blocks(path):
        text = text.replace(block.text, "")
    return text


def test_pages_call_only_known_programs() -> None:
    programs = {"joiner", "kubectl", "npx", "make", "aws", *PLAIN_PROGRAMS}
    assert {(block.where, words[0]) for block, words in COMMAND_LINES if words[0] not in programs} == set()


def test_every_joiner_command_in_a_page_is_accepted_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    for block, (name, *words) in list_calls("joiner"):
        assert name in COMMANDS, block.where
        try:
            build_parser(name).parse_args([name, *words])
        except SystemExit:
            pytest.fail(f"{block.where}: joiner {name} {words}: {capsys.readouterr().err}")


def list_options(name: str) -> set[str]:
    """Return all options of a command and of its subcommands."""
    parsers = [get_subparsers(build_parser(name))[name]]
    for parser in parsers:
        parsers += get_subparsers(parser).values()
    return {option for parser in parsers for option in parser._option_string_actions}  # noqa: SLF001 - no other list


def test_joiner_commands_and_options_in_prose_exist() -> None:
    for path in PAGES:
        for name, arguments in re.findall(r"`joiner ([a-z]+)([^`]*)`", read_prose(path)):
            if path not in HISTORICAL_PAGES:
                assert name in COMMANDS, (path.name, name)
                assert set(re.findall(r"--[a-z-]+", arguments)) <= list_options(name), (path.name, name, arguments)


def test_no_page_names_a_setting_with_the_prefix_of_version_0_1_0() -> None:
    for path in PAGES:
        if path.name != "upgrade.md":
            assert {*re.findall(r"joiner:[a-z]+(?:-[a-z]+)*", path.read_text())} <= {"joiner:functions"}, path.name


def test_every_setting_with_a_value_in_prose_is_valid() -> None:
    count = 0
    for path in PAGES:
        for line in re.findall(r"`([a-z]+(?:-[a-z]+)*: [^`\n]+)`", read_prose(path)):
            name, _, text = line.partition(": ")
            if name in SETTING_NAMES and "NAME" not in text and "FILE" not in text:
                count += 1
                assert check_setting(line), (path.name, line)
            elif "-" in name:
                assert not get_close_matches(name, SETTING_NAMES, 1, 0.85), (path.name, name)
    assert count > 30


def check_setting(line: str) -> bool:
    """Return whether *line* is a setting with a valid value; it can need other settings."""
    try:
        parse_settings(line, "demo")
    except ValueError as error:
        return not re.search(r"must be|unknown|not a setting", str(error))
    return True


def test_every_cdk_command_in_a_page_selects_a_cluster_and_has_no_settings() -> None:
    for block, words in list_calls("npx"):
        assert words[:1] == ("cdk",)
        assert words[1] in ("bootstrap", "deploy", "destroy", "diff"), block.where
        context_values = [after for word, after in pairwise(words) if word == "-c"]
        assert [value.partition("=")[0] for value in context_values] == ["cluster"], block.where
    for path in PAGES:
        for command in re.findall(r"`npx cdk ([a-z]+ -c[^`]+)`", read_prose(path)):
            assert re.search(r"-c\s+cluster=", command), (path.name, command)


def test_every_make_settings_command_in_a_page_has_valid_settings() -> None:
    commands = [(block, words) for block, words in list_calls("make") if words[0] == "settings"]
    assert len(commands) > 10
    for block, words in commands:
        variables = dict(word.split("=", 1) for word in words[1:])
        assert variables.keys() <= {"CLUSTER", "SET", "FROM", "FOLDER"}, block.where
        assert variables["CLUSTER"], block.where
        load_options({"cluster": "demo", **parse_assignments(shlex.split(variables.get("SET", "")))})


def test_every_kubectl_command_in_a_page_exists() -> None:
    assert {
        (block.where, words) for block, words in list_calls("kubectl") if not KUBECTL_COMMANDS & {*words[:3]}
    } == set()


def test_every_aws_command_in_a_page_exists_in_the_aws_cli() -> None:
    for block, words in list_calls("aws"):
        if words[:2] != ("s3", "cp"):
            assert parse_command([*words]), block.where


def test_every_make_target_in_a_page_exists() -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    mentioned = re.findall(r"`make ([a-z0-9-]+)", "".join(read_prose(path) for path in PAGES))
    assert {words[0] for _, words in list_calls("make")} | {*mentioned} <= {*targets}


def test_every_file_named_by_a_command_exists() -> None:
    for block, words in COMMAND_LINES:
        for word in words:
            if word.startswith(("examples/", "docs/")):
                assert (ROOT / word).exists(), (block.where, word)


def list_anchors(path: Path) -> set[str]:
    """Return the anchors of a page: its headings, as GitHub and MyST spell them."""
    heads = re.findall(r"^#+ (.*)$", read_prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def iterate_links(path: Path) -> Iterator[tuple[str, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", read_prose(path))):
        if not target.startswith(("http://", "https://")):
            name, _, anchor = target.partition("#")
            yield name, anchor


@pytest.mark.parametrize("path", LINKING_PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_target_and_anchor_exists(path: Path) -> None:
    for name, anchor in iterate_links(path):
        target = (path.parent / name) if name else path
        assert target.exists(), name
        assert not anchor or anchor in list_anchors(target), (name, anchor)


def test_every_test_named_in_a_guide_exists() -> None:
    for path in GUIDE.glob("*.md"):
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", read_current_names(path)):
            assert f"def {name}(" in (ROOT / file).read_text(), (path.name, file, name)


def test_every_page_is_listed_in_the_site_index() -> None:
    index = (DOCS / "index.md").read_text()
    entries = [line.strip() for block in index.split("```")[1::2] for line in block.splitlines()]
    pages = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES if path.is_relative_to(DOCS))
    listed = {entry for entry in entries if entry in pages} | {page for page in pages if page.startswith("adr/")}
    assert sorted(listed | {"index"}) == pages


def test_every_manifest_in_a_page_passes_lint(tmp_path: Path) -> None:
    manifest_blocks = [
        block
        for path in PAGES
        for block in parse_blocks(path)
        if block.language == "yaml" and "apiVersion" in block.text
    ]
    assert manifest_blocks
    for block in manifest_blocks:
        file = tmp_path / "block.yaml"
        file.write_text(block.text)
        findings = lint_objects(list(read_objects([str(file)], pytest.fail)))
        assert [str(finding) for finding in findings if "is not in the input" not in finding.message] == [], block.where


def test_getting_started_needs_four_commands_for_the_first_node() -> None:
    text = (GUIDE / "getting-started.md").read_text()
    section = text.split("## The four commands")[1].split("\n## ")[0]
    command_lines = [
        block.text.strip()
        for block in list_followed_blocks(GUIDE / "getting-started.md")
        if block.text.strip() in section
    ]
    assert len(command_lines) == len(re.findall("```sh", section)) == 4
    assert all(len(command.splitlines()) == 1 for command in command_lines)
    readme = (ROOT / "README.md").read_text()
    assert all(command in readme for command in command_lines)


def test_every_followed_block_belongs_to_exactly_one_page() -> None:
    numbers = [msgspec.structs.astuple(block)[:2] for block in BLOCKS]
    assert len(numbers) == len(set(numbers))


def test_every_reason_condition_and_metric_in_guides_exists_in_the_code() -> None:
    folders = ("cli", "functions", "infra", "shared")
    files = (path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".yaml"))
    code = "\n".join(path.read_text() for path in files)
    for path in {*GUIDE.glob("*.md")} - {
        GUIDE / "metrics.md"
    }:  # metrics.md has names of CloudWatch's own, and alarms by function
        for word in re.findall(r"`([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]+)+)`", read_current_names(path)):
            assert word in code or word in EXTERNAL_WORDS, (path.name, word)
