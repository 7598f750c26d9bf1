"""Are sizes of 16 and less lowered where nothing else makes a case small enough, and only there?"""

import pytest

from grader.problems import cases, problem

HEAD = "import torch\nimport torch.nn as nn\n"

VOLUME = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.sum(self.dim)

axis = 5

def get_inputs():
    return [torch.rand(n_images, planes, depth, height, width, 16)]

def get_init_inputs():
    return [axis]

n_images, planes, depth, height, width = 16, 14, 12, 15, 16
"""
)

MANY_LAYERS = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        sizes = [features] + [hidden * 256] * layers
        self.net = nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])))

    def forward(self, x):
        return self.net(x)

batch_size = 64
features = 1024
hidden = 8
layers = 12

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features, hidden, layers]
"""
)


@pytest.mark.parametrize(
    ("text", "stays"),
    [(VOLUME, {"axis": 5}), (MANY_LAYERS, {}), (MANY_LAYERS.replace("layers = 12", "layers = 2"), {"layers": 2})],
)
def test_small_sizes_are_lowered_where_the_others_are_not_enough(tmp_path, text, stays):
    """Are cases made of different sizes that are small enough, without those that need not change?"""
    path = tmp_path / "small.py"
    path.write_text(text)
    read = problem.read(path)
    made = [case.set for case in read.cases()]
    assert sum(case not in made[:number] for number, case in enumerate(made)) >= cases.FEW, made
    for case in read.cases():
        cases.check_cost(read, case)
        assert {name: case.set.get(name, read.literals[name]) for name in stays} == stays, case
