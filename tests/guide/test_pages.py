"""What pages name exists: commands, options, knobs, targets, files, links, tests; and their manifests are accepted."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from cli.conversion.sources import written_in
from cli.linting import findings
from cli.main import COMMANDS, parser_for
from docs.reference.commands import below
from infra.knobs import Knobs
from tests.guide.awscli import call_of
from tests.guide.pages import DOCS, GUIDE, ROOT, Block, blocks, commands, every_page, followed

PAGES = every_page()
BLOCKS = [block for path in PAGES for block in blocks(path) if block.language == "sh"]
COMMAND_LINES = [(block, words) for block in BLOCKS for words in commands(block.text)]
KUBECTL = frozenset(
    ("annotate", "apply", "cordon", "delete", "describe", "drain", "get", "label", "patch", "rollout", "scale", "wait")
)
PLAIN = frozenset(("export", "git", "sed"))
ELSEWHERE = frozenset(("AccessDenied", "CDKToolkit", "ContainerCreating", "FailedScheduling", "JoinerBucketName"))
"""Words of others, and of what a stack answers."""
STORIES = (DOCS / "plan.md", *DOCS.glob("adr/*.md"))
"""They speak of what there is not, or not yet."""


def called(program: str) -> list[tuple[Block, tuple[str, ...]]]:
    return [(block, words[1:]) for block, words in COMMAND_LINES if words[0] == program]


def words_of(path: Path) -> str:
    """Answer the text of a page without its fenced blocks."""
    text = path.read_text()
    for block in blocks(path):
        text = text.replace(block.text, "")
    return text


def test_only_known_programs_are_called() -> None:
    known = {"joiner", "kubectl", "npx", "make", "aws", *PLAIN}
    assert {(block.where, words[0]) for block, words in COMMAND_LINES if words[0] not in known} == set()


def test_every_joiner_command_is_one_that_its_parser_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for block, (name, *words) in called("joiner"):
        assert name in COMMANDS, block.where
        try:
            parser_for(name).parse_args([name, *words])
        except SystemExit:
            pytest.fail(f"{block.where}: joiner {name} {words}: {capsys.readouterr().err}")


def options_of(name: str) -> set[str]:
    """Answer all options of a command and of those below it."""
    parsers = [below(parser_for(name))[name]]
    for parser in parsers:
        parsers += below(parser).values()
    return {option for parser in parsers for option in parser._option_string_actions}  # noqa: SLF001 - no other list


def test_commands_in_running_text_exist_with_their_options() -> None:
    for path in PAGES:
        for name, rest in re.findall(r"`joiner ([a-z]+)([^`]*)`", words_of(path)):
            if path not in STORIES:
                assert name in COMMANDS, (path.name, name)
                assert set(re.findall(r"--[a-z-]+", rest)) <= options_of(name), (path.name, name, rest)


def test_every_knob_exists() -> None:
    known = {f"joiner:{name}" for name in Knobs.__struct_encode_fields__}
    for path in PAGES:
        named = set(re.findall(r"joiner:[a-z]+(?:-[a-z]+)*(?![\w/-])", path.read_text()))
        assert {one for one in named - known if one != "joiner:functions"} == set(), path.name


def test_every_deployment_is_one_that_the_knobs_take() -> None:
    for block, words in called("npx"):
        assert words[:1] == ("cdk",)
        assert words[1] in ("bootstrap", "deploy", "destroy", "diff"), block.where
        given = [after for word, after in pairwise(words) if word == "-c"]
        Knobs.from_context(dict(one.split("=", 1) for one in given).get)


def test_every_kubectl_command_exists() -> None:
    assert {(block.where, words) for block, words in called("kubectl") if not KUBECTL & {*words[:3]}} == set()


def test_every_aws_command_is_one_that_aws_has() -> None:
    for block, words in called("aws"):
        if words[:2] != ("s3", "cp"):
            assert call_of([*words]), block.where


def test_every_target_exists() -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    mentioned = re.findall(r"`make ([a-z0-9-]+)", "".join(words_of(path) for path in PAGES))
    assert {words[0] for _, words in called("make")} | {*mentioned} <= {*targets}


def test_every_file_that_a_command_names_exists() -> None:
    for block, words in COMMAND_LINES:
        for word in words:
            if word.startswith(("examples/", "docs/")):
                assert (ROOT / word).exists(), (block.where, word)


def anchors(path: Path) -> set[str]:
    """Answer what a link may name within a page: its headings, as GitHub and MyST spell them."""
    heads = re.findall(r"^#+ (.*)$", words_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def links(path: Path) -> Iterator[tuple[str, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", words_of(path))):
        if not target.startswith(("http://", "https://")):
            name, _, anchor = target.partition("#")
            yield name, anchor


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    for name, anchor in links(path):
        target = (path.parent / name) if name else path
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), (name, anchor)


def test_every_test_that_guides_name_exists() -> None:
    for path in GUIDE.glob("*.md"):
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", path.read_text()):
            assert f"def {name}(" in (ROOT / file).read_text(), (path.name, file, name)


def test_every_page_has_its_place_in_the_site() -> None:
    index = (DOCS / "index.md").read_text()
    entries = [line.strip() for block in index.split("```")[1::2] for line in block.splitlines()]
    pages = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES if path.is_relative_to(DOCS))
    listed = {one for one in entries if one in pages} | {one for one in pages if one.startswith("adr/")}
    assert sorted(listed | {"index"}) == pages


def test_every_manifest_in_a_page_is_accepted(tmp_path: Path) -> None:
    found = [
        block for path in PAGES for block in blocks(path) if block.language == "yaml" and "apiVersion" in block.text
    ]
    assert found
    for block in found:
        file = tmp_path / "block.yaml"
        file.write_text(block.text)
        assert [str(one) for one in findings(list(written_in([str(file)], pytest.fail)))] == [], block.where


def test_the_first_node_takes_four_commands() -> None:
    text = (GUIDE / "getting-started.md").read_text()
    section = text.split("## The four commands")[1].split("\n## ")[0]
    said = [block.text.strip() for block in followed(GUIDE / "getting-started.md") if block.text.strip() in section]
    assert len(said) == len(re.findall("```sh", section)) == 4
    assert all(len(one.splitlines()) == 1 for one in said)
    readme = (ROOT / "README.md").read_text()
    assert all(one in readme for one in said)


def test_every_followed_block_is_of_one_page() -> None:
    numbers = [msgspec.structs.astuple(block)[:2] for block in BLOCKS]
    assert len(numbers) == len(set(numbers))


def test_every_reason_condition_and_metric_that_guides_name_is_in_the_code() -> None:
    folders = ("cli", "functions", "infra", "shared")
    files = (path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".yaml"))
    code = "\n".join(path.read_text() for path in files)
    for path in {*GUIDE.glob("*.md")} - {GUIDE / "metrics.md"}:  # which has CloudWatch's own, and alarms by function
        for word in re.findall(r"`([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]+)+)`", path.read_text()):
            assert word in code or word in ELSEWHERE, (path.name, word)
