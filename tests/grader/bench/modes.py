"""Submissions, and a child in this process, for the tests of backward and sweep."""

import dataclasses
import json
from typing import ClassVar

from click.testing import CliRunner

from grader.bench.child import run_task
from grader.bench.order import Order
from grader.cli import main
from tests.grader.scaffold import HEAD

FUNCTION = """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gy):
        x, scale = ctx.saved_tensors
        return gy * scale, (gy * x).sum(0){}
"""
OWN = HEAD + "        return Scaled.apply(x, self.scale)\n" + FUNCTION.format("")
WRONG = HEAD + "        return Scaled.apply(x, self.scale)\n" + FUNCTION.format(" * 1.001")
DETACHED = HEAD + "        return (x * self.scale).detach()\n"
DIES = HEAD + "        raise SystemExit\n"
DIES_AT_8 = HEAD + "        return x * self.scale if len(x) != 8 else sys.exit()\n"
FULL_AT_8 = (
    HEAD
    + "        if len(x) == 8:\n            raise torch.OutOfMemoryError('CUDA out of memory')\n"
    + "        return x * self.scale\n"
)
PLANES = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x):
        return torch.sigmoid(self.conv(x))

batch_size = 2
height = 8
width = 8

def get_inputs():
    return [torch.rand(batch_size, 2, height, width)]

def get_init_inputs():
    return []
"""


def order_of(path, files=(), task="sweep", seconds=100.0, omitted=("compile",)):
    return Order(str(path), {}, "cpu", [str(f) for f in files], list(omitted), seconds, 0, task=task)


def run(*arguments: object):
    return CliRunner().invoke(main.cli, ["bench", *map(str, arguments), "--device", "cpu"])


class Here:
    """children.Child, but the child runs in this process; what would end it raises SystemExit. started: with what each
    began.
    """

    started: ClassVar[list[Order]] = []

    def __init__(self, order, tick):
        self.order, self.process, self.code = order, self, 0
        self.started.append(dataclasses.replace(order, skip=list(order.skip), done=list(order.done)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        printed = []
        try:
            run_task(self.order, lambda line: printed.append(json.dumps(line)))
        except SystemExit:
            self.code = -11
        yield from map(json.loads, printed)

    def wait(self):
        return self.code

    def describe_end(self):
        return "its process ended (ended by SIGSEGV)"
