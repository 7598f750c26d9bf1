"""radix_pass: the problem. One pass of a radix sort, which orders keys by one digit of four bits.

Eight passes, from the lowest digit to the highest, sort keys of 32 bits. This works because a pass is stable: keys with
equal digits keep the order that the passes before have given them.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """keys (length,) int32, not negative -> the same keys (length,) in the order of their digits (key >> shift) & 15.

    Keys with equal digits keep their order. shift is a number from 0 to 28.
    """

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, keys):
        digits = (keys >> self.shift) & 15
        return keys[torch.argsort(digits, stable=True)]


length = 2**26
shift = 8
least = 0  # of the keys
most = 2**31 - 1
order = "random"  # of the keys: or "rising", or "falling"


def get_inputs():
    keys = torch.randint(least, most + 1, (length,), dtype=torch.int32)
    if order != "random":
        keys = torch.sort(keys, descending=order == "falling").values
    return [keys]


def get_init_inputs():
    return [shift]


# Small enough for a CPU; each one is there for a mistake that the others let through. Nothing is summed but counts.
CASES = [
    # one thread has a key, and all other threads must stay out of the counts
    {"name": "one key", "set": {"length": 1, "shift": 0}, "inputs": "file", "reduction": 1},
    # the only block has threads to spare
    {"name": "five keys", "set": {"length": 5, "shift": 4}, "inputs": "file", "reduction": 1},
    # no number of keys per thread divides the length
    {"name": "prime sizes", "set": {"length": 10007}, "inputs": "file", "reduction": 1},
    # no block has threads to spare, and loads of 16 bytes are aligned up to the end
    {"name": "power of two", "set": {"length": 16384, "shift": 12}, "inputs": "file", "reduction": 1},
    # two of the largest blocks, each key a thread, and one key more; the lowest digit, for which nothing is shifted
    {"name": "one more than two blocks", "set": {"length": 2049, "shift": 0}, "inputs": "file", "reduction": 1},
    # above the highest digit are no bits, and the digits 8 to 15 have no keys
    {"name": "highest digit", "set": {"length": 3001, "shift": 28}, "inputs": "file", "reduction": 1},
    # every key keeps its place; all counts but one are 0, and that one is the length
    {
        "name": "all digits are 15",
        "set": {"length": 5003, "shift": 24, "least": 15 << 24, "most": (16 << 24) - 1},
        "inputs": "file",
        "reduction": 1,
    },
    # whole warps and blocks have one digit
    {
        "name": "in order already",
        "set": {"length": 9001, "shift": 24, "most": 2**28 - 1, "order": "rising"},
        "inputs": "file",
        "reduction": 1,
    },
    # the first blocks have the highest digits
    {
        "name": "in reverse order",
        "set": {"length": 9001, "shift": 24, "most": 2**28 - 1, "order": "falling"},
        "inputs": "file",
        "reduction": 1,
    },
    # almost all keys have the digit 0
    {
        "name": "few other digits",
        "set": {"length": 20011, "shift": 16, "most": 2**16 + 2**10},
        "inputs": "file",
        "reduction": 1,
    },
    # more blocks than one block has threads: the counts of the first 1,024 are not all
    {"name": "many blocks", "set": {"length": 390001, "shift": 20}, "inputs": "file", "reduction": 1},
]
