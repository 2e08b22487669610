"""Another version of Joiner: a copy of this checkout with one additional constant in the functions' code."""

import shutil
from pathlib import Path
from typing import Final

from tests.e2e.libraries import ROOT

COPIED: Final = ("functions", "infra", "shared", "app.py", "cdk.json", "requirements-lambda.lock", "pyproject.toml")
LINKED: Final = (".venv", "node_modules", "package.json")
CHANGE: Final = '\nRELEASE = "the next one"\n'


def create_next_release(folder: Path) -> Path:
    """Create the version in *folder*; return the folder, ready for `cdk deploy`."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    with (folder / "functions" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(CHANGE)
    return folder
