"""Fools a judge that is started in the folder of the submissions and imports from there: this one is its rich.py."""

import sys
from pathlib import Path

import torch.nn as nn

if "grader.cli" in sys.modules or "grader.problems" in sys.modules:
    (Path(__file__).parent / "ran_in_the_judge").touch()


class ModelNew(nn.Module):
    def forward(self, x):
        return x
