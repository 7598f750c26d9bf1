"""Write a convolution as students might: one output a thread in many wordings, tiles, warps, registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.grader.classroom.honest_student import Kernel, Student

CONV_LAUNCH = "    const int64_t blocks = (total + THREADS - 1) / THREADS;\n"
CONV_CALL = "conv2d_kernel<<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>("


def write_conv2d(s: Student) -> Kernel:
    """Return a convolution."""
    ways: list[Callable[[Student], Kernel]] = [conv_pixel] * 11
    ways += [
        conv_stride,
        conv_plane,
        conv_plane,
        conv_shared_weights,
        conv_warp,
        conv_row,
        conv_tile,
        conv_flat,
        conv_flat,
    ]
    return s.pick(*ways)(s)


def decode(s: Student, wide: str = "OW") -> list[str]:
    """Return the output's coordinates from a flat index. wide: how many indices a row has."""
    i, ox, oy, oc, n, rem = s.i, s.ox, s.oy, s.oc, s.n, s.rem
    chain = [
        (ox, f"{i} % {wide}"),
        (oy, f"{i} / {wide} % OH"),
        (oc, f"{i} / {wide} / OH % OC"),
        (n, f"{i} / {wide} / OH / OC"),
    ]
    product = [
        (n, f"{i} / (OC * OH * {wide})"),
        (oc, f"({i} / (OH * {wide})) % OC"),
        (oy, f"({i} / {wide}) % OH"),
        (ox, f"{i} % {wide}"),
    ]
    kept = [
        f"{s.integer} {rem} = {i};",
        s.let(ox, f"{rem} % {wide}"),
        f"{rem} /= {wide};",
        s.let(oy, f"{rem} % OH"),
        f"{rem} /= OH;",
        s.let(oc, f"{rem} % OC"),
        s.let(n, f"{rem} / OC"),
    ]
    subtract = [
        s.let(s.plane, f"OH * {wide}"),
        s.let(n, f"{i} / ({s.plane} * OC)"),
        s.let(rem, f"{i} - {n} * {s.plane} * OC"),
        s.let(oc, f"{rem} / {s.plane}"),
        s.let(oy, f"({rem} - {oc} * {s.plane}) / {wide}"),
        s.let(ox, f"{rem} - {oc} * {s.plane} - {oy} * {wide}"),
    ]
    planes = [
        s.let(s.plane, f"{i} / ({wide} * OH)"),
        s.let(s.rem, f"{i} % ({wide} * OH)"),
        s.let(n, f"{s.plane} / OC"),
        s.let(oc, f"{s.plane} % OC"),
        s.let(oy, f"{s.rem} / {wide}"),
        s.let(ox, f"{s.rem} % {wide}"),
    ]
    lines = [[s.let(*one) for one in chain], [s.let(*one) for one in product], kept, subtract, planes]
    return s.pick(*lines)


def x_index(s: Student, c: str, y: str, x: str) -> str:
    """Return the place of an input in memory."""
    n = s.n
    return s.pick(
        f"(({n} * C + {c}) * H + {y}) * W + {x}",
        f"{n} * C * H * W + {c} * H * W + ({y}) * W + {x}",
        f"({n} * C + {c}) * H * W + ({y}) * W + ({x})",
        f"{x} + W * ({y} + H * ({c} + C * {n}))",
    )


def w_index(s: Student, c: str, ky: str, kx: str) -> str:
    """Return the place of a weight in memory."""
    oc = s.oc
    return s.pick(
        f"(({oc} * C + {c}) * KH + {ky}) * KW + {kx}",
        f"{oc} * C * KH * KW + {c} * KH * KW + {ky} * KW + {kx}",
        f"({oc} * C + {c}) * (KH * KW) + {ky} * KW + {kx}",
        f"{kx} + KW * ({ky} + KH * ({c} + C * {oc}))",
    )


