"""The template that configures the embedded world: the output of `cdk synth`, generated offline and cached.

The simulator is a lower layer than the infrastructure code and must not import it, so the CDK app runs in a subprocess.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

REPOSITORY_ROOT: Final = Path(__file__).resolve().parents[3]
TEMPLATE_CACHE: Final = REPOSITORY_ROOT / ".cdk" / "templates"
CLUSTER: Final = "demo"
"""The cluster of the embedded world."""
ACTIVE_SETTINGS: Final = {"disruption": "active", "reaction": "tick"}
"""The settings of most simulations: disruption is enabled, which it is not by default, and pending pods are detected by
the schedule alone, which needs a tenth of the invocations.
"""
WATCH_SETTINGS: Final = ACTIVE_SETTINGS | {"reaction": "watch"}
"""The settings of playgrounds and of measurements in real time: pending pods are detected as by default."""
UNLIMITED_LAUNCHES_SETTINGS: Final = {
    f"launch-{limit}": "0"
    for limit in ("nodes-per-minute", "usd-per-hour", "pool-nodes-per-minute", "pool-usd-per-hour")
}
"""The settings that turn the launch circuit breaker off, for measurements of large clusters."""
SOURCE_FOLDERS: Final = ("infra", "shared/settings_by_topic")
SOURCE_FILES: Final = (
    "app.py",
    "cdk.json",
    "requirements-lambda.lock",
    "shared/settings_text.py",
    "shared/settings.py",
)


class SynthesisError(Exception):
    """The CDK app failed; the message is its output."""


def synthesize_template(*, cache: bool = True, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the stack's template; takes some seconds, or none if *cache* is set and the sources are unchanged.

    *settings* are those of the cluster `demo`: ``{"mode": "plan"}``.

    Raises:
        SynthesisError: the CDK app failed.
    """
    sorted_settings = dict(sorted((settings or {}).items()))
    cache_path = TEMPLATE_CACHE / f"{_compute_digest(sorted_settings)}.json"
    if cache and cache_path.exists():
        return read_template(cache_path)
    with tempfile.TemporaryDirectory() as folder:
        template = _run_synthesis(Path(folder), sorted_settings)
    if cache:
        _write_cache(cache_path, template)
    return template


def read_template(path: Path) -> dict[str, Any]:
    """Return the template in the file at *path*, as `make synth` writes it to cdk.out."""
    template: dict[str, Any] = json.loads(path.read_text())
    return template


def _compute_digest(settings: Mapping[str, str]) -> str:
    digest = sha256(json.dumps(settings).encode())
    for path in [
        *(path for folder in SOURCE_FOLDERS for path in sorted((REPOSITORY_ROOT / folder).rglob("*.py"))),
        *(REPOSITORY_ROOT / name for name in SOURCE_FILES),
    ]:
        digest.update(f"{path.relative_to(REPOSITORY_ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run_synthesis(folder: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    # The layer is not built for a simulation; `make test` runs the validation.
    settings_folder = folder / "clusters"
    settings_folder.mkdir()
    (settings_folder / f"{CLUSTER}.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    context = {"cluster": CLUSTER, "clusters-folder": str(settings_folder), "aws:cdk:bundling-stacks": []}
    context_json = json.dumps(context)
    variables = (f"CDK_OUTDIR={folder}", f"CDK_CONTEXT_JSON={context_json}", "CDK_VALIDATION=false")
    command = [
        "/usr/bin/env",
        "-u",
        "PYTHONDONTWRITEBYTECODE",
        *variables,
        sys.executable,
        str(REPOSITORY_ROOT / "app.py"),
    ]
    process = subprocess.run(command, cwd=REPOSITORY_ROOT, capture_output=True, text=True, check=False)
    templates = sorted(folder.glob("*.template.json"))
    if process.returncode or len(templates) != 1:
        raise SynthesisError(
            f"app.py wrote {len(templates)} templates: {process.stdout[-2000:]}{process.stderr[-4000:]}"
        )
    return read_template(templates[0])


def _write_cache(path: Path, template: Mapping[str, Any]) -> None:
    """Write the file atomically: another process may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(template, file)
    Path(file.name).replace(path)
