"""`python -m docs.reference`: write the pages of the reference, and knobs with their defaults into cdk.json."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docs.reference import commands, kinds, knobs, labels

FOLDER: Final = Path(__file__).resolve().parent


def pages() -> dict[Path, str]:
    """Answer what every page of the reference must say."""
    every = {**kinds.pages(), **commands.pages(), **knobs.pages(), **labels.pages()}
    return {FOLDER / name: text for name, text in every.items()}


def stale() -> dict[Path, str]:
    """Answer the files that say something else, or are not there, with what they must say."""
    wanted = pages() | {knobs.CDK_JSON: knobs.cdk_json(knobs.CDK_JSON.read_text(encoding="utf-8"))}
    return {path: text for path, text in wanted.items() if not _says(path, text)}


def _says(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is out of date, and name it."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description="Write the pages of the reference.")
    parser.add_argument("--pages", action="store_true", help="leave cdk.json as somebody may have changed it")
    only_pages = parser.parse_args(arguments).pages
    for path, text in sorted(stale().items()):
        if path.parent == FOLDER or not only_pages:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
