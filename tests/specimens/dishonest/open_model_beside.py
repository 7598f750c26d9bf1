"""Fools a grader that takes the model.py next to a submission for its problem: it was handed in along with it."""

import sys
from pathlib import Path

import torch
import torch.nn as nn

if "grader.cli" in sys.modules or "grader.problems" in sys.modules:
    (Path(__file__).parent / "ran_in_the_judge").touch()


class Model(nn.Module):
    def forward(self, x):
        return x


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.ones(1)]


def get_init_inputs():
    return []
