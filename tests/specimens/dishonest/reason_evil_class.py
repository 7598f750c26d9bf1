"""Fools a worker that trusts an exception's class: its name is a property that never returns."""

import torch.nn as nn


class Endless(type):
    @property
    def __name__(cls):
        while True:
            pass

    def __instancecheck__(cls, one):
        return True


class Error(Exception, metaclass=Endless):
    @property
    def __class__(self):
        return KeyboardInterrupt

    @property
    def __traceback__(self):
        raise SystemExit(3)


raise Error("no reason")


class ModelNew(nn.Module):
    def forward(self, x):
        return x