@dataclass
class Level:
    """How far an index is computed before the innermost loop: 0 not at all, 1 before the loops, 2 and 3 in them."""

    depth: int
    pointer: bool
    name: str
    array: str

    def hoist(self, offset: str, s: Student) -> str:
        """Return the declaration of what is computed ahead."""
        if self.pointer:
            return f"const float* {self.name} = {self.array} + {offset};"
        return s.let(self.name, offset)

    def at(self, rest: str, whole: str) -> str:
        """Return the element. rest: its place from what was computed ahead. whole: from the array's begin."""
        if not self.depth:
            return f"{self.array}[{whole}]"
        return f"{self.name}[{rest}]" if self.pointer else f"{self.array}[{self.name} + {rest}]"


def window(s: Student, ox: str, oy: str, total: str) -> list[str]:
    """Return the loops over the window of one output."""
    c, ky, kx = s.c, s.ky, s.kx
    order = s.pick((0, 1, 2), (0, 1, 2), (0, 1, 2), (1, 2, 0), (0, 2, 1))
    depths = (0, 1, 2, 3) if order == (0, 1, 2) else (0, 1)
    image = Level(s.pick(0, *depths), s.chance(0.5), s.xp, "x")
    filter_ = Level(s.pick(0, *depths), s.chance(0.5), s.wp, "weight")
    before: list[str] = []
    area, taps = "H * W", "KH * KW"
    if s.chance(0.25):
        before.append(s.let("HW", "H * W"))
        area = "HW"
    if s.chance(0.2):
        before.append(s.let("KK", s.pick("KH * KW", "KW * KH")))
        taps = "KK"
    y, x = f"({oy} + {ky})", f"({ox} + {kx})"
    rows: list[list[str]] = [[], [], []]  # what stands in each loop before the next
    if named := s.chance(0.4):
        y, x = s.pick(("iy", "ix"), ("in_y", "in_x"), ("yy", "xx"), ("h_in", "w_in"))
        rows[order.index(1)].append(s.let(y, f"{oy} + {ky}"))
        rows[order.index(2)].append(s.let(x, f"{ox} + {kx}"))
    ahead = ["", f"{s.n} * C * {area}", f"({s.n} * C + {c}) * {area}", f"(({s.n} * C + {c}) * H + {y}) * W"][
        image.depth
    ]
    rest = ["", f"({c} * H + {y}) * W + {x}", f"{y} * W + {x}", x][image.depth]
    if image.depth == 1:
        rest = s.pick(rest, f"{c} * {area} + {y} * W + {x}")
    ahead_w = ["", f"{s.oc} * C * {taps}", f"({s.oc} * C + {c}) * {taps}", f"(({s.oc} * C + {c}) * KH + {ky}) * KW"]
    rest_w = ["", f"({c} * KH + {ky}) * KW + {kx}", f"{ky} * KW + {kx}", kx][filter_.depth]
    for level, offset in ((image, ahead), (filter_, ahead_w[filter_.depth])):
        if level.depth:
            (before if level.depth == 1 else rows[level.depth - 2]).append(level.hoist(offset, s))
    a = image.at(rest, x_index(s, c, y, x))
    b = filter_.at(rest_w, w_index(s, c, ky, kx))
    lines = list(before)
    part = s.a if s.chance(0.12) else ""
    for place, which in enumerate(order):
        loop = s.loop((c, ky, kx)[which], ("C", "KH", "KW")[which])
        if place == 2 and s.chance(0.15):
            lines.append(s.pick("#pragma unroll", "#pragma unroll 3"))
        lines += [loop, *rows[place]]
        if part and place == 0:
            lines.append(f"float {part} = 0.0f;")
    inner = multiply_add(s, a, b, part or total)
    if named and s.chance(0.35):
        inner = [s.pick(f"if ({y} < H && {x} < W) {{", f"if ({x} < W && {y} < H && {x} >= 0) {{"), *inner, "}"]
    lines += [*inner, "}", "}"]
    return [*lines, *([f"{total} += {part};"] if part else []), "}"]


def multiply_add(s: Student, a: str, b: str, total: str) -> list[str]:
    """Return one step of a sum of products."""
    v, w = s.v, s.w
    both = [s.let(v, a, "float"), s.let(w, b, "float")]
    return s.pick(
        [f"{total} += {a} * {b};"],
        [f"{total} += {b} * {a};"],
        [f"{total} = {total} + {a} * {b};"],
        [*both, f"{total} += {v} * {w};"],
        [*reversed(both), f"{total} = fmaf({v}, {w}, {total});"],
        [s.let(w, b, "float"), f"{total} += {w} * {a};"],
        [s.let(v, a, "float"), f"{total} += {v} * {b};"],
        [s.let(s.d, f"{a} * {b}", "float"), f"{total} += {s.d};"],
    )


