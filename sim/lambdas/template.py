"""The template that the embedded world is wired by: what `cdk synth` would write, made offline and remembered.

The simulator stands below the infrastructure and may not import it, so the application runs in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cdk" / "templates"
ACTIVE: Final = {"joiner:disruption": "active"}
"""What people say once they have seen what would go; before that nothing does."""
SOURCES: Final = ("app.py", "cdk.json", "requirements-lambda.lock", "shared/settings.py")


class SynthesisError(Exception):
    """The application did not synthesise; the message is what it said."""


def synthesised(*, cache: bool = True, context: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Answer the stack's template; takes some seconds, or none if *cache* and nothing changed since.

    *context* overrules cdk.json: ``{"joiner:cluster": "prod"}``.

    Raises:
        SynthesisError: the application failed.
    """
    usual = json.loads((ROOT / "cdk.json").read_text())["context"]
    overruled = {key: value for key, value in sorted((context or {}).items()) if usual.get(key) != value}
    remembered = CACHE / f"{_digest(overruled)}.json"
    if cache and remembered.exists():
        return read_template(remembered)
    with tempfile.TemporaryDirectory() as folder:
        template = _synthesise(Path(folder), overruled)
    if cache:
        _remember(remembered, template)
    return template


def read_template(path: Path) -> dict[str, Any]:
    """Answer the template in the file at *path*, as `make synth` leaves it in cdk.out."""
    template: dict[str, Any] = json.loads(path.read_text())
    return template


def _digest(context: Mapping[str, str]) -> str:
    found = sha256(json.dumps(context).encode())
    for path in [*sorted((ROOT / "infra").glob("*.py")), *(ROOT / name for name in SOURCES)]:
        found.update(f"{path.relative_to(ROOT)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _synthesise(folder: Path, context: Mapping[str, str]) -> dict[str, Any]:
    # The layer is not built for a simulation; validation is the business of `make test`.
    flags = json.dumps({**context, "aws:cdk:bundling-stacks": []})
    variables = (f"CDK_OUTDIR={folder}", f"CDK_CONTEXT_JSON={flags}", "CDK_VALIDATION=false")
    command = ["/usr/bin/env", "-u", "PYTHONDONTWRITEBYTECODE", *variables, sys.executable, str(ROOT / "app.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    templates = sorted(folder.glob("*.template.json"))
    if done.returncode or len(templates) != 1:
        raise SynthesisError(f"app.py wrote {len(templates)} templates: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return read_template(templates[0])


def _remember(path: Path, template: Mapping[str, Any]) -> None:
    """Write in one step: another process may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(template, file)
    Path(file.name).replace(path)
