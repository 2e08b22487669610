"""Pages as they are followed: their fenced blocks, in order, with what is expected behind each.

A block of `sh` is played; a block of `text` directly behind it is what must be seen, line by line, where `…` stands for
anything. A comment before a block says more: `<!-- not followed: why -->` that nobody can play it here, `<!-- ends with
1 or 3 -->` which exit codes it may end with.
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
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str
    unfollowed: str = ""
    """Why it is not played; empty if it is."""
    expected: str = ""
    ends: tuple[int, ...] = (0,)
    """Exit codes that are as they should be."""

    @property
    def where(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"


def every_page() -> tuple[Path, ...]:
    """Answer all pages that people write or we generate, sorted."""
    return (ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts))


def blocks(path: Path) -> tuple[Block, ...]:
    """Answer the fenced blocks of the page at *path*, in order; an expected `text` belongs to what it follows."""
    text, end = path.read_text(encoding="utf-8"), 0
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        before, end = text[end : match.start()], match.end()
        told = textwrap.dedent(match["text"])
        if match["language"] == "text" and found and found[-1].language == "sh" and not before.strip():
            found[-1] = msgspec.structs.replace(found[-1], expected=told)
            continue
        comment, ends = _UNFOLLOWED.search(before), _ENDS.search(before)
        block = Block(
            page=path.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, match.start()) + 1,
            language=match["language"],
            text=told,
            unfollowed=comment[1] if comment else "",
            ends=tuple(map(int, ends[1].split(" or "))) if ends else (0,),
        )
        found.append(block)
    return tuple(found)


def followed(path: Path) -> tuple[Block, ...]:
    """Answer what of the page at *path* is played."""
    return tuple(one for one in blocks(path) if one.language == "sh" and not one.unfollowed)


def commands(script: str) -> Iterator[tuple[str, ...]]:
    """Iterate over the simple commands of *script*, as the words that a shell would see; redirections are left out.

    >>> list(commands("sed s/A/B/ f | kubectl apply -f - > out"))
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


def unmet(expected: str, output: str) -> str:
    r"""Answer the first line of *expected* that is not in *output* behind those before it; empty if all are.

    >>> unmet("NAME … READY\n… True", "NAME  TYPE  READY\na  b  True  5s"), unmet("b\na", "a\nb")
    ('', 'a')
    """
    lines = iter(output.splitlines())
    for wanted in filter(str.strip, expected.splitlines()):
        pattern = re.compile(r"\s*" + r"\s+".join(map(_pattern, wanted.split())))
        if not any(pattern.match(line) for line in lines):
            return wanted
    return ""


def _pattern(word: str) -> str:
    return ".*".join(map(re.escape, word.split(ANYTHING)))