def begin_and_end(s: Student, out: str, ox: str, oy: str) -> list[str]:
    """Return one output: bias, window, store."""
    type_ = s.pick("float", "float", "float", "double")
    total = s.sum
    if s.chance(0.4):
        end = s.pick(f"y[{out}] = {total} + bias[{s.oc}];", f"{total} += bias[{s.oc}];\ny[{out}] = {total};")
        return [f"{type_} {total} = {s.pick('0.0f', '0', '0.f')};", *window(s, ox, oy, total), *end.split("\n")]
    end = [f"y[{out}] = {total};"]
    return [f"{type_} {total} = bias[{s.oc}];", *window(s, ox, oy, total), *end]


def thread_index(s: Student) -> str:
    """Return the declaration of the flat index of a thread."""
    return s.pick(
        s.let(s.i, "(int64_t)blockIdx.x * blockDim.x + threadIdx.x", "int64_t"),
        s.let(s.i, "blockIdx.x * blockDim.x + threadIdx.x"),
        s.let(s.i, "threadIdx.x + (int64_t)THREADS * blockIdx.x", "int64_t"),
        s.let(s.i, "static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x", "int64_t"),
    )


def conv_pixel(s: Student) -> Kernel:
    """Return the exercise's own idea: one thread computes one output."""
    out = s.pick(s.i, s.i, f"(({s.n} * OC + {s.oc}) * OH + {s.oy}) * OW + {s.ox}")
    inside = [*decode(s), *begin_and_end(s, out, s.ox, s.oy)]
    if s.chance(0.25):
        return Kernel([[thread_index(s), f"if ({s.i} < total) {{", *inside, "}"]], [], [])
    return Kernel([[thread_index(s), f"if ({s.i} >= total) return;", *inside]], [], [])


def conv_stride(s: Student) -> Kernel:
    """Return a loop over outputs in each thread."""
    head = f"for (int64_t {s.i} = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; {s.i} < total; "
    head += f"{s.i} += {s.pick('(int64_t)gridDim.x * blockDim.x', 'blockDim.x * gridDim.x')}) {{"
    edit = (
        CONV_LAUNCH,
        f"    const int64_t blocks = std::min<int64_t>({CONV_LAUNCH[27:-2]}, {s.pick(4096, 1024, 65535)});\n",
    )
    return Kernel([[head, *decode(s), *begin_and_end(s, s.i, s.ox, s.oy), "}"]], [], [edit])


def conv_plane(s: Student) -> Kernel:
    """Return a two-dimensional block on a plane of the output."""
    side_x, side_y = s.pick((16, 16), (32, 8), (8, 8), (64, 4))
    z, z_name = "blockIdx.z", s.plane
    body = [
        s.let(s.ox, s.pick("blockIdx.x * blockDim.x + threadIdx.x", f"{side_x} * blockIdx.x + threadIdx.x")),
        s.let(s.oy, s.pick("blockIdx.y * blockDim.y + threadIdx.y", f"{side_y} * blockIdx.y + threadIdx.y")),
        *s.pick(
            [s.let(s.oc, f"{z} % OC"), s.let(s.n, f"{z} / OC")],
            [s.let(z_name, z), s.let(s.n, f"{z_name} / OC"), s.let(s.oc, f"{z_name} - {s.n} * OC")],
        ),
        s.pick(f"if ({s.ox} >= OW || {s.oy} >= OH) return;", f"if (!({s.ox} < OW && {s.oy} < OH)) return;"),
        *begin_and_end(s, f"(({s.n} * OC + {s.oc}) * OH + {s.oy}) * OW + {s.ox}", s.ox, s.oy),
    ]
    launch = f"    const dim3 block({side_x}, {side_y});\n"
    launch += f"    const dim3 grid((OW + {side_x - 1}) / {side_x}, (OH + {side_y - 1}) / {side_y}, N * OC);\n"
    return Kernel([body], [], [(CONV_LAUNCH, launch), (CONV_CALL, CONV_CALL.replace("blocks, THREADS", "grid, block"))])


