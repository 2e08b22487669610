"""`joiner convert` on texts that were copied with more, or less, than a manifest."""

from pathlib import Path

import pytest
import yaml

from cli.main import main

Out = pytest.CaptureFixture[str]
HEAD = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {providerRef: {name: a}}\n"


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        (f"\u276f kubectl get provisioner a -o yaml\n{HEAD}", 1, "a shell command"),
        (f"PS C:\\> type a.yaml\n{HEAD}", 1, "a shell command"),
        (f"user@host:~/a$ cat a.yaml\n{HEAD}", 1, "a shell command"),
        (f"export CLUSTER=a\n{HEAD}", 1, "a shell command"),
        (f"provisioner.yaml\n{HEAD}", 1, "has no colon"),
        (f"// what we had\n{HEAD}", 1, "comment of another language"),
        ("".join(f"> {line}\n" for line in HEAD.splitlines()), 1, "a quotation"),
        ("".join(f"{n}: {line}\n" for n, line in enumerate(HEAD.splitlines(), 1)), 1, "line numbers"),
        ("".join(f"{n} | {line}\n" for n, line in enumerate(HEAD.splitlines(), 1)), 1, "line numbers"),
        (f"{HEAD}—\n{HEAD}", 5, "three hyphens"),
        (f"{HEAD}====\n{HEAD}", 5, "three hyphens"),
        (f"{HEAD}  ---\n{HEAD}", 5, "three hyphens"),
        (f"{HEAD}…\n{HEAD}", 5, "marks omitted text"),
        (f"{HEAD}{HEAD}", 5, "write a line `---` above it"),
        (HEAD.replace("metadata: {name: a}", "metadata:\nname: a"), 3, "have lost their indentation"),
        (f"{HEAD}x:\n  • key: a\n    operator: In\n", 6, "this is a bullet"),
        (f"{HEAD}x: {{a: ${{B}}}}\n", 5, 'write "${B}"'),
        (f"{HEAD}x: &#34;a&#34;\n", 5, "this is HTML"),
        (f"{HEAD}{{% if a %}}\nx: 1\n{{% endif %}}\n", 5, "this is a template"),
        (f"{HEAD}%{{ if a }}\nx: 1\n", 5, "this is a template"),
        ("resources: [a.yaml]\n", 1, "kubectl kustomize"),
        ("apiVersion: v2\nname: karpenter\nversion: 1.0.0\n", 1, "describes a chart"),
        ("provisioners: [{name: a}]\n", 1, "if these are values of a chart"),
        (HEAD.replace("apiVersion", "APIVersion"), 1, "did you mean apiVersion?"),
        (HEAD.replace("kind:", "Kind:"), 1, "did you mean kind?"),
    ],
)
def test_text_copied_along_with_a_manifest_is_reported_with_its_line(
    tmp_path: Path, capsys: Out, text: str, line: int, remedy: str
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(text)
    assert main(["convert", "-f", str(file)]) == 1
    matching_lines = [error_line for error_line in capsys.readouterr().err.splitlines() if remedy in error_line]
    assert matching_lines
    assert matching_lines[0].startswith(f"joiner convert: {file}:{line}: ")


@pytest.mark.parametrize("head", ["- ", "# a comment\n---\n---\n- "])
def test_yaml_array_of_objects_is_read_as_a_list(tmp_path: Path, capsys: Out, head: str) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(
        head + HEAD.replace("\n", "\n  ").rstrip() + "\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n- 1\n"
    )
    assert main(["convert", "-f", str(file)]) == 1
    out, error_output = capsys.readouterr()
    assert [manifest["kind"] for manifest in yaml.safe_load_all(out)] == ["NodePool", "Secret"]
    assert "is not a Kubernetes object" in error_output
