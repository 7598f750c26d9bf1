"""The triplet margin loss of three sets of vectors."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, positive, negative):
        return self.loss(anchor, positive, negative)


batch_size = 32
features = 200


def get_inputs():
    return [torch.rand(batch_size, features) for _ in range(3)]


def get_init_inputs():
    return [1.0]
