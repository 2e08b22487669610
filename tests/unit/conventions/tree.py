"""The breaches in a repository. Each file is read and parsed once."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from tests.unit.conventions.rules import (
    MAX_LINES_PER_FILE,
    MAX_MODULES_PER_FOLDER,
    NAME_RULES,
    REPLACED_WORDS,
    RULES_IN_TESTS,
    VAGUE_MODULES,
    Breach,
    Name,
    find_name_breaches,
)
from tests.unit.conventions.scanner import scan_file

PACKAGES: Final = ("shared", "functions", "infra", "cli", "sim")
PACKAGES_OF_NAMES: Final = (*PACKAGES, "docs", "tests")
PACKAGES_OF_CLASSES: Final = ("shared/", "functions/", "infra/", "cli/")
GLOSSARY: Final = "docs/glossary.md"
WORD_LIST: Final = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_ONE_DOCSTRING: Final = re.compile(r'"""[^"\n]+"""\n')
NAME_RULE_IDS: Final = (*NAME_RULES, "repeated-class")
LAYOUT_RULE_IDS: Final = ("folder-size", "file-length", "unknown-word", "unused-word", "vague-module", "init-file")


def find_breaches_of_names(root: Path) -> list[Breach]:
    """Return what breaks a rule for names and sentences in the repository at *root*."""
    breaches: list[Breach] = []
    classes: list[Name] = []
    for path in list_python_files(root, PACKAGES_OF_NAMES):
        is_test = path.startswith("tests/")
        names = scan_file(path, (root / path).read_text(), skips_words=is_test)
        breaches += find_name_breaches(names, RULES_IN_TESTS if is_test else NAME_RULES)
        if path.startswith(PACKAGES_OF_CLASSES):
            classes += [name for name in names if name.kind == "class"]
    return [*breaches, *find_repeated_classes(classes)]


def find_repeated_classes(classes: Iterable[Name]) -> Iterator[Breach]:
    """Yield the classes with the name of another; a private class may repeat a name of another folder."""
    classes_by_key: dict[tuple[str, str], list[Name]] = {}
    for name in classes:
        folder = str(PurePosixPath(name.path).parent) if name.name.startswith("_") else ""
        classes_by_key.setdefault((name.name, folder), []).append(name)
    for namesakes in classes_by_key.values():
        for name in namesakes:
            paths = [other.path for other in namesakes if other is not name]
            if paths:
                message = f"also in {', '.join(paths)}; one class, one meaning: rename it after what it holds here"
                yield Breach(rule="repeated-class", path=name.path, line=name.line, name=name.name, message=message)


def find_breaches_of_layout(root: Path) -> list[Breach]:
    """Return what breaks a rule for folders and files in the repository at *root*."""
    paths = list_python_files(root, PACKAGES)
    words = read_word_list(root)
    return [
        *_find_large_folders(paths),
        *_find_long_files(root, paths),
        *_find_unknown_words(paths, words),
        *_find_unused_words(paths, words),
        *_find_vague_modules(paths),
        *_find_init_files(root, paths),
    ]


def list_python_files(root: Path, packages: Iterable[str]) -> list[str]:
    """Return the paths below *root* of all Python files in *packages*, sorted."""
    return sorted(path.relative_to(root).as_posix() for name in packages for path in (root / name).rglob("*.py"))


def read_word_list(root: Path) -> list[str]:
    """Return the words that file names may use, from the glossary; replaced words do not count."""
    match = WORD_LIST.search((root / GLOSSARY).read_text())
    return [word for word in match[0].split() if word not in REPLACED_WORDS] if match else []


def list_words(paths: Iterable[str]) -> set[str]:
    """Return the words of all modules and folders; not those of the packages themselves."""
    return {word for path in paths for part in _list_parts(path) for word in part.split("_")}


def _list_parts(path: str) -> Sequence[str]:
    parts = PurePosixPath(path).with_suffix("").parts[1:]
    return [part for part in parts if not part.startswith("__")]


def _find_large_folders(paths: Iterable[str]) -> Iterator[Breach]:
    modules_by_folder: dict[str, list[str]] = {}
    for path in map(PurePosixPath, paths):
        if path.name != "__init__.py":
            modules_by_folder.setdefault(f"{path.parent}/", []).append(path.stem)
    for folder, modules in modules_by_folder.items():
        if (count := len(modules) - MAX_MODULES_PER_FOLDER) > 0:
            message = f"at most {MAX_MODULES_PER_FOLDER} modules in a folder; move some to a folder of their own"
            name = f"{len(modules)} modules"
            yield Breach(rule="folder-size", path=folder, line=1, name=name, message=message, count=count)


def _find_long_files(root: Path, paths: Iterable[str]) -> Iterator[Breach]:
    for path in paths:
        lines = (root / path).read_bytes().count(b"\n")
        if (count := lines - MAX_LINES_PER_FILE) > 0:
            message = f"at most {MAX_LINES_PER_FILE} lines in a file; move a part of it to a file of its own"
            yield Breach(
                rule="file-length",
                path=path,
                line=MAX_LINES_PER_FILE,
                name=f"{lines} lines",
                message=message,
                count=count,
            )


def _find_unknown_words(paths: Iterable[str], words: Iterable[str]) -> Iterator[Breach]:
    unknown = list_words(paths).difference(words)
    first_path_by_part = {part: path for path in sorted(paths, reverse=True) for part in _list_parts(path)}
    for part, path in first_path_by_part.items():
        for word in sorted(unknown.intersection(part.split("_"))):
            message = f"`{word}` is not in the word list of {GLOSSARY}; use a word of the list, or explain it there"
            yield Breach(rule="unknown-word", path=path, line=1, name=part, message=message)


def _find_unused_words(paths: Iterable[str], words: Iterable[str]) -> Iterator[Breach]:
    for word in sorted(set(words) - list_words(paths)):
        message = "no file has this word in its name; remove it from the word list"
        yield Breach(rule="unused-word", path=GLOSSARY, line=1, name=word, message=message)


def _find_vague_modules(paths: Iterable[str]) -> Iterator[Breach]:
    for path in map(PurePosixPath, paths):
        if str(path.parent) != VAGUE_MODULES.get(path.stem, str(path.parent)):
            message = "does not say what the module defines; name it after its main class or function"
            yield Breach(rule="vague-module", path=str(path), line=1, name=path.name, message=message)


def _find_init_files(root: Path, paths: Iterable[str]) -> Iterator[Breach]:
    for path in paths:
        is_init_file = path.startswith("shared/") and path.endswith("/__init__.py")
        if is_init_file and not _ONE_DOCSTRING.fullmatch((root / path).read_text()):
            message = "has one line, a docstring; import from the modules themselves"
            yield Breach(rule="init-file", path=path, line=1, name="__init__.py", message=message)
