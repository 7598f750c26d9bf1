"""Fools a grader whose worker can write to the submissions: the file that is graded next becomes a wrong one."""

from pathlib import Path

import torch.nn as nn

own = Path(__file__).resolve()
try:
    (own.parent / "logsumexp_classmate.py").write_text("raise SystemExit\n")
except OSError:
    pass  # it must not be written


class ModelNew(nn.Module):
    def forward(self, x):
        return x
