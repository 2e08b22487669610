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
def test_a_manifest_becomes_what_was_written_down(name: str) -> None:
    expected = FOLDER.joinpath(f"{name}.txt").read_text()
    assert build_expectation(name) == expected, "run `python -m tests.golden.older` and read the difference"


def test_no_answer_is_left_of_a_manifest_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(BROKEN)))
def test_nothing_whole_is_refused(name: str) -> None:
    code, _, error_output = run_convert(name)
    assert (code, "refused" in error_output) == (0, False)


@pytest.mark.parametrize("name", sorted(set(BROKEN) - {REPAIRED}))
def test_what_is_broken_is_refused_with_its_line_and_a_remedy(name: str) -> None:
    code, _, error_output = run_convert(name)
    wrong = [line for line in error_output.splitlines() if "refused: " in line or "not YAML: " in line]
    assert (code, bool(wrong)) == (1, True)
    for line in wrong:
        assert re.match(rf"joiner convert: {name}\.yaml:\d+: ", line)
        assert re.search(FIX_VERBS, line), line


@pytest.mark.parametrize("name", NAMES)
def test_what_came_out_comes_out_again_and_has_no_errors(
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
