"""A linear layer, group normalisation, leaky ReLU, and the result added to itself."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, hidden, groups, eps=1e-5, slope=0.01):
        super().__init__()
        self.fc = nn.Linear(inputs, hidden)
        self.gn = nn.GroupNorm(groups, hidden, eps=eps)
        self.act = nn.LeakyReLU(slope)

    def forward(self, rows):
        x = self.act(self.gn(self.fc(rows)))
        return x + x


batch_size = 20
inputs = 60
hidden = 96
groups = 8


def get_inputs():
    return [torch.rand(batch_size, inputs)]


def get_init_inputs():
    return [inputs, hidden, groups]
