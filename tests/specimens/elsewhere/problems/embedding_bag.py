"""The sums of embeddings of bags of tokens, without the padding."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim, padding_idx=0)

    def forward(self, tokens):
        return self.table(tokens).sum(dim=1)


batch_size = 64
length = 20
vocabulary = 1000
dim = 96


def get_inputs():
    return [torch.randint(0, vocabulary, (batch_size, length))]


def get_init_inputs():
    return [vocabulary, dim]
