"""A small problem whose sizes derive from one another."""

LINEAR = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.layer = nn.Linear(inner, outer)
            self.gain = nn.Parameter(torch.ones(outer))

        def forward(self, x):
            return torch.relu(self.layer(x)) * self.gain


    batch_size = 4
    inner = outer = 8
    shape = (batch_size, inner)


    def get_inputs():
        return [torch.rand(*shape)]


    def get_init_inputs():
        return [inner, outer]
"""
