"""Tests of `make mutants`: which mutants there are, the sample, the known survivors, and a trial in a small copy."""

from pathlib import Path

import pytest

from tests.mutation_testing import trial
from tests.mutation_testing.__main__ import ROOT, list_stale_survivors, main, render_counts
from tests.mutation_testing.core_modules import TESTS_BY_MODULE, find_own_tests
from tests.mutation_testing.mutants import Change, find_change, list_mutants, read_sources, sample_mutants
from tests.mutation_testing.survivors import read_survivors, render_survivor
from tests.mutation_testing.trial import Timeouts, TrialError, Workspace, find_first_failure

MODULE = "shared/limits.py"
SOURCE = """class Limits(Base, frozen=True):
    count: int | None = None

    def has_place(self, *, pods: int | str) -> bool | None:
        return pods < 8
"""


def list_changes(source: str = SOURCE) -> list[tuple[str, str]]:
    return [
        (mutant.definition, mutant.render(source).splitlines()[4].strip()) for mutant in list_mutants(MODULE, source)
    ]


def test_only_code_is_changed_not_annotations_and_options_of_classes() -> None:
    changes = list_changes()
    assert {definition for definition, _ in changes} == {"has_place"}
    assert ("has_place", "return pods <= 8") in changes
    assert ("has_place", "return pods < 9") in changes
    assert all(line != "return pods < 8" for _, line in changes)


def test_sample_has_one_mutant_for_each_place_and_depends_on_the_seed() -> None:
    mutants = list(list_mutants(MODULE, SOURCE))
    sample = sample_mutants(mutants, 10, seed=1)
    assert len({(mutant.start, mutant.end) for mutant in mutants}) == len(sample) < len(mutants)
    assert sample == sample_mutants(mutants, 10, seed=1)
    assert len({tuple(sample_mutants(mutants, 10, seed=seed)) for seed in range(9)}) > 1
    assert len(sample_mutants(mutants, 1, seed=1)) == 1


def test_change_is_identified_by_its_lines_and_function() -> None:
    [mutant] = [mutant for mutant in list_mutants(MODULE, SOURCE) if mutant.operator.endswith("_Lt_LtE")]
    expected = Change(module=MODULE, definition="has_place", before="return pods < 8", after="return pods <= 8")
    assert find_change(mutant, SOURCE) == expected


def test_mutant_of_another_source_is_refused() -> None:
    mutant = next(list_mutants(MODULE, SOURCE))
    with pytest.raises(ValueError, match="changes nothing at occurrence"):
        mutant.render("pass\n")


def test_survivor_can_be_copied_to_the_file_once_it_has_a_reason(tmp_path: Path) -> None:
    change = Change(module=MODULE, definition="f", before="a = 'x'\nb = 1", after="a = 'y'\nb = 1")
    path = tmp_path / "survivors.toml"
    path.write_text(render_survivor(change))
    with pytest.raises(ValueError, match="survivor 1 has no reason"):
        read_survivors(path)
    path.write_text(render_survivor(change).replace('reason = ""', 'reason = "equal"'))
    assert read_survivors(path) == {change: "equal"}


def test_every_known_survivor_is_a_change_of_the_present_code() -> None:
    assert list_stale_survivors(read_survivors(), read_sources(ROOT, TESTS_BY_MODULE)) == []
    stale = Change(module=next(iter(TESTS_BY_MODULE)), definition="", before="no such line", after="")
    assert list_stale_survivors({stale: "why"}, read_sources(ROOT, TESTS_BY_MODULE)) == [stale]


def test_modules_and_their_tests_exist_and_the_tests_of_the_own_folder_are_first() -> None:
    for module in TESTS_BY_MODULE:
        assert (ROOT / module).is_file()
        assert all((ROOT / test).exists() for test in (*TESTS_BY_MODULE[module], *find_own_tests(module)))
    budget, client = "shared/decide/disruption/budgets/budget.py", "shared/kubernetes/client.py"
    assert find_own_tests(budget) == [budget, "tests/unit/shared/decide/disruption/budgets"]
    assert find_own_tests(client) == [client]


def test_module_without_known_tests_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shared/none.py"]) == 2
    assert "shared/none.py: no tests are known: add the module" in capsys.readouterr().err


def test_counts_are_summarized() -> None:
    assert render_counts(40, 37, 2, seed=1) == (
        "\n40 mutants with seed 1: 37 killed (92 %), 3 survived (2 with a reason)\n"
    )


def test_first_failure_is_read_from_the_summary_of_pytest() -> None:
    assert find_first_failure("x\nFAILED a.py::test_b[c - d] - assert 1\n") == "a.py::test_b[c"
    assert find_first_failure("ERROR tests/a.py\n1 error") == "tests/a.py"
    assert not find_first_failure("3 passed")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    root = tmp_path / "root"
    (root / "code").mkdir(parents=True)
    (root / "code" / "limits.py").write_text("LIMIT = 8\n")
    (root / "code" / "test_limits.py").write_text(
        "from code_limits import LIMIT\n\n\ndef test_limit():\n    while LIMIT == 0: pass\n    assert LIMIT != 9\n"
    )
    (root / "conftest.py").write_text(
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('code_limits', 'code/limits.py')\n"
        "module = sys.modules['code_limits'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    monkeypatch.setattr(trial, "COPIED", ("code", "conftest.py"))
    monkeypatch.setattr(trial, "MIN_TIMEOUT_SECONDS", 1)
    folder = tmp_path / "copy"
    folder.mkdir()
    return Workspace(folder, root, Timeouts())


def test_mutant_is_killed_by_a_failing_test_or_by_an_endless_test_and_survives_otherwise(workspace: Workspace) -> None:
    outcomes = [
        workspace.try_mutant("code/limits.py", text, ["code"])
        for text in ("LIMIT = 9\n", "LIMIT = 0\n", "LIMIT = 7\n", "(\n")
    ]
    assert [result.outcome for result in outcomes] == ["killed", "timeout", "survived", "killed"]
    assert outcomes[0].killer == "code/test_limits.py::test_limit"


def test_tests_that_fail_without_a_change_are_reported(workspace: Workspace) -> None:
    with pytest.raises(TrialError, match="without a change"):
        workspace.try_mutant("code/limits.py", "LIMIT = 9\n", ["none"])