def conv_shared_weights(s: Student) -> Kernel:
    """Return a block an output channel, whose weights lie in shared memory."""
    size = s.pick(2048, 1024, 4096)
    source = s.pick(f"{s.oc} * C * KH * KW + {s.lin}", f"{s.lin} + (int64_t)C * KH * KW * {s.oc}")
    fill = f"for (int {s.lin} = threadIdx.x; {s.lin} < C * KH * KW; {s.lin} += blockDim.x) {{"
    body = [
        f"__shared__ float {s.tile}[{size}];",
        s.let(s.oc, "blockIdx.y % OC"),
        s.let(s.n, "blockIdx.y / OC"),
        fill,
        f"{s.tile}[{s.lin}] = weight[{source}];",
        "}",
        "__syncthreads();",
        s.let(s.p, "blockIdx.x * blockDim.x + threadIdx.x"),
        f"if ({s.p} >= OH * OW) return;",
        s.let(s.oy, f"{s.p} / OW"),
        s.let(s.ox, s.pick(f"{s.p} % OW", f"{s.p} - {s.oy} * OW")),
        f"float {s.sum} = bias[{s.oc}];",
        *([f"int {s.wi} = 0;"] if (counted := s.chance(0.5)) else []),
        s.loop(s.c, "C"),
        s.loop(s.ky, "KH"),
        s.loop(s.kx, "KW"),
        f"{s.sum} += x[{x_index(s, s.c, f'{s.oy} + {s.ky}', f'{s.ox} + {s.kx}')}] * "
        + (f"{s.tile}[{s.wi}++];" if counted else f"{s.tile}[({s.c} * KH + {s.ky}) * KW + {s.kx}];"),
        *"}}}",
        f"y[({s.n} * OC + {s.oc}) * OH * OW + {s.p}] = {s.sum};",
    ]
    launch = "    const dim3 blocks((OH * OW + THREADS - 1) / THREADS, N * OC);\n"
    return Kernel([body], [], [(CONV_LAUNCH, launch)])


def conv_warp(s: Student) -> Kernel:
    """Return a warp an output: lanes share the window and add up with shuffles."""
    total = s.sum
    half = s.pick("16", "warpSize / 2")
    value = f"x[{x_index(s, s.c, f'{s.oy} + {s.ky}', f'{s.ox} + {s.kx}')}]"
    down = s.pick("__shfl_down_sync(0xffffffff, {}, {})", "__shfl_xor_sync(0xffffffffu, {}, {})").format(total, s.step)
    body = [
        s.let(s.lane, s.pick("threadIdx.x % 32", "threadIdx.x & 31")),
        s.let(s.i, "((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32", "int64_t"),
        f"if ({s.i} >= total) return;",
        *decode(s),
        f"float {total} = 0.0f;",
        f"for (int {s.lin} = {s.lane}; {s.lin} < C * KH * KW; {s.lin} += 32) {{",
        s.let(s.kx, f"{s.lin} % KW", "int"),
        s.let(s.ky, f"{s.lin} / KW % KH", "int"),
        s.let(s.c, f"{s.lin} / (KW * KH)", "int"),
        f"{total} += {value} * weight[{s.oc} * C * KH * KW + {s.lin}];",
        "}",
        f"for (int {s.step} = {half}; {s.step} > 0; {s.step} {s.pick('/= 2', '>>= 1')}) {{",
        f"{total} += {down};",
        "}",
        f"if ({s.lane} == 0) {{",
        f"y[{s.i}] = {total} + bias[{s.oc}];",
        "}",
    ]
    return Kernel([body], [], [(CONV_LAUNCH, "    const int64_t blocks = (total * 32 + THREADS - 1) / THREADS;\n")])


