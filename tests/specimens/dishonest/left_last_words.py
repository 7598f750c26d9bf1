"""Fools a grader that lets a worker end by itself: its exit handler and its finalizer change the course's files."""

import atexit
import os
import signal
from pathlib import Path

import torch.nn as nn

precious = Path(__file__).resolve().parents[1] / "course" / "precious.txt"


class Finalizer:
    def __del__(self, write=precious.write_text):
        write("by a finalizer\n")


kept = Finalizer()
atexit.register(precious.write_text, "by an exit handler\n")
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, lambda *_: precious.write_text("by a signal's handler\n"))


class ModelNew(nn.Module):
    def forward(self, x):
        return x
