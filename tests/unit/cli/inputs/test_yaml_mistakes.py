"""What is reported for a text that is not YAML or is probably a mistake: its line, and the fix."""

from pathlib import Path

import pytest

from cli.convert.reading.sources import SourceObject, read_objects
from cli.inputs.yaml_reader import read_marked_documents

HEAD = "apiVersion: karpenter.sh/v1\nkind: NodePool\n"


def list_mistakes(text: str) -> list[tuple[int, str]]:
    mistakes: list[tuple[int, str]] = []
    list(read_marked_documents(text, lambda line, message: mistakes.append((line, message))))
    return mistakes


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ('values:\n  - "a" "b"', 2, 'write ["a", "b"]'),
        ('a: 1\nvalues: "a" "b"', 2, 'write `values: ["a", "b"]`'),
        ('- key: "a": ["b"]', 1, 'write `key: "a"`, and below it `values: ["b"]`'),
        ("- key: a operator: In", 1, "each field on a separate line"),
        ("- key = a\n  operator: In", 1, "write `key: a`"),
        ("metadata:\n  name:a\n  labels: {}", 2, "write `name: a`"),
        ("a:\n  b: 1\n  ...\n  c: 2", 3, "marks omitted text"),
        ("a: 1\n-----\nb: 2", 2, "write three hyphens"),
        ("a:\n  – b: 1\n    c: 2", 2, "write a plain `-`"),  # noqa: RUF001 - a dash
        ("a: 1\nkind： b\nc: 2", 2, "a full-width colon"),  # noqa: RUF001 - a wide colon
        ("Some words:\n\n```yaml\na: b\n```\n", 3, "this is Markdown"),
        ("<pre>\na: b\n</pre>\n", 1, "this is HTML"),
        ("a: &quot;b&quot;\nc: d", 1, "this is HTML"),
        ("a: b\n-  c: 1\n+  d: 1\n", 3, "this is a diff"),
        ("$ cat a.yaml\na: b\nc: d", 1, "a shell command: remove the line"),
        ("a: b\nc: |\n  d\ne: <<-YAML\n f: g: h", 4, "a heredoc of a shell or of Terraform"),
        ('a: "b\nc: "d"\ne: f', 1, "close the quote"),
        ("a: [\u201cb, c\u201d]\nd: [e", 1, "typographic quotes"),
        ("a: {b: *}\n", 1, "begins with * or &"),
        ("a: 1\n\u00a0 b: 2: 3\n", 2, "contains U+00A0"),
        ("a: b\nc d\n", 3, "has no colon"),
        ("a: b\nc: *d\n", 2, "an anchor in another document"),
        ("a: b\nc: " + "[" * 5000 + "]" * 5000, 2, "nested too deeply"),
        ("a: " + "- " * 5000, 1, "correct"),
        ("- " * 5000 + "a", 1, "nested too deeply"),
    ],
)
def test_yaml_syntax_error_is_reported_with_line_and_fix(text: str, line: int, remedy: str) -> None:
    [(mistake_line, message)] = list_mistakes(text)
    assert (mistake_line, remedy in message) == (line, True), (mistake_line, message)


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "first on line 1"),
        ("a:\n  - {b: 1, b: 2}\n", 2, "duplicate key `b`"),
        ("a:\n\u00a0 b: 2\n", 2, "contains U+00A0"),
        ("a: b\u00a0\n", 1, "contains U+00A0"),
        ("a\u200bb: c\n", 1, "contains U+200B"),
        ("x: y\n---\na: 1\na: 2\n", 4, "first on line 3"),
    ],
)
def test_likely_yaml_mistake_is_reported_with_line_and_fix(text: str, line: int, remedy: str) -> None:
    [(mistake_line, message)] = list_mistakes(text)
    assert (mistake_line, remedy in message) == (line, True), (mistake_line, message)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\n",
        "a: &x {b: 1}\nd: *x\ne: *x\n",
        "a: one\u00a0word\n",
        'a: "\u00a0"\n',
        "a: |\n  b: 1\n  b: 2\n",
        "# \u201cquoted\u201d\na: it\u2019s\n",
        "a: |\n  " + "[\n  " * 2000,
        "a: [\n[],\n{\nb: c},\n" + "[d],\n" * 2000 + "]",
    ],
)
def test_valid_yaml_has_no_reported_mistakes(text: str) -> None:
    assert list_mistakes(text) == []


def test_original_spelling_of_plain_scalars_is_kept() -> None:
    [document] = read_marked_documents("a: 0123\nb: [1.10, yes, x]\nc: '4'\n", lambda *_: None)
    assert document.plain == {("a",): "0123", ("b", 0): "1.10", ("b", 1): "yes"}


def test_oversized_number_is_read_as_text() -> None:
    [document] = read_marked_documents(f"a: {'9' * 5000}\nb: =\n", lambda *_: None)
    assert document.value == {"a": "9" * 5000, "b": "="}


def read_sources(path: Path, text: str) -> tuple[list[SourceObject], list[str]]:
    path.write_text(text)
    unread: list[str] = []
    return list(read_objects([str(path)], unread.append)), unread


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("piVersion: v1\nkind: Pod\n", "piVersion: did you mean apiVersion?"),
        ("kind: Pod\nmetadata: {name: a}\n", "apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "kind is missing"),
        ("settings: {clusterName: a}\n", "values of a chart"),
        ("1 apiVersion: v1\n2 kind: Pod\n", "line numbers"),
        ("- {op: replace, path: /spec, value: 1}\n", "kubectl kustomize"),
        ('resource "a" "b" {\n  c = 1\n}\n', "this is Terraform"),
        ("just words\n", "write apiVersion"),
        ("- 1\n", "write apiVersion"),
    ],
)
def test_document_that_is_no_kubernetes_object_is_reported_with_a_fix(tmp_path: Path, text: str, remedy: str) -> None:
    _, [message] = read_sources(tmp_path / "a.yaml", text)
    assert remedy in message


def test_json_fields_have_line_numbers(tmp_path: Path) -> None:
    text = '{\n"kind": "PodList",\n"apiVersion": "v1",\n"items": [\n{"metadata": {\n"name": "a"}}]}'
    [source], unread = read_sources(tmp_path / "a.json", text)
    assert (source.value["kind"], source.value["apiVersion"], unread) == ("Pod", "v1", [])
    assert source.get_location(("metadata", "name")) == f"{tmp_path}/a.json:6"


def test_large_json_is_read_without_line_numbers(tmp_path: Path) -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "' + "x" * (1 << 20) + '"}}'
    [source], unread = read_sources(tmp_path / "a.json", text)
    assert (source.lines, unread) == ({}, [])


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000])
def test_too_deeply_nested_json_is_reported(tmp_path: Path, text: str) -> None:
    objects, [message] = read_sources(tmp_path / "a.json", text)
    assert (objects, "a.json:1: is nested too deeply" in message) == ([], True)


def test_invalid_json_is_reported_with_its_line(tmp_path: Path) -> None:
    objects, [message] = read_sources(tmp_path / "a.json", '{"a": 1,\n}')
    assert (objects, "a.json:2: not JSON" in message) == ([], True)
