"""Hardsigmoid of hardtanh of softsign: functions with corners."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.hardsigmoid(4 * F.hardtanh(3 * F.softsign(x), min_val=-1.0, max_val=1.0))


batch_size = 20
features = 257


def get_inputs():
    return [torch.randn(batch_size, features) * 2]


def get_init_inputs():
    return []
