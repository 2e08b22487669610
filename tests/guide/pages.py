"""Pages of the guide as they are followed: their fenced blocks, in order, with the expected output of each.

A block of `sh` is played; a block of `text` directly behind it is the expected output, line by line, where `…` stands
for any text. A comment before a block says more: `<!-- not followed: why -->` that it cannot be played here, `<!-- ends
with 1 or 3 -->` which exit codes are accepted.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
GUIDE: Final = DOCS / "guide"
ANYTHING: Final = "…"
_FENCE: Final = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^ *(?P=ticks) *$",
    re.MULTILINE | re.DOTALL,
)
_UNFOLLOWED: Final = re.compile(r"<!-- not followed: (.+?) -->\s*\Z")
_ENDS: Final = re.compile(r"<!-- ends with (\d(?: or \d)*) -->\s*\Z")
_BREAKS: Final = frozenset(("|", "||", "&&", ";", "&"))


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str
    unfollowed: str = ""
    """Why it is not played; empty if it is played."""
    expected: str = ""
    ends: tuple[int, ...] = (0,)
    """Accepted exit codes."""

    @property
    def where(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"


def list_pages() -> tuple[Path, ...]:
    """Return all hand-written and generated pages, sorted."""
    return (ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts))


def parse_blocks(path: Path) -> tuple[Block, ...]:
    """Return the fenced blocks of the page at *path*, in order.

    A `text` block becomes the expected output of the command before it.
    """
    text, end = path.read_text(encoding="utf-8"), 0
    page_blocks: list[Block] = []
    for match in _FENCE.finditer(text):
        before, end = text[end : match.start()], match.end()
        block_text = textwrap.dedent(match["text"])
        if match["language"] == "text" and page_blocks and page_blocks[-1].language == "sh" and not before.strip():
            page_blocks[-1] = msgspec.structs.replace(page_blocks[-1], expected=block_text)
            continue
        comment, ends = _UNFOLLOWED.search(before), _ENDS.search(before)
        block = Block(
            page=path.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, match.start()) + 1,
            language=match["language"],
            text=block_text,
            unfollowed=comment[1] if comment else "",
            ends=tuple(map(int, ends[1].split(" or "))) if ends else (0,),
        )
        page_blocks.append(block)
    return tuple(page_blocks)


def list_followed_blocks(path: Path) -> tuple[Block, ...]:
    """Return the blocks of the page at *path* that are played."""
    return tuple(block for block in parse_blocks(path) if block.language == "sh" and not block.unfollowed)


def split_commands(script: str) -> Iterator[tuple[str, ...]]:
    """Yield the simple commands of *script*, as the words that a shell would see, without redirections.

    >>> list(split_commands("sed s/A/B/ f | kubectl apply -f - > out"))
    [('sed', 's/A/B/', 'f'), ('kubectl', 'apply', '-f', '-')]
    """
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        tokens = iter(lexer)
        for token in tokens:
            if token in _BREAKS:
                yield tuple(words)
                words = []
            elif token in (">", ">>", "<"):
                next(tokens, "")
            else:
                words.append(token)
        if words:
            yield tuple(words)


def find_unmet_line(expected: str, output: str) -> str:
    r"""Return the first line of *expected* that is not in *output* behind those before it; empty if all are.

    >>> find_unmet_line("NAME … READY\n… True", "NAME  TYPE  READY\na  b  True  5s"), find_unmet_line("b\na", "a\nb")
    ('', 'a')
    """
    lines = iter(output.splitlines())
    for expected_line in filter(str.strip, expected.splitlines()):
        pattern = re.compile(r"\s*" + r"\s+".join(map(_build_word_pattern, expected_line.split())))
        if not any(pattern.match(line) for line in lines):
            return expected_line
    return ""


def _build_word_pattern(word: str) -> str:
    return ".*".join(map(re.escape, word.split(ANYTHING)))
