"""Old manifests are converted as stored, and errors for broken ones name the line and a fix."""

import re
from pathlib import Path

import pytest

from cli.main import main
from tests.golden.older import FOLDER, NAMES, build_expectation, run_convert

BROKEN = tuple(name for name in NAMES if name.startswith("broken"))
REPAIRED = "broken-unquoted"
"""A value with only one possible meaning is quoted, with a message."""
FIX_VERBS = "write|correct|keep only|merge|remove|indent|did you mean|close|render|quote|move|replace|add|restrict"


@pytest.mark.parametrize("name", NAMES)
def test_converted_manifest_matches_its_stored_output(name: str) -> None:
    expected = FOLDER.joinpath(f"{name}.txt").read_text()
    assert build_expectation(name) == expected, "run `python -m tests.golden.older` and read the difference"


def test_every_stored_output_belongs_to_a_manifest() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(BROKEN)))
def test_valid_manifest_is_converted_without_rejections(name: str) -> None:
    code, _, error_output = run_convert(name)
    assert (code, "refused" in error_output) == (0, False)


@pytest.mark.parametrize("name", sorted(set(BROKEN) - {REPAIRED}))
def test_broken_manifest_is_rejected_with_line_number_and_fix(name: str) -> None:
    code, _, error_output = run_convert(name)
    wrong = [line for line in error_output.splitlines() if "refused: " in line or "not YAML: " in line]
    assert (code, bool(wrong)) == (1, True)
    for line in wrong:
        assert re.match(rf"joiner convert: {name}\.yaml:\d+: ", line)
        assert re.search(FIX_VERBS, line), line


@pytest.mark.parametrize("name", NAMES)
def test_converted_output_converts_to_itself_and_passes_lint(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run_convert(name)
    converted_path = tmp_path / "once.yaml"
    converted_path.write_text(out)
    code, captured = main(["convert", "-f", str(converted_path)]), capsys.readouterr()
    if not out:
        assert (code, "empty" in captured.err) == (1, True)
        return
    assert (code, captured.out) == (0, out)
    main(["lint", "-f", str(converted_path)])
    assert " error: " not in capsys.readouterr().out
