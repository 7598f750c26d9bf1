"""A residual block: convolutions and batch normalisations, with a shortcut of its own."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, images):
        x = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(x)) + self.shortcut(images))


batch_size = 3
inputs = 4
outputs = 12
height, width = 18, 18


def get_inputs():
    return [torch.rand(batch_size, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs]
