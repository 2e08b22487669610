"""Files, names, tests and modules that the documentation refers to exist; the architecture page is complete."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = ROOT / "docs"
ARCHITECTURE: Final = DOCS / "architecture.md"
PAGES: Final = (ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts))
GENERATORS: Final = tuple(sorted(DOCS.rglob("*.py")))
FOLDERS: Final = "cli|docs|examples|functions|infra|shared|sim|tests"
FILE_PATTERN: Final = re.compile(
    rf"(?<![\w./-])((?:{FOLDERS})/[\w./*-]*\.(?:json|md|png|py|svg|txt|ya?ml))(?:::?([A-Za-z_][\w.]*\w))?"
)
"""A path from the root of the repository, optionally with the name of something that the file defines."""
FOLDER_PATTERN: Final = re.compile(rf"`((?:{FOLDERS})/(?:[\w.-]+/)*)`")
TEST_PATTERN: Final = re.compile(r"`(test_\w+)(?:\.py|\[[^`]*\])?`")
"""A test or a file of tests without its path."""
MODULE_PATTERN: Final = re.compile(rf"python3? -m ((?:{FOLDERS})(?:\.\w+)*)")


def label(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def list_defined_names(path: Path) -> frozenset[str]:
    """Return the names of all classes, functions and variables that a module defines, at any level."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    definitions = {
        node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return frozenset(definitions | {node.id for node in nodes if isinstance(node, ast.Name) and is_stored(node)})


def is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize("page", [*PAGES, *GENERATORS], ids=label)
def test_every_file_and_folder_named_by_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = {match[1] for pattern in (FILE_PATTERN, FOLDER_PATTERN) for match in pattern.finditer(text)}
    assert [path for path in sorted(paths) if not any(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_every_name_referenced_in_a_file_is_defined_there(page: Path) -> None:
    references = {
        match[0]: (ROOT / match[1], match[2]) for match in FILE_PATTERN.finditer(page.read_text()) if match[2]
    }
    undefined = [
        reference
        for reference, (path, name) in sorted(references.items())
        if path.is_file() and not {*name.split(".")} <= list_defined_names(path)
    ]
    assert undefined == []


def test_every_test_named_without_its_file_exists() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    known_names = {path.stem for path in files}.union(*map(list_defined_names, files))
    test_names = {name for page in PAGES for name in TEST_PATTERN.findall(page.read_text(encoding="utf-8"))}
    assert test_names
    assert sorted(test_names - known_names) == []


def test_every_module_run_by_a_page_exists() -> None:
    modules = {match[1] for page in PAGES for match in MODULE_PATTERN.finditer(page.read_text(encoding="utf-8"))}
    assert modules
    assert [module for module in sorted(modules) if not is_module(module)] == []


def test_every_identifier_in_contributor_pages_exists_in_the_code() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("cli", "shared", "sim")
        for path in (ROOT / folder).rglob("*.py")
    )
    words = frozenset(re.findall(r"\w+", code))
    for page in (ARCHITECTURE, *sorted((DOCS / "contributing").glob("*.md"))):
        identifiers = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)*)`", page.read_text(encoding="utf-8"))
        unknown = [name for name in identifiers if not {*name.split(".")} <= words and not (ROOT / name).exists()]
        assert unknown == [], label(page)


def test_file_reference_is_parsed_with_its_name() -> None:
    text = "`shared/a/b.py:Kind.build`, `tests/x.py::test_it[1]`, docs/plan.md, https://x.org/docs/y.md, sim/draw*.py"
    assert [match.groups() for match in FILE_PATTERN.finditer(text)] == [
        ("shared/a/b.py", "Kind.build"),
        ("tests/x.py", "test_it"),
        ("docs/plan.md", None),
        ("sim/draw*.py", None),
    ]


# The page of the architecture


def list_packages(folder: Path) -> list[str]:
    return sorted(f"{path.parent.relative_to(ROOT).as_posix()}/" for path in folder.glob("*/__init__.py"))


def test_architecture_page_names_every_folder_of_shared_and_shared_decide() -> None:
    folder_names = set(FOLDER_PATTERN.findall(ARCHITECTURE.read_text(encoding="utf-8")))
    packages = [*list_packages(ROOT / "shared"), *list_packages(ROOT / "shared" / "decide")]
    assert [package for package in packages if package not in folder_names] == []


def read_floors() -> dict[str, int]:
    """Return the floor of each child of `shared` as the page has it, the top floor first."""
    rules = ARCHITECTURE.read_text(encoding="utf-8").partition("## Import rules")[2]
    lines = rules.partition("```text\n")[2].partition("```")[0].splitlines()
    return {name: floor for floor, line in enumerate(lines) for name in line.split(" | ")}


def list_shared_imports() -> Iterator[tuple[Path, str, str]]:
    """Yield each import between two children of `shared`: the file, its own child and the imported one."""
    for path in sorted((ROOT / "shared").rglob("*.py")):
        child = path.relative_to(ROOT / "shared").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                if module.startswith("shared.") and module.split(".")[1] != child:
                    yield path, child, module.split(".")[1]


def test_architecture_page_assigns_every_package_of_shared_to_a_layer() -> None:
    shared = ROOT / "shared"
    children = {path.parent.name for path in shared.glob("*/__init__.py")} | {path.stem for path in shared.glob("*.py")}
    assert set(read_floors()) == children - {"__init__"}


def test_shared_packages_import_only_lower_architecture_layers() -> None:
    floors = read_floors()
    upwards = [
        f"{label(path)} imports shared.{imported}"
        for path, child, imported in list_shared_imports()
        if child in floors and floors[imported] <= floors[child]
    ]
    assert upwards == []
