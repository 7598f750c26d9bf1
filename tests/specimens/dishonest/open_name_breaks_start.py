"""Fools a grader that grades without a sandbox what it cannot start one for: its name is no text and has two lines."""

import contextlib
from pathlib import Path

import torch.nn as nn

with contextlib.suppress(OSError):  # the folder may be read-only
    (Path(__file__).parent / "ran_unprotected").touch()


class ModelNew(nn.Module):
    def forward(self, x):
        return x
