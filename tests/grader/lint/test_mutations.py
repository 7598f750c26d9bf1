"""Are the mutations of a Model's source those that are listed, and does each change one expression?"""

import ast
import textwrap

import pytest

from grader.lint.mutations import list_mutations

HEAD = "class Model(nn.Module):\n    def forward(self, x, y):\n"


def mutate(line, before=""):
    """(before, after) of each mutation of a forward with this line."""
    tree = ast.parse(HEAD + textwrap.indent(line, "        "))
    return {(one.before, one.after) for one in list_mutations(tree, frozenset({"Model"})) if before in one.before}


@pytest.mark.parametrize(
    "line, before, after",
    [
        ("return x + 2", "2", "3"),
        ("return x * 0.5", "0.5", "0.0"),
        ("return x + y", "x + y", "x - y"),
        ("return x + y", "x + y", "y"),
        ("return x / y", "x / y", "x"),
        ("return x @ y", "x @ y", "y @ x"),
        ("return (x + y) * 3", "(x + y) * 3", "x + y * 3"),
        ("return (x + y) * 3", "(x + y) * 3", "x * 3 + y"),
        ("return torch.sigmoid(x)", "torch.sigmoid(x)", "x"),
        ("return x.tanh()", "x.tanh()", "x"),
        ("return self.act(x)", "self.act(x)", "x"),
        ("return self.a(self.b(x))", "self.a(self.b(x))", "self.b(self.a(x))"),
        ("return x.sum(dim=1)", "1", "0"),
        ("return x.sum(dim=1)", "x.sum(dim=1)", "x.mean(dim=1)"),
        ("return torch.mean(x, 1)", "torch.mean(x, 1)", "torch.amax(x, 1)"),
        ("return x.sum(1, keepdim=True)", "True", "False"),
        ("return x.sum(1, keepdim=True)", "x.sum(1, keepdim=True)", "x.sum(1)"),
        ("return x.var(1)", "x.var(1)", "x.var(1, correction=0)"),
        ("return torch.relu(x)", "torch.relu(x)", "torch.nn.functional.leaky_relu(x)"),
        ("return torch.clamp(x, 0.0, 1.0)", "torch.clamp(x, 0.0, 1.0)", "torch.clamp(x, 0.0)"),
        ("return torch.clamp(x, 0.0, 1.0)", "torch.clamp(x, 0.0, 1.0)", "torch.clamp(x, None, 1.0)"),
        ("return F.conv2d(x, y, stride=2)", "F.conv2d(x, y, stride=2)", "F.conv2d(x, y)"),
        ("return F.conv2d(x, y)", "F.conv2d(x, y)", "F.conv2d(x, y, padding=1)"),
        ("return F.layer_norm(x, self.n)", "F.layer_norm(x, self.n)", "F.layer_norm(x, self.n, eps=2e-05)"),
        ("return nn.ReLU()(x)", "nn.ReLU()", "nn.LeakyReLU()"),
        ("return x if x.dim() < 2 else y", "x.dim() < 2", "x.dim() <= 2"),
        ("return -x", "-x", "x"),
        ("return x.T", "x.T", "x"),
        ("return f(x, self.k)", "f(x, self.k)", "f(x, self.k + 1)"),
    ],
)
def test_a_mutation_is_listed(line, before, after):
    assert (before, after) in mutate(line)


@pytest.mark.parametrize(
    "line",
    [
        "while x < 3:\n    x = x + 1",
        "raise ValueError(3)",
        "assert x == 2, 3",
        "return f'{x + 1}'",
        "super().forward(3)",
    ],
)
def test_what_may_never_end_or_is_no_value_stays(line):
    assert not mutate(line)


def test_each_changes_one_expression_and_no_line():
    """Is the mutated source that of the original but for one expression, in the lines of the original?"""
    text = HEAD + "        z = torch.tanh(x) + 2 * y\n        return z.sum(dim=1)\n"
    tree = ast.parse(text)
    for mutation in list_mutations(tree, frozenset({"Model"})):
        made = mutation.apply(tree)
        assert ast.unparse(tree) == ast.unparse(ast.parse(text))
        assert ast.unparse(made) != ast.unparse(tree)
        changed = [a != b for a, b in zip(ast.unparse(made).splitlines(), ast.unparse(tree).splitlines(), strict=True)]
        assert sum(changed) == 1
        compile(made, "mutant", "exec")
    assert len(list_mutations(tree, frozenset({"Model"}))) > 10


def test_other_functions_stay():
    """Are get_inputs and what Model does not use left as they are?"""
    tree = ast.parse("def get_inputs():\n    return [3]\ndef used():\n    return 4\n")
    assert {one.before for one in list_mutations(tree, frozenset({"Model", "used"}))} == {"4"}
