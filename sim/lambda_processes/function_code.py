"""Unpacked function code: each uploaded zip file is unpacked once."""

import io
import zipfile
from hashlib import sha256
from pathlib import Path
from threading import Lock


class CodeCache:
    """Folders of unpacked zip files, below one folder. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Unpack below *folder*, which exists."""
        self._folder, self._lock = folder, Lock()

    def unpack_archive(self, body: bytes) -> Path:
        """Return the folder with the unpacked zip file *body*.

        Raises:
            zipfile.BadZipFile: *body* is not a zip file.
        """
        code_folder = self._folder / sha256(body).hexdigest()[:16]
        with self._lock:
            if not code_folder.is_dir():
                with zipfile.ZipFile(io.BytesIO(body)) as archive:
                    archive.extractall(code_folder)
        return code_folder
