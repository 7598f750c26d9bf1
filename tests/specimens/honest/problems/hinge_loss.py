"""The mean hinge loss for labels of -1 and 1."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, predictions, labels):
        return torch.mean(torch.clamp(1 - predictions * labels, min=0))


batch_size = 64


def get_inputs():
    return [torch.rand(batch_size, 1), torch.randint(0, 2, (batch_size, 1)).float() * 2 - 1]


def get_init_inputs():
    return []
