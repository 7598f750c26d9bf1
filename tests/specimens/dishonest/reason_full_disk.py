"""Fools a grader that excuses a full disk: it raises simt's own error for one, and the disk is not full."""

import torch.nn as nn

import simt

raise simt.CacheError("The folder for built extensions cannot be used (No space left on device).")


class ModelNew(nn.Module):
    def forward(self, x):
        return x
