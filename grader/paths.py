"""Where the course's folders are: the checkout that this package lies in."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS_REF = ROOT / "kernels_ref"
KERNELS_STUDENT = ROOT / "kernels_student"


def find_real_path(path: Path | str) -> Path:
    """Return where a path leads. Path.resolve() raises RuntimeError for a link to itself, which may be handed in."""
    return Path(os.path.realpath(path))
