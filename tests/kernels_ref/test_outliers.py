"""Do the fastest files keep the digits of ordinary numbers next to outliers, in the result and in every gradient?

On a CPU, as on an H200, where these kernels differ from one that sums in float32: in tensor cores' halves a number far
beyond the others takes their digits. test_fastest.py has some of it on a GPU."""

import copy
import dataclasses
from typing import Any

import pytest
import torch
import torch.nn.grad

import simt
from tests.kernels_ref.test_fastest import EXACT, FASTEST, far, to_tf32, with_literals, worst
from tests.kernels_ref.test_solutions import ON_CPU, SEED
from tests.sample import sample

pytestmark = pytest.mark.skipif(not ON_CPU, reason="a GPU runs the fast paths: test_fastest")


@dataclasses.dataclass
class Way:
    """Sizes for which a file takes one of its ways, and the kernels that tell: forward's, backward's (none: not a way
    of backward's).
    """

    height: int
    width: int
    forward: str
    backward: str | None
    literals: dict = dataclasses.field(default_factory=dict)


WAYS = {
    "conv_sigmoid_groupnorm": {
        "tiles": Way(7, 43, "tiles_kernel", "gweight_tensor_kernel"),
        "image": Way(6, 42, "image_kernel", "image_gradients_kernel"),
        "half": Way(5, 42, "half_kernel", None),
    },
    "conv_groupnorm_logsumexp": {
        "image": Way(14, 20, "logsumexp_kernel", "setup_kernel", {"out_channels": 16, "groups": 4})
    },
    "conv_groupnorm_maxpool": {
        "small": Way(18, 22, "finish_kernel", "gradient_kernel"),
        "wide": Way(27, 140, "finish_kernel", "gradient_kernel"),  # two tiles next to each other
    },
}
CASES = [
    f"{name} {way}"
    for name in FASTEST
    for way, made in WAYS.get(name.split("/")[0], {}).items()
    if made.backward or "backward" not in name
]


@dataclasses.dataclass
class Outliers:
    """values: (image, channel, row, column) -> number. quiet: the gradient of all that they reach is 0. unseen:
    channels of the result for which the weights of their channel are 0."""

    values: dict
    quiet: bool = False
    unseen: slice | None = None


OUTLIERS = {
    "none": Outliers({}),
    "1e3": Outliers({(0, 3, 3, 17): 1e3}),
    "1e4 in a corner": Outliers({(0, 0, 0, 0): 1e4}),
    "1e6 at an edge": Outliers({(0, 7, 2, -1): 1e6}),
    "1e8": Outliers({(0, 3, 3, 17): 1e8}),
    "1e9, no gradient": Outliers({(1, 3, 3, 17): 1e9}, quiet=True),
    "-1e12 in the last corner": Outliers({(1, 0, -1, -1): -1e12}),
    "1e17": Outliers({(0, 3, 3, 17): 1e17}),
    "several": Outliers({(0, 3, 3, 17): 1e7, (0, 0, 0, 0): -1e9, (1, 5, -1, 9): 1e12, (1, 7, 0, -1): -1e6}),
    "1e8 next to NaN": Outliers({(0, 3, 3, 17): 1e8, (1, 0, 0, 0): float("nan")}),
    "1e6 that no weight sees": Outliers({(0, 1, 3, 7): 1e6}, unseen=slice(None)),
    "1e17 that a group does not see": Outliers({(0, 1, 3, 7): 1e17}, quiet=True, unseen=slice(0, 4)),
}
# Blocks that wait for each other run one after another here: what they wait for is there behind a barrier of the whole
# grid.
SYNC = "cooperative_groups::this_grid().sync();\n"
WAITS = [
    "for (int p0 = 0; p0 < members; p0 += 4 * WARP) {",
    "await_moments();",
    "// the block before's edges are awaited",
]

_modules = {}


def load(name):
    """The file's ModelNew, built once."""
    if name not in _modules:
        text = FASTEST[name].read_text(encoding="utf-8")
        if name.startswith("conv_sigmoid_groupnorm/"):
            waits = [wait for wait in WAITS if wait in text]
            assert len(waits) == 2 and "BLOCKS_WAIT = false" in text
            text = text.replace("BLOCKS_WAIT = false", "BLOCKS_WAIT = true")
            text = text.replace("#include <cuda_fp16.h>", "#include <cooperative_groups.h>\n#include <cuda_fp16.h>")
            for wait in waits:
                text = text.replace(wait, SYNC + wait)
        module: dict[str, Any] = {"__name__": name}
        simt.enable()
        exec(compile(text, str(FASTEST[name]), "exec"), module)
        _modules[name] = module["ModelNew"]
    return _modules[name]


