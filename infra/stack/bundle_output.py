"""Where a bundle is written: a folder, or a tar.gz file. The same files give the same bytes."""

import gzip
import io
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

from infra.stack.bundle_files import CHECKSUMS_FILENAME, INDEX_FILENAME, Files


def list_earlier_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of the earlier bundle in *folder*: those that its checksums name, and the checksums.

    Raises:
        ValueError: *folder* is a file, or has a file that is not part of a bundle.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: choose another folder")
    files = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    names = _read_names(folder / CHECKSUMS_FILENAME)
    foreign_files = [path for path in files if path.relative_to(folder).as_posix() not in names]
    if foreign_files:
        raise ValueError(f"{foreign_files[0]} is not a file of a bundle: move it, or choose another folder")
    return tuple(files)


def _read_names(checksums: Path) -> frozenset[str]:
    """Return the paths of the bundle that *checksums* describes; none if it describes anything else."""
    if not checksums.is_file():
        return frozenset()
    lines = checksums.read_text(encoding="utf-8", errors="replace").splitlines()
    names = {line.partition("  ")[2] for line in lines}
    return frozenset({*names, CHECKSUMS_FILENAME}) if INDEX_FILENAME in names else frozenset()


def write_folder(folder: Path, files: Files) -> None:
    """Write *files* to *folder*, and delete what only the earlier bundle in it had.

    Raises:
        ValueError: *folder* has other files; nothing was written.
    """
    earlier_files = list_earlier_files(folder)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for earlier_file in earlier_files:
        if earlier_file.relative_to(folder).as_posix() not in files:
            earlier_file.unlink()


def write_archive(archive: Path, name: str, files: Files) -> None:
    """Write *files*, in a folder called *name*, to the tar.gz file *archive*."""
    buffer = io.BytesIO()
    # Without a time and a file name in the header, and without owners and times of the files: only the content counts.
    with (
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(buffer.getvalue())


def copy_assets(folder: Path, zip_files: Iterable[Path]) -> None:
    """Copy *zip_files* to *folder*; files of earlier versions stay, because a rollback needs them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in zip_files:
        shutil.copyfile(path, folder / path.name)