def conv_row(s: Student) -> Kernel:
    """Return several neighbouring outputs a thread, kept in registers."""
    count, k, total, step = s.pick(4, 2, 8), s.p, s.sum, s.step
    many = s.pick("MANY", "PER_THREAD", str(count))
    unroll = ["#pragma unroll"] if s.chance(0.4) else []
    each = [*unroll, f"for (int {k} = 0; {k} < {many}; {s.pick(f'++{k}', f'{k}++')}) {{"]
    column = f"{s.ox} + {k}"
    value = f"x[{x_index(s, s.c, f'{s.oy} + {s.ky}', f'{column} + {s.kx}')}]"
    guard = s.pick([f"if ({column} < OW) {{"], [f"if ({column} + {s.kx} < W) {{"], [f"if ({column} >= OW) break;"])
    add = [*guard, *multiply_add(s, s.w, value, f"{total}[{k}]"), *(["}"] if guard[0].endswith("{") else [])]
    early = s.chance(0.5)
    end = (
        f"y[(({s.n} * OC + {s.oc}) * OH + {s.oy}) * OW + {column}] = {total}[{k}]{'' if early else f' + bias[{s.oc}]'};"
    )
    store = s.pick(
        [f"for (int {k} = 0; {k} < {many} && {column} < OW; ++{k}) {{", end, "}"],
        [*each, f"if ({column} < OW) {{", end, "}", "}"],
        [*each, f"if ({column} >= OW) {s.pick('break', 'return')};", end, "}"],
    )
    loops = [s.loop(s.c, "C"), s.loop(s.ky, "KH"), s.loop(s.kx, "KW")]
    body = [
        *([f"constexpr int {many} = {count};"] if many != str(count) else []),
        s.let(step, s.pick(f"(OW + {many} - 1) / {many}", f"OW / {many} + (OW % {many} != 0)")),
        thread_index(s),
        s.pick(f"if ({s.i} >= total / OW * {step}) return;", f"if ({s.i} / {step} >= total / OW) return;"),
        *decode(s, step),
        *s.pick([], [f"{s.ox} *= {many};"]),
        *s.pick([f"float {total}[{many}] = {{}};"], [f"float {total}[{many}];", *each, f"{total}[{k}] = 0.0f;", "}"]),
        *([*each, f"{total}[{k}] += bias[{s.oc}];", "}"] if early else []),
        *loops,
        s.let(s.w, f"weight[{w_index(s, s.c, s.ky, s.kx)}]", "float"),
        *each,
        *add,
        *"}}}}",
        *store,
    ]
    return Kernel([body], [], [])


def conv_tile(s: Student) -> Kernel:
    """Return a tile of the input in shared memory, one input channel at a time."""
    side = s.pick(16, 8)
    t, edge = s.tile, side + s.pick(6, 8, 10)
    body = [
        f"__shared__ float {t}[{edge}][{edge}];",
        s.let(s.ox, f"blockIdx.x * {side} + threadIdx.x"),
        s.let(s.oy, f"blockIdx.y * {side} + threadIdx.y"),
        s.let(s.oc, "blockIdx.z % OC"),
        s.let(s.n, "blockIdx.z / OC"),
        f"float {s.sum} = {s.pick(f'bias[{s.oc}]', '0')};",
        s.loop(s.c, "C"),
        *fill_tile(s, side),
        "__syncthreads();",
        s.loop(s.ky, "KH"),
        s.loop(s.kx, "KW"),
        *multiply_add(
            s, f"{t}[threadIdx.y + {s.ky}][threadIdx.x + {s.kx}]", f"weight[{w_index(s, s.c, s.ky, s.kx)}]", s.sum
        ),
        *"}}",
        "__syncthreads();",
        "}",
        f"if ({s.ox} < OW && {s.oy} < OH) {{",
        f"y[(({s.n} * OC + {s.oc}) * OH + {s.oy}) * OW + {s.ox}] = {s.sum};",
        "}",
    ]
    launch = (
        f"    const dim3 block({side}, {side}), grid((OW + {side - 1}) / {side}, (OH + {side - 1}) / {side}, N * OC);\n"
    )
    return Kernel([body], [], [(CONV_LAUNCH, launch), (CONV_CALL, CONV_CALL.replace("blocks, THREADS", "grid, block"))])