@pytest.mark.parametrize("outliers", OUTLIERS)
@pytest.mark.parametrize(
    "case",
    sample(CASES, lambda case: case.split()[0] == "conv_sigmoid_groupnorm/fastest"),
)
def test_outliers(case, outliers):
    """Compared with float64, is no error larger than twice eager's in the same class, with NaN where eager has it?"""
    name, way = case.split()
    made, there = WAYS[name.split("/")[0]][way], OUTLIERS[outliers]
    if there.unseen and name.startswith("conv_groupnorm_maxpool/") and "backward" not in name:
        pytest.skip("a group that does not see the outlier is less exact near it, as the file's head says")
    namespace = with_literals(FASTEST[name].parent / "model.py", made.literals)
    torch.manual_seed(SEED)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    x = torch.randn(2, namespace["in_channels"], made.height, made.width)
    for at, value in there.values.items():
        x[at] = value
        if there.unseen:
            model.conv.weight.data[there.unseen, at[1]] = 0
    mine = load(name)(*namespace["get_init_inputs"]())
    mine.load_state_dict(model.state_dict(), strict=True)
    upstream = None
    if "backward" in name:
        upstream = torch.randn(model(x).shape)
        window = (made.height - 2) // upstream.shape[-2]
        for n, _, row, column in there.values if there.quiet else ():
            upstream[
                n, :, max(row - 2, 0) // window : row // window + 1, max(column - 2, 0) // window : column // window + 1
            ] = 0
    with simt.run(device="H200", seconds=100):
        simt.take_launches()
        got = answers(mine, x, upstream)
        assert {made.forward, made.backward if upstream is not None else made.forward} <= {
            launch[0] for launch in simt.take_launches()
        }
    eager = [answers(model, x, upstream)]
    right = answers(copy.deepcopy(model).double(), x, upstream)
    if name.endswith("_tf32"):
        rounded = copy.deepcopy(model).double()
        rounded.conv.forward = lambda x: Tf32.apply(x, rounded.conv.weight, rounded.conv.bias)
        eager.append(answers(rounded, x, upstream))
    # Its tanh in backward is one instruction, as coarse as TF32's products: over so few pixels the errors do not
    # cancel.
    coarse = (
        {"group_norm.weight", "group_norm.bias"} if name == "conv_groupnorm_logsumexp/fastest_backward_tf32" else ()
    )
    for key, expected in right.items():
        assert torch.equal(torch.isnan(got[key]), torch.isnan(eager[0][key])), key
        if key in coarse:
            continue
        finite = torch.isfinite(expected) & torch.isfinite(eager[0][key])
        # a window's winner may be another within rounding
        distance = far if key != "y" and name.startswith("conv_groupnorm_maxpool/") else worst
        error, allowed = (
            distance(got[key], expected, finite),
            max(distance(one[key], expected, finite) for one in eager),
        )
        rounding = 2.0**-22 * float(expected[finite].abs().max()) if finite.any() else 0.0
        assert error <= EXACT * allowed + rounding, (key, error, allowed)


@pytest.mark.slow
def test_small_gradients_next_to_large_ones():
    """Of numbers of one sign, are the many small products next to the windows' winners not lost, which tensor cores cut
    towards 0?
    """
    name = "conv_groupnorm_maxpool/fastest_backward"
    namespace = with_literals(FASTEST[name].parent / "model.py", {})
    torch.manual_seed(SEED)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    mine = load(name)(*namespace["get_init_inputs"]())
    mine.load_state_dict(model.state_dict(), strict=True)
    x = torch.rand(1, namespace["in_channels"], 320, 448)
    upstream = torch.randn(model(x).shape)
    with simt.run(device="H200", seconds=200):
        got = answers(mine, x, upstream)["conv.weight"]
    right = answers(model.double(), x, upstream)["conv.weight"]
    assert far(got, right, torch.isfinite(right)) <= 2.0**-22 * float(right.abs().max())


class Tf32(torch.autograd.Function):
    """What eager's TF32 does at its best, in backward too: every factor is rounded, products and sums are not (here in
    float64).
    """

    @staticmethod
    def forward(ctx, x, weight, bias):
        x, weight = rounded(x), rounded(weight)
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.conv2d(x, weight, bias)

    @staticmethod
    def backward(ctx, gy):
        x, weight = ctx.saved_tensors
        of_x, of_weight = (
            torch.nn.grad.conv2d_input(x.shape, weight, rounded(gy)),
            torch.nn.grad.conv2d_weight(x, weight.shape, rounded(gy)),
        )
        return of_x, of_weight, gy.sum((0, 2, 3))


def rounded(x):
    return to_tf32(x.float()).double()


def answers(model, x, upstream):
    """In float64 what the model makes of x: the result "y" and, with its gradient, the gradients of x and of every
    weight.
    """
    x = x.detach().to(next(model.parameters()).dtype).requires_grad_(upstream is not None)
    with torch.set_grad_enabled(upstream is not None):
        y = model(x)
    found = {"y": y.detach()}
    if upstream is not None:
        model.zero_grad(set_to_none=True)
        y.backward(upstream.to(y.dtype))
        found |= {"x": x.grad} | {key: parameter.grad for key, parameter in model.named_parameters()}
    return {key: value.double() for key, value in found.items()}
