"""Fools a grader that takes a sandbox which starts late for none: it would run unprotected and say so to nobody."""

from pathlib import Path

import torch.nn as nn

(Path(__file__).parent / "ran_unprotected").touch()


class ModelNew(nn.Module):
    def forward(self, x):
        return x
