"""Write files that a course's folder, or who teaches it, keeps."""

from __future__ import annotations

import tempfile
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Write a file that its owner alone may read, in one step: what it held stays if that fails. Raises OSError."""
    new = None
    try:
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8", newline="") as opened:
            new = Path(opened.name)
            opened.write(text)
        new.replace(file)
    except BaseException:
        if new:
            new.unlink(missing_ok=True)
        raise
