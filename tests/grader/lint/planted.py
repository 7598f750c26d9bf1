"""Problems with a known gap in their cases, and sound ones."""

ZERO_BIAS = """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("bias", torch.zeros(features))

    def forward(self, x):
        return torch.relu(x + self.bias)

features = 6

def get_inputs():
    return [torch.rand(3, features)]

def get_init_inputs():
    return [features]

CASES = [{"name": "normal", "inputs": "normal"}, {"name": "wide", "set": {"features": 37}, "inputs": "normal"}]
"""

BIAS = ZERO_BIAS.replace("torch.zeros(features)", "torch.arange(1.0, features + 1)")

SYMMETRIC = """
class Model(nn.Module):
    def forward(self, A, B):
        return A @ B

size = 9

def get_inputs():
    A = torch.randn(size, size)
    return [A + A.T, torch.randn(size, 5)]

def get_init_inputs():
    return []

CASES = [{"name": "nine"}, {"name": "thirteen", "set": {"size": 13}}]
"""

# In float32, x + 1e5 is rounded to a multiple of 2^-7. The error of eager itself is 0.0023 on average, and the judge
# tolerates 20 times as much: 0.045, more than 1 % of values below 1.
CANCELLING = """
class Model(nn.Module):
    def forward(self, x):
        return (x + 1e5) - 1e5

size = 70

def get_inputs():
    return [torch.rand(3, size)]

def get_init_inputs():
    return []

CASES = [{"name": "own", "reduction": 1}]
"""

CONSTANT = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x.sum(1, keepdim=True), dim=1)

size = 7

def get_inputs():
    return [torch.rand(5, size)]

def get_init_inputs():
    return []

CASES = [{"name": "own"}, {"name": "wide", "set": {"size": 33}}]
"""

EQUIVALENT = """
class Model(nn.Module):
    def forward(self, x, y):
        return torch.maximum(x, y).mean(1) / 3.0

size = 7

def get_inputs():
    return [torch.randn(5, size), torch.randn(5, size)]

def get_init_inputs():
    return []

CASES = [{"name": "own"}, {"name": "wide", "set": {"size": 33}}]
"""

ONE_ROW = """
class Model(nn.Module):
    def forward(self, x):
        return x.sum(0)

rows = 1

def get_inputs():
    return [torch.randn(rows, 13)]

def get_init_inputs():
    return []

CASES = [{"name": "own"}]
"""

SOFTMAX = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

size = 7

def get_inputs():
    return [torch.randn(5, size)]

def get_init_inputs():
    return []

CASES = [{"name": "own"}, {"name": "wide", "set": {"size": 331}}, {"name": "uniform", "inputs": "uniform"}]
"""

# Problems of unusual kinds: forward's lines, and the lines of get_inputs.
UNUSUAL = {
    "two outputs, one of them integers": ("values, places = x.max(1)\nreturn values, places", "[torch.randn(5, size)]"),
    "a scalar": ("return (x * y).mean()", "[torch.randn(5, size), torch.randn(5, size)]"),
    "a truth value for each element": ("return x > 0", "[torch.randn(5, size)]"),
    "complex numbers": ("return torch.fft.fft(x)", "[torch.randn(5, size)]"),
    "an integer input": ("return x[i] * 2", "[torch.randn(size, 5), torch.randint(size, (9,))]"),
    "a number as an input": ("return x * k", "[torch.randn(5, size), 3.5]"),
    "an input that is changed": ("return x.relu_()", "[torch.randn(5, size)]"),
    "float64": ("return x.sum(1)", "[torch.randn(5, size, dtype=torch.float64)]"),
    "float16": ("return x + x", "[torch.randn(5, size).half()]"),
    "NaN and infinity": ("return torch.log(x)", "[torch.randn(5, size)]"),
    "a dict": ("return {'a': x + 1, 'b': [x * 2]}", "[torch.randn(5, size)]"),
}


def make_unusual(kind):
    """Return the text of a problem of this kind."""
    lines, inputs = UNUSUAL[kind]
    names = {"a scalar": "x, y", "an integer input": "x, i", "a number as an input": "x, k"}.get(kind, "x")
    body = "".join(f"        {line}\n" for line in lines.splitlines())
    return (
        f"class Model(nn.Module):\n    def forward(self, {names}):\n{body}\nsize = 37\n\n"
        f"def get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return []\n\n"
        "CASES = [{'name': 'own'}, {'name': 'eight', 'set': {'size': 8}}]\n"
    )
