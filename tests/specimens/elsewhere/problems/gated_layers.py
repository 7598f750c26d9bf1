"""Three linear layers, the last two multiplied with each other."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.enter = nn.Linear(inputs, outputs)
        self.value = nn.Linear(outputs, outputs)
        self.gate = nn.Linear(outputs, outputs)

    def forward(self, x):
        hidden = torch.relu(self.enter(x))
        return torch.relu(self.value(hidden) * self.gate(hidden))


batch_size = 64
inputs = 32
outputs = 48
CASES = [
    {"name": "one", "set": {"batch_size": 1, "inputs": 1, "outputs": 1}},
    {"name": "odd", "set": {"batch_size": 3, "inputs": 7, "outputs": 5}},
    {"name": "square", "set": {"batch_size": 4, "inputs": 8, "outputs": 8}},
]


def get_inputs():
    return [torch.randn(batch_size, inputs)]


def get_init_inputs():
    return [inputs, outputs]
