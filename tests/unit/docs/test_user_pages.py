"""Pages for users: no names of tests, and policies that can be copied."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
USER_PAGES: Final = (
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("index.md", "cost.md", "networking.md", "reaction.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
)
TEST_PATTERN: Final = re.compile(r"tests/\S+\.py|\btest_\w+|\.py::")


def list_code_blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of *page* in *language*."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda page: page.name)
def test_user_page_names_no_test(page: Path) -> None:
    assert TEST_PATTERN.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["security.md", "doctor.md"])
def test_policies_in_the_guides_are_valid_json_with_unique_statements(name: str) -> None:
    policies = [json.loads(block) for block in list_code_blocks(ROOT / "docs" / "guide" / name, "json")]
    assert policies
    statements = [statement for policy in policies for statement in policy["Statement"]]
    assert len({statement["Sid"] for statement in statements}) == len(statements)
    for statement in statements:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        assert actions == sorted(actions)
        assert all(re.fullmatch(r"[a-z0-9-]+:(\*|[A-Z]\w+)", action) for action in actions)


def test_operator_cluster_role_covers_the_kinds_of_the_first_manifests() -> None:
    [role] = [yaml.safe_load(block) for block in list_code_blocks(ROOT / "docs" / "guide" / "security.md", "yaml")]
    allowed = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if {"create", "patch"} <= {*rule["verbs"]}
    }
    applied = {
        (document["apiVersion"].partition("/")[0], f"{document['kind'].lower()}s".replace("classs", "classes"))
        for name in ("getting-started.yaml", "inflate.yaml")
        for document in yaml.safe_load_all((ROOT / "examples" / name).read_text(encoding="utf-8"))
    }
    assert applied <= allowed
