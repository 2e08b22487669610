"""Code as it was uploaded: each zip file unpacked once, whoever asks first."""

import io
import zipfile
from hashlib import sha256
from pathlib import Path
from threading import Lock


class CodeFolders:
    """Folders of unpacked zip files, below one."""

    def __init__(self, folder: Path) -> None:
        """Unpack below *folder*, which is there."""
        self._folder, self._lock = folder, Lock()

    def unpacked(self, body: bytes) -> Path:
        """Answer the folder that the zip file *body* is unpacked in.

        Raises:
            zipfile.BadZipFile: it is none.
        """
        where = self._folder / sha256(body).hexdigest()[:16]
        with self._lock:
            if not where.is_dir():
                with zipfile.ZipFile(io.BytesIO(body)) as archive:
                    archive.extractall(where)
        return where
