"""Fools a grader that takes a sandbox which fails for none, though it worked a moment ago."""

from pathlib import Path

import torch.nn as nn

(Path(__file__).parent / "ran_unprotected").touch()


class ModelNew(nn.Module):
    def forward(self, x):
        return x
