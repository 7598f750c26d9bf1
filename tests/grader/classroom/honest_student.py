"""Habits of a student who writes a kernel: names, types, comments, and which of several wordings."""

from __future__ import annotations

import random
from dataclasses import dataclass

NAMES = {
    "i": "i idx tid index gid t id global_id thread gtid linear flat_index k0",
    "ox": "ox x_out ow col out_x px xo wo j dst_x",
    "oy": "oy y_out oh row out_y py yo ho r dst_y",
    "oc": "oc o co out_c outChannel oc_idx m f filter",
    "n": "n b img image batch n_idx nn bi",
    "c": "c ci in_c ic ch channel cc",
    "ky": "ky kh dy r i_k ki p fy",
    "kx": "kx kw dx s j_k kj q fx",
    "sum": "sum acc total_sum result value s0 accum out_val res dot",
    "rem": "rem tmp t0 rest q0 left r0",
    "xp": "xp x_row in_ptr src input_row px0 xr",
    "wp": "wp w_row w_ptr filt kernel_row pw0 wr",
    "xi": "xi in_idx x_idx input_offset a_idx src_idx",
    "wi": "wi w_idx weight_idx k_idx filter_offset b_idx",
    "v": "v val x_val a value0 in_v pixel elem",
    "w": "w wt weight_val g gamma_c scale_c wc",
    "plane": "plane hw area spatial plane_size n_pix",
    "lane": "lane lane_id laneid l ln",
    "warp": "warp warp_id wid wrp",
    "tile": "tile smem cache buf sh_x local_x shared_in",
    "lin": "lin e k li pos u tap",
    "mean": "m mu mean_val average avg centre mean_g",
    "var": "var variance sigma2 v2 var_g",
    "sq": "sq sum_sq squares sum2 acc2 ss q2",
    "d": "d diff delta dev centred dist",
    "step": "step stride jump inc hop",
    "g": "g grp group gi group_id g_idx",
    "b": "b bi_c beta beta_c shift bias_val",
    "r": "r rs inv inv_std rstd_g istd",
    "p": "p k j pix pos e s",
    "a": "a alpha scale mul factor k1",
    "t": "t tx tid lid me thread",
}
REMARKS = """
which output pixel is mine|out of range threads stop here|decode the flat index|walk over the window|accumulate
x varies fastest so reads are coalesced|start from the bias|one thread per output|TODO: faster|the usual convolution
careful, this can overflow an int|loop over input channels|same order as pytorch|see lecture 3|sum of the products
first pass|second pass|thread zero writes|all threads take part|division is slow, do it once|the group is contiguous
every thread handles several elements|mean first|biased variance|avoid a branch|needed because sizes are arbitrary
""".replace("\n", "|").strip("|")


@dataclass
class Kernel:
    """What a student writes: the bodies for the marked places, functions before the first kernel, edits of the rest."""

    bodies: list[list[str]]
    helpers: list[str]
    edits: list[tuple[str, str]]


class Student:
    """Habits of one student: names, types, comments, and which of several wordings."""

    def __init__(self, seed: str, obvious: bool):
        self.random, self.obvious = random.Random(seed), obvious
        used: set[str] = set()
        self.names = {}
        for role, words in NAMES.items():
            choice = [word for word in words.split() if word not in used]
            self.names[role] = self.random.choice(choice[:3] if obvious else choice)
            used.add(self.names[role])
        self.integer = self.random.choice(["int", "int64_t"] if obvious else "int int64_t long size_t unsigned".split())
        self.const = self.random.random() < 0.5
        self.talkative = self.random.random() * 0.5

    def __getattr__(self, role: str) -> str:
        try:
            return self.names[role]
        except KeyError:
            raise AttributeError(role) from None

    def pick(self, *wordings):
        """Return one of several wordings; the first for those who write the obvious."""
        return wordings[0] if self.obvious and self.random.random() < 0.9 else self.random.choice(wordings)

    def chance(self, share: float) -> bool:
        """Return True in this share of cases; never for those who write the obvious."""
        return not self.obvious and self.random.random() < share

    def let(self, name: str, value: str, type_: str = "") -> str:
        """Return a declaration."""
        return (
            f"{'const ' if self.const and self.random.random() < 0.8 else ''}{type_ or self.integer} {name} = {value};"
        )

    def loop(self, name: str, end: str, start: str = "0", step: str = "") -> str:
        """Return the head of a loop."""
        steps = [f"++{name}", f"{name}++", f"{name} += 1"]
        head = f"{self.pick('int', self.integer)} {name} = {start}; {name} < {end}"
        return f"for ({head}; {f'{name} += {step}' if step else self.random.choice(steps)}) {{"

    def remark(self, lines: list[str]) -> list[str]:
        """Return lines with comments here and there."""
        said = []
        for line in lines:
            if self.random.random() < self.talkative * 0.5:
                said.append(f"// {self.random.choice(REMARKS.split('|'))}")
            said.append(line)
        return said
