"""One step of an LSTM cell, which returns its two states."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.cell = nn.LSTMCell(input_size, hidden_size)

    def forward(self, x, h, c):
        return self.cell(x, (h, c))


batch_size = 10
input_size = 128
hidden_size = 256


def get_inputs():
    return [
        torch.randn(batch_size, input_size),
        torch.randn(batch_size, hidden_size),
        torch.randn(batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size]
