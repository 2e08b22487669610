"""Where a bundle is written: a folder, or a tar.gz file. The same files give the same bytes."""

import gzip
import io
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

from infra.stack.bundle_files import INDEX_FILENAME, Files


def check_folder(folder: Path) -> None:
    """Check that *folder* can be replaced: it does not exist, is empty, or has an earlier bundle.

    Raises:
        ValueError: it has other content, which would be lost.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: choose another folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / INDEX_FILENAME).is_file():
        raise ValueError(f"{folder} has files, but no {INDEX_FILENAME}: choose an empty folder, or that of a bundle")


def write_folder(folder: Path, files: Files) -> None:
    """Replace *folder* by *files*."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


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
