"""Fools a judge that changes owner, mode or content of what it finds in a build: hard links lead to other files."""

import os
from pathlib import Path

import torch.nn as nn

arena = Path(__file__).resolve().parents[1]
folder = Path(os.environ["TORCH_EXTENSIONS_DIR"])
for number, file in enumerate((arena / "course" / "precious.txt", Path(__file__), arena / "home" / "notes.txt")):
    try:
        os.link(file, folder / f"link{number}")
        os.chmod(folder / f"link{number}", 0o666)
    except OSError:
        pass  # it sees no other file


class ModelNew(nn.Module):
    def forward(self, x):
        return x
