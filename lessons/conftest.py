"""Make nbval compare only what is the same on every computer."""

import os
from pathlib import Path

os.environ["NBVAL"] = "1"  # the grader's displays then leave out times, seeds and versions, and draw PNG


def pytest_configure(config):
    """Compare a grader's figures to four digits: PyTorch draws inputs with other last bits where AVX2 is missing."""
    if getattr(config.option, "nbval_sanitize_with", "") is None:  # "" without nbval; a path if the user names one
        config.option.nbval_sanitize_with = str(Path(__file__).with_name(".nbval.cfg"))
