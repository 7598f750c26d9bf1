"""Lesson 15: places of a compaction, from running sums and from votes; lanes of a warp with the same digit."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call

PLACE = Blank(
    text="""
// y gets the elements of x that are not 0, in order. upto[i]: how many of x[0] to x[i] are not 0.
__global__ void scatter(const float* x, const int* upto, float* y, int* kept, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] != 0.0f) y[____] = x[i];
    if (i == n - 1) kept[0] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto upto = x.ne(0).cumsum(0).to(torch::kInt).contiguous();
    auto y = torch::zeros_like(x);
    auto kept = torch::zeros({1}, upto.options());
    int n = x.numel();
    scatter<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), upto.data_ptr<int>(), y.data_ptr<float>(),
                                   kept.data_ptr<int>(), n);
    return torch::cat({y, kept.to(x.scalar_type())});
}
""",
    calls=lambda: [
        Call("with every third of 100 numbers kept", (torch.arange(100) % 3 // 2 * torch.arange(100.0),)),
        Call("with all of 5 numbers kept", (torch.arange(5) + 1.0,)),
        Call("with none of 70 numbers kept", (torch.zeros(70),)),
    ],
    expected=lambda x: torch.cat([x[x != 0], torch.zeros(int((x == 0).sum())), (x != 0).sum().reshape(1).float()]),
    slips=(
        (r"y\[upto\[i\]\]", "`upto[i]` counts the element itself: the first one that is kept has 1 and goes to 0."),
        (r"y\[i\]=", "Then the gaps stay. The place is the number of elements that are kept before this one."),
        (
            r"y\[upto\[i-1\]\]",
            "That counts only those before it, which is right, but element 0 has no `upto[-1]`. Use `upto[i]`.",
        ),
        (
            r"kept\[0\]=upto\[i\]-1;",
            "The last entry of an inclusive scan counts all of them: nothing is to be taken off.",
        ),
        (r"kept\[0\]=n;", "That counts all elements, also those that are 0."),
    ),
    right="Every thread knows its place without asking another one.",
)

VOTES = Blank(
    text="""
// places[i]: how many of the lanes below i's own keep their element
__global__ void places_in_warps(const float* x, int* places) {
    int lane = threadIdx.x % 32;
    unsigned votes = __ballot_sync(0xffffffff, ____);
    places[threadIdx.x] = __popc(votes & ____);
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto places = torch::zeros({x.numel()}, x.options().dtype(torch::kInt));
    places_in_warps<<<1, x.numel()>>>(x.data_ptr<float>(), places.data_ptr<int>());
    return places;
}
""",
    calls=lambda: [
        Call("with one warp, of which every third lane keeps", (torch.arange(32) % 3 // 2 * (torch.arange(32) + 1.0),)),
        Call("with two warps, which keep negative numbers, too", ((torch.arange(64) * 7 % 5 - 2).float(),)),
        Call("with one warp that keeps all", (torch.arange(32) + 1.0,)),
    ],
    expected=lambda x: (x != 0).reshape(-1, 32).cumsum(1).flatten().int() - (x != 0).int(),
    slips=(
        (r"x\[(threadIdx\.x|lane)\]>0", "Negative numbers are kept, too: the condition is that a number is not 0."),
        (r"x\[lane\]", "`lane` counts from 0 in each warp. The element of a thread is `x[threadIdx.x]`."),
        (
            r"votes&\(1u?<<lane\)\)",
            "That is the bit of the lane itself. The bits below it are those that are 1 in `(1u << lane) - 1`.",
        ),
        (r"votes&\(\(?2u?<<lane\)-1\)|votes&\(\(?1u?<<\(lane\+1\)\)-1\)", "That counts the lane itself, too."),
        (r"votes&lane\)", "`lane` is a number, and not a mask with a 1 for each lower lane."),
        (
            r"__popc\(votes&(0x[fF]+u?|votes|~0u?)\)",
            "That counts all lanes that keep their element, and not only the lower ones.",
        ),
        (
            r"1u?<<threadIdx\.x",
            "In the second warp `threadIdx.x` is 32 and more, but there are 32 bits. Shift by the lane.",
        ),
    ),
    right="One vote and one count take the place of five rounds with shuffles.",
)

SAME_DIGIT = Blank(
    text="""
// ranks[i]: how many lower lanes of the warp have the same digit (0 to 15) as i's own
__global__ void ranks_in_warps(const int* digits, int* ranks) {
    int digit = digits[threadIdx.x], lane = threadIdx.x % 32;
    unsigned same = 0xffffffff;  // bit k: lane k may have the same digit
    for (int bit = 0; bit < 4; ++bit) {
        bool mine = digit >> bit & 1;
        unsigned votes = __ballot_sync(0xffffffff, mine);
        same &= ____;
    }
    ranks[threadIdx.x] = __popc(same & ((1u << lane) - 1));
}
""",
    declaration="torch::Tensor run(torch::Tensor digits);",
    host="""
torch::Tensor run(torch::Tensor digits) {
    auto ranks = torch::zeros_like(digits);
    ranks_in_warps<<<1, digits.numel()>>>(digits.data_ptr<int>(), ranks.data_ptr<int>());
    return ranks;
}
""",
    calls=lambda: [
        Call("with digits 0 and 15", ((torch.arange(32, dtype=torch.int32) % 3 == 0).int() * 15,)),
        Call("with two warps and all digits", (torch.arange(64, dtype=torch.int32) * 11 % 23 % 16,)),
        Call("with 32 equal digits", (torch.full((32,), 6, dtype=torch.int32),)),
    ],
    expected=lambda digits: _ranks(digits),
    slips=(
        (
            r"same&=votes;",
            "A lane whose bit is 0 has the same bit as the lanes that voted 0: these are the bits of `~votes`.",
        ),
        (
            r"same&=~votes;",
            "A lane whose bit is 1 has the same bit as the lanes that voted 1: these are the bits of `votes`.",
        ),
        (r"same&=mine\?~votes:votes;", "Turn it around: a lane whose bit is 1 has the same bit as those that voted 1."),
        (r"same&=\(?mine\?votes:0u?\)?;", "A lane whose bit is 0 has the same bit as all lanes that voted 0."),
        (r"!votes", "`!votes` is 0 or 1. `~votes` turns each of the 32 bits around."),
    ),
    right="Four votes tell every lane which others have its digit, whatever the 16 digits are.",
)


def _ranks(digits: torch.Tensor) -> torch.Tensor:
    equal = digits.reshape(-1, 32, 1) == digits.reshape(-1, 1, 32)
    return equal.tril(-1).sum(2).flatten().int()


BLANKS = {
    "place": PLACE,
    "votes": VOTES,
    "same_digit": SAME_DIGIT,
}
