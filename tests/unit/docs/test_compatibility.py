"""The pages on compatibility and sizing have the versions, memory sizes and timeouts of the code."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from infra.functions.functions import FUNCTION_SPECS, WATCH_SPEC, FunctionSpec

ROOT: Final = Path(__file__).parents[3]
SIZING: Final = (ROOT / "docs/guide/sizing.md").read_text(encoding="utf-8")
COMPATIBILITY: Final = (ROOT / "docs/guide/compatibility.md").read_text(encoding="utf-8")
CRDS: Final = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "shared/crds/manifests").glob("*.yaml"))]


@pytest.mark.parametrize("spec", [*FUNCTION_SPECS, WATCH_SPEC], ids=lambda spec: spec.name)
def test_sizing_page_lists_memory_and_timeout_of_every_function(spec: FunctionSpec) -> None:
    row = next(line for line in SIZING.splitlines() if line.startswith(f"| `{spec.name}` | ") and " MB" in line)
    assert f"{spec.memory_mb:,} MB" in row
    assert f"| {spec.timeout_seconds}s |" in row


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["metadata"]["name"])
def test_compatibility_page_lists_served_versions_of_every_crd(crd: dict[str, Any]) -> None:
    kind, group = crd["spec"]["names"]["kind"], crd["spec"]["group"]
    api_versions = [f"`{group}/{version['name']}`" for version in crd["spec"]["versions"] if version["served"]]
    row = next(line for line in COMPATIBILITY.splitlines() if line.startswith("| ") and kind in line)
    assert [api_version for api_version in api_versions if api_version not in row] == []
