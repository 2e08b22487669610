"""`make release`: the files of a release, in one folder.

The wheel of the command line, the stack as a template and zip files, the bundle for GitOps, the SBOM of the layer, the
release notes, and the checksums of all of these.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from infra.settings.files.selection import EXAMPLE_NAME
from infra.settings.settings import StackOptions
from infra.stack.bundle_files import build_bundle, format_bundle_name
from infra.stack.bundle_output import write_archive
from infra.stack.publish import ROOT, TEMPLATE_FILENAME, build_from_command_line, publish_stack, read_version

CHANGELOG: Final = ROOT / "CHANGELOG.md"
NOTES_FILENAME: Final = "release-notes.md"
SBOM_FILENAME: Final = "joiner.cdx.json"
CHECKSUMS_FILENAME: Final = "SHA256SUMS"


def find_release_notes(changelog: str, version: str) -> str:
    """Return the section of *version* in the text of the changelog.

    Raises:
        ValueError: the changelog has no section for *version*, or the section is empty.
    """
    sections = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    notes = dict(zip(sections[1::2], sections[2::2], strict=True)).get(version, "").strip()
    if not notes:
        raise ValueError(f"CHANGELOG.md has no entries below a heading '## [{version}] - DATE': add them")
    return notes + "\n"


def format_checksums(paths: Sequence[Path]) -> str:
    """Return a line for each file, as `sha256sum --check` reads them."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def build_wheel(folder: Path) -> None:
    """Build the wheel of the command line into *folder*."""
    _run(sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--no-create-gitignore", "--out-dir", str(folder))


def build_sbom(folder: Path) -> None:
    """Write the SBOM of the Lambda layer, with the locked version and hashes of each package, into *folder*."""
    options = ("--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(folder / SBOM_FILENAME))
    _run(
        sys.executable,
        "-W",
        "ignore::UserWarning",
        "-m",
        "cyclonedx_py",
        "requirements",
        "requirements-lambda.lock",
        *options,
    )


def build_release(folder: Path, options: StackOptions, *, bundle: bool = True) -> tuple[Path, ...]:
    """Write all files of the release into *folder*, which is recreated; return their paths, sorted.

    Raises:
        ValueError: the changelog has no entries for the version, or a setting is invalid.
    """
    notes = find_release_notes(CHANGELOG.read_text(encoding="utf-8"), read_version())
    paths = publish_stack(folder, options, bundle=bundle)
    template = (folder / TEMPLATE_FILENAME).read_bytes()
    files = build_bundle(options, template, [path for path in paths if path.suffix == ".zip"])
    name = format_bundle_name(options.cluster)
    write_archive(folder / f"{name}.tar.gz", name, files)
    build_wheel(folder)
    build_sbom(folder)
    (folder / NOTES_FILENAME).write_text(notes, encoding="utf-8")
    (folder / CHECKSUMS_FILENAME).write_text(format_checksums([*folder.iterdir()]), encoding="utf-8")
    return tuple(sorted(folder.iterdir()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the release; return 2 if the changelog or a setting is invalid."""
    folder = build_from_command_line(
        "make release", "Write the files of a release.", build_release, arguments, default_cluster=EXAMPLE_NAME
    )
    return 2 if folder is None else 0


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
