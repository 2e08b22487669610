"""The versions of Node.js that the locked jsii supports without a banner are the same in all files that name them."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Final

import jsii
import pytest

from cli.doctor.preflight.runtime_versions import SUPPORTED_NODE_MAJORS

ROOT: Final = Path(__file__).parents[3]
LOCKED_ON: Final = date(2026, 11, 23)
"""When `make lock` last ran: a version whose support ended before is not supported."""
RELEASE: Final = re.compile(r'new NodeRelease\((\d+),\{endOfLife:new Date\("([\d-]+)"\)([^}]*)\}')
PAGES: Final = (
    *("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/guide/compatibility.md", "docs/guide/getting-started.md"),
)


def test_supported_versions_are_those_of_the_locked_jsii() -> None:
    runtime = Path(jsii.__file__).parent / "_embedded" / "jsii" / "bin__jsii-runtime.js"
    releases = RELEASE.findall(runtime.read_text())
    assert len(releases) > 5
    assert (
        tuple(
            sorted(
                int(major)
                for major, end, rest in releases
                if date.fromisoformat(end) > LOCKED_ON and "untested" not in rest
            )
        )
        == SUPPORTED_NODE_MAJORS
    )


def test_package_json_makefile_and_workflow_name_the_supported_versions() -> None:
    supported_range = " || ".join(f"^{major}.0.0" for major in SUPPORTED_NODE_MAJORS)
    assert json.loads((ROOT / "package.json").read_text())["engines"] == {"node": supported_range}
    assert json.loads((ROOT / "package-lock.json").read_text())["packages"][""]["engines"] == {"node": supported_range}
    assert f"^v({'|'.join(map(str, SUPPORTED_NODE_MAJORS))})" in (ROOT / "Makefile").read_text()
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert set(re.findall(r'node-version: "(\d+)"', workflow)) <= set(map(str, SUPPORTED_NODE_MAJORS))


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_the_supported_versions(page: str) -> None:
    words = " ".join((ROOT / page).read_text().split())
    assert set(re.findall(r"Node\.js (\d+(?: or (?:\d+|newer))?)", words)) == {
        " or ".join(map(str, SUPPORTED_NODE_MAJORS))
    }
