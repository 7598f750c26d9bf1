"""What every test shares: tests marked gpu are skipped, with the reason, where there is no GPU."""

import shutil

import pytest
import torch


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        reason = "no CUDA device"
    elif not shutil.which("nvcc"):
        reason = "no nvcc"
    else:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=reason))
