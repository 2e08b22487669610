"""What the rules find, and what they allow, on small examples."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.unit.conventions.baseline import drop_exceptions, find_differences, find_unused_exceptions, render_baseline
from tests.unit.conventions.rules import Breach, RuleException, find_name_breaches
from tests.unit.conventions.scanner import scan_file
from tests.unit.conventions.tree import find_breaches_of_layout, find_breaches_of_names

PATH = "shared/example.py"


def list_breaches(source: str) -> list[tuple[str, str, int]]:
    """Return rule, name and line of the breaches in *source*."""
    breaches = find_name_breaches(scan_file(PATH, dedent(source)))
    return sorted((breach.rule, breach.name, breach.line) for breach in breaches)


def build_breach(path: str = PATH, name: str = "found", count: int = 1) -> Breach:
    return Breach(rule="banned-variable", path=path, line=3, name=name, message="write the noun", count=count)


def write_tree(root: Path, texts: Mapping[str, str]) -> Path:
    for path, text in {"docs/glossary.md": "```text\nlong node\n```\n", **texts}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def list_rules_and_names(breaches: Iterable[Breach]) -> set[tuple[str, str]]:
    return {(breach.rule, breach.name) for breach in breaches}


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "_found = 1",
        "for found in pods:\n    use(found)\n    use(found)",
        "with file as found:\n    pass",
        "import found_pods as found",
        "try:\n    use()\nexcept OSError as found:\n    pass",
        "match pod:\n    case {'a': found}:\n        pass",
        "match pod:\n    case [*found]:\n        pass",
        "match pod:\n    case {**found}:\n        pass",
        "use(found := 1)",
        "def use(found): ...",
        "def use(*, found=1): ...",
        "def use(*found): ...",
        "class Pod:\n    found: int",
        "class Pod:\n    def read(self):\n        self.found = 1",
    ],
)
def test_pronoun_or_participle_as_variable_name_is_reported(source: str) -> None:
    assert [(rule, name.strip("_")) for rule, name, _ in list_breaches(source)] == [("banned-variable", "found")]


@pytest.mark.parametrize(
    "source",
    [
        "pods = 1",
        "found_pods = 1",
        "use(found)",
        "pod.found = 1",
        "__all__ = []",
        "[use(one) for one in pods]",
        "sort(pods, key=lambda one: one.name)",
        "for one in pods:\n    use(one)",
    ],
)
def test_nouns_and_single_line_loop_targets_are_allowed(source: str) -> None:
    assert list_breaches(source) == []


@pytest.mark.parametrize(
    ("name", "is_fine"),
    [
        ("build_pod", True),
        ("_find", True),
        ("is_ready", True),
        ("has_of", True),
        ("with_status", True),
        ("look_up_pod", True),
        ("__post_init__", True),
        ("look", False),
        ("pods", False),
        ("rank_of", False),
        ("rank_of_pod", False),
        ("told", False),
    ],
)
def test_function_name_must_begin_with_a_verb(name: str, *, is_fine: bool) -> None:
    assert list_breaches(f"def {name}(): ...") == ([] if is_fine else [("function-verb", name, 1)])


@pytest.mark.parametrize(
    "decorator", ["property", "cached_property", "functools.cached_property", "pods.setter", "overload"]
)
def test_property_name_may_be_a_noun(decorator: str) -> None:
    assert list_breaches(f"class Node:\n    @{decorator}\n    def pods(self): ...") == []


def test_docstring_beginning_with_answer_is_reported() -> None:
    source = '''
        """Answers."""
        class Pod:
            """Answer the pod."""
            name: str
            """Answer: the name."""
        answer = "Answer"
    '''
    lines = {line for rule, _, line in list_breaches(source) if rule == "answer-docstring"}
    assert lines == {2, 4, 6}


def test_banned_words_are_reported_only_in_docstrings_and_comments() -> None:
    source = '''
        """A knob.

        For whoever rehearses.
        """
        text = "nobody # nobody"  # nobody
        nobodys = f"{text} # nobody"
        size = 1  # ä "nobody"
    '''
    assert [breach for breach in list_breaches(source) if breach[0] == "banned-word"] == [
        ("banned-word", "knob", 2),
        ("banned-word", "nobody", 6),
        ("banned-word", "nobody", 8),
        ("banned-word", "rehearses", 4),
        ("banned-word", "whoever", 4),
    ]


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("MOST = 3", "bare-quantity"),
        ("_EVERY: Final = ('a', 'b')", "bare-quantity"),
        ("class Pods:\n    FEW = 3", "bare-quantity"),
        ("PODS = 3", "unit-of-number"),
        ("PODS: Final = -3 * 2", "unit-of-number"),
        ("SETTLED: Final = timedelta(minutes=3)", "unit-of-number"),
        ("MAX_PODS = 3", ""),
        ("PODS_PER_NODE = 3", ""),
        ("_SETTLE_TIMEOUT = timedelta(minutes=3)", ""),
        ("SIZE_BYTES = 2 * 1024", ""),
        ("HTTP_CONFLICT = 409", ""),
        ("LINE = '-' * 80", ""),
        ("FLAG = True", ""),
        ("class Level(IntEnum):\n    HIGH = 3", ""),
        ("def use():\n    PODS = 3", ""),
    ],
)
def test_constant_without_subject_or_unit_is_reported(source: str, rule: str) -> None:
    names = [breach[0] for breach in list_breaches(source) if breach[0] in ("bare-quantity", "unit-of-number")]
    assert names == ([rule] if rule else [])


@pytest.mark.parametrize(
    "source", ["class OldKnob: ...", "def find_knobs(): ...", "OLD_KNOBS = ()", "def use(knob): ..."]
)
def test_replaced_word_in_a_name_is_reported(source: str) -> None:
    assert [rule for rule, *_ in list_breaches(source)] == ["replaced-word"]


def test_repeated_class_name_is_reported(tmp_path: Path) -> None:
    texts = {
        "cli/a.py": "class Pod: ...\nclass _Row: ...\n",
        "cli/b.py": "class _Row: ...\n",
        "shared/a.py": "class Pod: ...\nclass _Row: ...\n",
        "sim/a.py": "class Pod: ...\n",
    }
    breaches = find_breaches_of_names(write_tree(tmp_path, texts))
    places = sorted((breach.path, breach.name) for breach in breaches if breach.rule == "repeated-class")
    assert places == [("cli/a.py", "Pod"), ("cli/a.py", "_Row"), ("cli/b.py", "_Row"), ("shared/a.py", "Pod")]


def test_only_the_variable_name_rule_applies_to_tests(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"tests/test_a.py": "MOST = 3\ndef pods(one): ...\n"})
    assert list_rules_and_names(find_breaches_of_names(root)) == {("banned-variable", "one")}


@pytest.mark.parametrize(
    ("texts", "breach"),
    [
        ({f"cli/long/node_{'long_' * number}node.py": "" for number in range(13)}, ("folder-size", "13 modules")),
        ({"cli/node.py": "\n" * 301}, ("file-length", "301 lines")),
        ({"cli/long_shelf.py": ""}, ("unknown-word", "long_shelf")),
        ({"cli/heap/node.py": ""}, ("unknown-word", "heap")),
        ({"cli/node.py": ""}, ("unused-word", "long")),
        ({"cli/long/node/utils.py": ""}, ("vague-module", "utils.py")),
        ({"shared/node/__init__.py": '"""A node."""\n\nimport os\n'}, ("init-file", "__init__.py")),
    ],
)
def test_layout_beyond_the_limits_is_reported(
    tmp_path: Path, texts: Mapping[str, str], breach: tuple[str, str]
) -> None:
    assert breach in list_rules_and_names(find_breaches_of_layout(write_tree(tmp_path, texts)))


def test_a_tree_within_the_limits_has_no_breaches(tmp_path: Path) -> None:
    texts = {f"cli/long/node_{'long_' * number}node.py": "\n" * 300 for number in range(12)}
    texts |= {"cli/long/__init__.py": "", "shared/node/__init__.py": '"""A node."""\n', "shared/node/__main__.py": ""}
    assert find_breaches_of_layout(write_tree(tmp_path, texts)) == []


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        ({PATH: 2}, ""),
        (
            {},
            f"{PATH}: 2 breaches of banned-variable, 0 recorded in the baseline; fix the new ones:\n  {PATH}:3: found:",
        ),
        (
            {PATH: 1},
            f"{PATH}: 2 breaches of banned-variable, 1 recorded in the baseline; fix the new ones:\n  {PATH}:3:",
        ),
        ({PATH: 3}, f"{PATH}: 2 breaches of banned-variable, 3 recorded in the baseline; lower it: python"),
        ({PATH: 2, "shared/gone.py": 1}, "shared/gone.py: 0 breaches of banned-variable, 1 recorded in the baseline;"),
    ],
)
def test_breach_counts_above_or_below_the_baseline_are_reported(recorded: Mapping[str, int], message: str) -> None:
    messages = find_differences("banned-variable", [build_breach(), build_breach()], {"banned-variable": recorded})
    assert [text.startswith(message) for text in messages] == ([True] if message else [])


def test_baseline_counts_breaches_by_rule_and_path() -> None:
    breaches = [build_breach(), build_breach(path="cli/a.py", count=3), build_breach()]
    assert render_baseline(breaches).endswith('\n\n[banned-variable]\n"cli/a.py" = 3\n"shared/example.py" = 2\n')


def test_exception_allows_only_its_breaches_and_is_reported_if_unused() -> None:
    needed, unneeded = (
        RuleException("banned-variable", "shared/*", "f*"),
        RuleException("banned-variable", "cli/*", "*"),
    )
    breaches = [build_breach(), build_breach(name="told")]
    assert drop_exceptions(breaches, [needed]) == breaches[1:]
    assert find_unused_exceptions(breaches, [needed, unneeded]) == [unneeded]
