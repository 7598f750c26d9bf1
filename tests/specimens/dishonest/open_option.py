"""Fools a command line that takes a file's name for an option: it is called --problem=x.py and is run by the judge."""

from pathlib import Path

import torch
import torch.nn as nn

(Path.cwd() / "ran_in_the_judge").touch()


class Model(nn.Module):
    def forward(self, x):
        return x


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.ones(1)]


def get_init_inputs():
    return []
