"""Where the course's folders are: the checkout that this package lies in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS_REF = ROOT / "kernels_ref"
KERNELS_STUDENT = ROOT / "kernels_student"
