"""A small problem and submissions to it, for the tests of the judge and the rooms around it."""

from pathlib import Path

import pytest

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * self.scale

batch_size = 4
features = 6

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features]

CASES = [
    {"name": "one row", "set": {"batch_size": 1}, "inputs": "normal"},
    {"name": "wide", "set": {"batch_size": 3, "features": 37}, "inputs": "normal"},
]
"""

HEAD = """
import ctypes, os, signal, sys, time
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
"""

RIGHT = HEAD + "        return x * self.scale\n"


def forward(*lines: str) -> str:
    """A submission whose forward is these lines."""
    return HEAD + "".join(f"        {line}\n" for line in lines)


@pytest.fixture(scope="session")
def problem(tmp_path_factory) -> Path:
    """The problem's file."""
    path = tmp_path_factory.mktemp("problem") / "scaling.py"
    path.write_text(PROBLEM)
    return path


def line_of(source: str, text: str) -> int:
    """The only line of the source with this text, from 1."""
    hits = [number for number, line in enumerate(source.splitlines(), 1) if text in line]
    assert len(hits) == 1
    return hits[0]