def fill_tile(s: Student, side: int) -> list[str]:
    """Return the copy of a tile with its halo into shared memory."""
    value = f"x[{x_index(s, s.c, s.wi, s.xi)}]"
    row, column = s.p, s.lin
    ends = f"{side} + KH - 1", f"{side} + KW - 1"
    places = [s.let(s.xi, f"blockIdx.x * {side} + {column}"), s.let(s.wi, f"blockIdx.y * {side} + {row}")]
    if s.chance(0.4):
        places.reverse()
    inside = s.pick(f"{s.xi} < W && {s.wi} < H", f"{s.wi} < H && {s.xi} < W")
    at = f"{s.tile}[{row}][{column}]"
    copy = s.pick(
        [f"{at} = ({inside}) ? {value} : 0.0f;"],
        [f"if ({inside}) {{", f"{at} = {value};", "} else {", f"{at} = 0.0f;", "}"],
        [f"{at} = 0;", f"if ({inside}) {at} = {value};"],
        [s.let(s.v, f"{inside} ? {value} : 0.0f", "float"), f"{at} = {s.v};"],
    )
    if s.chance(0.5):
        me, many = f"threadIdx.y * {side} + threadIdx.x", side * side
        return [
            s.let(s.rem, f"({ends[0]}) * ({ends[1]})", "int"),
            f"for (int {s.g} = {me}; {s.g} < {s.rem}; {s.g} += {s.pick(many, 'blockDim.x * blockDim.y')}) {{",
            s.let(row, f"{s.g} / ({ends[1]})", "int"),
            s.let(column, s.pick(f"{s.g} % ({ends[1]})", f"{s.g} - {row} * ({ends[1]})"), "int"),
            *places,
            *copy,
            "}",
        ]
    hops = s.pick((side, side), ("blockDim.y", "blockDim.x"))
    return [
        f"for (int {row} = threadIdx.y; {row} < {ends[0]}; {row} += {hops[0]}) {{",
        f"for (int {column} = threadIdx.x; {column} < {ends[1]}; {column} += {hops[1]}) {{",
        *places,
        *copy,
        *"}}",
    ]


def conv_flat(s: Student) -> Kernel:
    """Return one loop over the window instead of three, or a device function for the window."""
    if s.chance(0.5):
        name = s.pick("dot_window", "conv_at", "window_sum", "compute")
        helper = [
            f"__device__ float {name}(const float* x, const float* weight, int C, int H, int W, int KH, int KW) {{",
            f"float {s.sum} = 0;",
            s.loop(s.c, "C"),
            s.loop(s.ky, "KH"),
            s.loop(s.kx, "KW"),
            f"{s.sum} += x[({s.c} * H + {s.ky}) * W + {s.kx}] * weight[({s.c} * KH + {s.ky}) * KW + {s.kx}];",
            *"}}}",
            f"return {s.sum};",
            "}",
        ]
        body = [
            thread_index(s),
            f"if ({s.i} >= total) return;",
            *decode(s),
            f"const float* {s.xp} = x + {x_index(s, '0', s.oy, s.ox)};",
            f"y[{s.i}] = bias[{s.oc}] + {name}({s.xp}, weight + {s.oc} * C * KH * KW, C, H, W, KH, KW);",
        ]
        return Kernel([body], helper, [])
    end = s.pick("C * KH * KW", s.lane)
    value = f"x[{x_index(s, s.c, f'{s.oy} + {s.ky}', f'{s.ox} + {s.kx}')}]"
    body = [
        thread_index(s),
        f"if ({s.i} >= total) return;",
        *decode(s),
        s.let(s.lane, "C * KH * KW"),
        f"float {s.sum} = bias[{s.oc}];",
        s.loop(s.lin, end),
        s.let(s.c, f"{s.lin} / (KH * KW)"),
        s.let(s.ky, s.pick(f"({s.lin} / KW) % KH", f"({s.lin} % (KH * KW)) / KW")),
        s.let(s.kx, f"{s.lin} % KW"),
        f"{s.sum} += weight[{s.oc} * {s.lane} + {s.lin}] * {value};",
        "}",
        f"y[{s.i}] = {s.sum};",
    ]
    return Kernel([body], [], [])
