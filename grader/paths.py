"""Where the course's folders are, in the checkout that this package lies in, and the one of torch's compiler."""

import os
from pathlib import Path

from simt.toolchain.cache import user_cache

ROOT = Path(__file__).resolve().parent.parent
KERNELS_REF = ROOT / "kernels_ref"
KERNELS_STUDENT = ROOT / "kernels_student"
MINE = "mine"  # in a course's folder: the copies that a student opens and edits


def inductor_cache() -> Path:
    """Return the folder for torch.compile, which by default is one in /tmp."""
    return user_cache() / "grader" / "inductor"


def kept_ratios() -> Path:
    """Return the folder of what is kept of the baselines' times on this machine's GPUs."""
    return user_cache() / "grader" / "ratios"


def find_real_path(path: Path | str) -> Path:
    """Return where a path leads. Path.resolve() raises RuntimeError for a link to itself, which may be handed in."""
    return Path(os.path.realpath(path))


def find_place(path: Path | str, folder: Path | None = None) -> Path:
    """Return where a file lies. folder: one of many hands, which holds it; a link below it is a name like any other."""
    if folder is None:
        return find_real_path(path)
    return find_real_path(folder) / Path(os.path.abspath(path)).relative_to(os.path.abspath(folder))
