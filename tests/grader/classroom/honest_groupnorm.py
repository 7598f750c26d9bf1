"""Write GroupNorm's two kernels as students might: two passes, one, running means, trees, shuffles."""

from __future__ import annotations

from tests.grader.classroom.honest_student import Kernel, Student


def write_groupnorm(s: Student) -> Kernel:
    """Return statistics of the groups and their use."""
    ways = [
        stats_two_pass,
        stats_two_pass,
        stats_two_pass,
        stats_one_pass,
        stats_one_pass,
        stats_own_tree,
        stats_serial,
    ]
    body, helpers = s.pick(*ways, stats_welford, stats_warps, stats_double)(s)
    return Kernel([body, normalise(s)], helpers, [])


def stride_loop(s: Student, name: str) -> str:
    """Return a loop over a group's elements by all threads of a block."""
    type_ = s.pick("int64_t", "int64_t", "int", s.integer)
    step = s.pick("THREADS", "blockDim.x")
    return f"for ({type_} {name} = threadIdx.x; {name} < elements; {name} += {step}) {{"


def store(s: Student, mean: str, var: str) -> list[str]:
    """Return what thread 0 stores."""
    root = s.pick(
        f"1.0f / sqrtf({var} + eps)", f"rsqrtf({var} + eps)", f"1 / sqrt({var} + eps)", f"1.f / sqrtf(eps + {var})"
    )
    lines = [f"mean[blockIdx.x] = {mean};", f"rstd[blockIdx.x] = {root};"]
    if s.chance(0.3):
        lines.reverse()
    if s.chance(0.2):
        return ["if (threadIdx.x != 0) return;", *lines]
    return [f"if ({s.pick('threadIdx.x == 0', '!threadIdx.x', 'threadIdx.x < 1')}) {{", *lines, "}"]


def stats_two_pass(s: Student) -> tuple[list[str], list[str]]:
    """Return two passes with the block_sum that is handed out."""
    p, d = s.p, s.d
    value = s.pick(f"x[{p}]", f"*(x + {p})")
    second = s.pick(
        [s.let(d, f"{value} - {s.mean}", "float"), f"{s.sq} += {d} * {d};"],
        [f"{s.sq} += ({value} - {s.mean}) * ({value} - {s.mean});"],
        [s.let(s.v, value, "float"), s.let(d, f"{s.v} - {s.mean}", "float"), f"{s.sq} = {s.sq} + {d} * {d};"],
        [f"{s.sq} += powf({value} - {s.mean}, 2);"],
    )
    first = s.pick(
        [f"{s.sum} += {value};"], [f"{s.sum} += {value};"], [s.let(s.v, value, "float"), f"{s.sum} += {s.v};"]
    )
    mean = s.pick(
        [s.let(s.mean, f"block_sum({s.sum}) / elements", "float")],
        [f"{s.sum} = block_sum({s.sum});", s.let(s.mean, f"{s.sum} / elements", "float")],
        [s.let(s.a, "1.0f / elements", "float"), s.let(s.mean, f"block_sum({s.sum}) * {s.a}", "float")],
    )
    var = s.pick(
        [s.let(s.var, f"block_sum({s.sq}) / elements", "float")],
        [f"{s.sq} = block_sum({s.sq});", s.let(s.var, f"{s.sq} / elements", "float")],
    )
    loops = stride_loop(s, p), stride_loop(s, p)
    body = [
        f"float {s.sum} = 0.0f;",
        loops[0],
        *first,
        "}",
        *mean,
        f"float {s.sq} = 0.0f;",
        loops[1],
        *second,
        "}",
        *var,
    ]
    return [*body, *store(s, s.mean, s.var)], []


def stats_one_pass(s: Student) -> tuple[list[str], list[str]]:
    """Return sums of values and squares in one pass."""
    p, v = s.p, s.v
    add = s.pick(
        [s.let(v, f"x[{p}]", "float"), f"{s.sum} += {v};", f"{s.sq} += {v} * {v};"],
        [f"{s.sum} += x[{p}];", f"{s.sq} += x[{p}] * x[{p}];"],
        [s.let(v, f"x[{p}]", "float"), f"{s.sq} = fmaf({v}, {v}, {s.sq});", f"{s.sum} = {s.sum} + {v};"],
    )
    start = s.pick([f"float {s.sum} = 0.0f, {s.sq} = 0.0f;"], [f"float {s.sum} = 0.0f;", f"float {s.sq} = 0.0f;"])
    var = s.pick(
        f"block_sum({s.sq}) / elements - {s.mean} * {s.mean}",
        f"fmaxf(block_sum({s.sq}) / elements - {s.mean} * {s.mean}, 0.0f)",
        f"(block_sum({s.sq}) - elements * {s.mean} * {s.mean}) / elements",
    )
    body = [*start, stride_loop(s, p), *add, "}"]
    body += [s.let(s.mean, f"block_sum({s.sum}) / elements", "float"), s.let(s.var, var, "float")]
    return [*body, *store(s, s.mean, s.var)], []


def stats_own_tree(s: Student) -> tuple[list[str], list[str]]:
    """Return a reduction tree in shared memory, written twice or in a function."""
    t, step, half = s.tile, s.step, s.pick("THREADS / 2", "blockDim.x / 2", "128")
    me = s.pick("threadIdx.x", s.t)
    tree = [
        f"for (int {step} = {half}; {step} > 0; {step} {s.pick('/= 2', '>>= 1')}) {{",
        f"if ({me} < {step}) {{",
        s.pick(f"{t}[{me}] += {t}[{me} + {step}];", f"{t}[{me}] = {t}[{me}] + {t}[{me} + {step}];"),
        "}",
        "__syncthreads();",
        "}",
    ]
    begin = [s.let(s.t, "threadIdx.x", "int")] if me == s.t else []
    p, d = s.p, s.d
    if s.chance(0.4):
        name = s.pick("tree_sum", "reduce", "sum_shared", "reduceBlock")
        head = [
            f"__device__ float {name}(float {s.v}, float* {t}) {{",
            *begin,
            f"{t}[{me}] = {s.v};",
            "__syncthreads();",
        ]
        helper = [*head, *tree, s.let(s.r, f"{t}[0]", "float"), "__syncthreads();", f"return {s.r};", "}"]
        shared = [f"__shared__ float {t}[THREADS];"]
        one = [s.let(s.mean, f"{name}({s.sum}, {t}) / elements", "float")]
        two = [s.let(s.var, f"{name}({s.sq}, {t}) / elements", "float")]
        begin = []
    else:
        helper, shared = [], [f"__shared__ float {t}[THREADS];"]
        read = [s.let(s.mean, f"{t}[0] / elements", "float"), "__syncthreads();"]
        one = [f"{t}[{me}] = {s.sum};", "__syncthreads();", *tree, *read]
        two = [f"{t}[{me}] = {s.sq};", "__syncthreads();", *tree, s.let(s.var, f"{t}[0] / elements", "float")]
    first = [f"float {s.sum} = 0;", stride_loop(s, p), f"{s.sum} += x[{p}];", "}"]
    second = [
        f"float {s.sq} = 0;",
        stride_loop(s, p),
        s.let(d, f"x[{p}] - {s.mean}", "float"),
        f"{s.sq} += {d} * {d};",
        "}",
    ]
    return [*shared, *begin, *first, *one, *second, *two, *store(s, s.mean, s.var)], helper


def stats_serial(s: Student) -> tuple[list[str], list[str]]:
    """Return one thread that does everything."""
    p = s.p
    guard = s.pick("if (threadIdx.x > 0) return;", "if (threadIdx.x != 0) return;")
    type_ = s.pick("float", "double")
    body = [
        guard,
        f"{type_} {s.sum} = 0;",
        s.loop(p, "elements"),
        f"{s.sum} += x[{p}];",
        "}",
        s.let(s.mean, f"{s.sum} / elements", type_),
        f"{type_} {s.sq} = 0;",
        s.loop(p, "elements"),
        f"{s.sq} += (x[{p}] - {s.mean}) * (x[{p}] - {s.mean});",
        "}",
        *s.pick([s.let(s.var, f"{s.sq} / elements", type_)], [f"{s.sq} /= elements;", f"{type_} {s.var} = {s.sq};"]),
        f"mean[blockIdx.x] = {s.mean};",
        f"rstd[blockIdx.x] = {s.pick('1.0f / sqrtf', 'rsqrtf')}({s.var} + eps);",
    ]
    return body, []


def stats_welford(s: Student) -> tuple[list[str], list[str]]:
    """Return running means, merged by thread 0 or through block_sum."""
    p, d = s.p, s.d
    body = [
        f"float {s.mean} = 0.0f, {s.sq} = 0.0f;",
        f"int {s.a} = 0;",
        stride_loop(s, p),
        s.pick(f"{s.a}++;", f"{s.a} += 1;"),
        s.let(d, f"x[{p}] - {s.mean}", "float"),
        f"{s.mean} += {d} / {s.a};",
        f"{s.sq} += {d} * (x[{p}] - {s.mean});",
        "}",
    ]
    if s.chance(0.5):
        t = s.tile
        body += [
            f"__shared__ float {t}[3][THREADS];",
            f"{t}[0][threadIdx.x] = {s.mean};",
            f"{t}[1][threadIdx.x] = {s.sq};",
            f"{t}[2][threadIdx.x] = {s.a};",
            "__syncthreads();",
            "if (threadIdx.x == 0) {",
            f"float {s.v} = 0, {s.w} = 0, {s.var} = 0;",
            s.loop(s.lin, "THREADS"),
            f"if ({t}[2][{s.lin}] == 0) continue;",
            s.let(s.b, f"{s.v} + {t}[2][{s.lin}]", "float"),
            s.let(s.r, f"{t}[0][{s.lin}] - {s.w}", "float"),
            f"{s.w} += {s.r} * {t}[2][{s.lin}] / {s.b};",
            f"{s.var} += {t}[1][{s.lin}] + {s.r} * {s.r} * {s.v} * {t}[2][{s.lin}] / {s.b};",
            f"{s.v} = {s.b};",
            "}",
            f"mean[blockIdx.x] = {s.w};",
            f"rstd[blockIdx.x] = 1.0f / sqrtf({s.var} / elements + eps);",
            "}",
        ]
        return body, []
    body += [
        s.let(s.w, f"block_sum({s.mean} * {s.a}) / elements", "float"),
        s.let(s.r, f"{s.mean} - {s.w}", "float"),
        s.let(s.var, f"block_sum({s.sq} + {s.a} * {s.r} * {s.r}) / elements", "float"),
    ]
    return [*body, *store(s, s.w, s.var)], []


def stats_warps(s: Student) -> tuple[list[str], list[str]]:
    """Return shuffles of the student's own, the warps' sums in shared memory."""
    name = s.pick("warp_sum", "warpReduce", "add_lanes", "shuffle_sum")
    k = s.step
    helper = [
        f"__inline__ __device__ float {name}(float {s.v}) {{",
        s.pick(f"for (int {k} = 16; {k} > 0; {k} /= 2) {{", f"for (int {k} = 1; {k} < 32; {k} *= 2) {{"),
        s.pick(
            f"{s.v} += __shfl_xor_sync(0xffffffff, {s.v}, {k});", f"{s.v} += __shfl_down_sync(0xffffffff, {s.v}, {k});"
        ),
        "}",
        f"return {s.v};",
        "}",
    ]
    p, t = s.p, s.tile
    body = [
        f"__shared__ float {t}[2][{s.pick('WARP', '32', 'THREADS / WARP')}];",
        f"float {s.sum} = 0.0f, {s.sq} = 0.0f;",
        stride_loop(s, p),
        s.let(s.v, f"x[{p}]", "float"),
        f"{s.sum} += {s.v};",
        f"{s.sq} += {s.v} * {s.v};",
        "}",
        f"{s.sum} = {name}({s.sum});",
        f"{s.sq} = {name}({s.sq});",
        s.let(s.lane, "threadIdx.x % WARP", "int"),
        s.let(s.warp, "threadIdx.x / WARP", "int"),
        f"if ({s.lane} == 0) {{",
        f"{t}[0][{s.warp}] = {s.sum};",
        f"{t}[1][{s.warp}] = {s.sq};",
        "}",
        "__syncthreads();",
        "if (threadIdx.x == 0) {",
        f"float {s.a} = 0.0f, {s.b} = 0.0f;",
        s.loop(s.lin, "THREADS / WARP"),
        f"{s.a} += {t}[0][{s.lin}];",
        f"{s.b} += {t}[1][{s.lin}];",
        "}",
        s.let(s.mean, f"{s.a} / elements", "float"),
        s.let(s.var, f"{s.b} / elements - {s.mean} * {s.mean}", "float"),
        f"mean[blockIdx.x] = {s.mean};",
        f"rstd[blockIdx.x] = {s.pick(f'rsqrtf({s.var} + eps)', f'1.0f / sqrtf(fmaxf({s.var}, 0.0f) + eps)')};",
        "}",
    ]
    return body, helper


def stats_double(s: Student) -> tuple[list[str], list[str]]:
    """Return compensated sums."""
    p, d = s.p, s.d
    kahan = [
        s.let(s.v, f"x[{p}] - {s.a}", "float"),
        s.let(s.w, f"{s.sum} + {s.v}", "float"),
        f"{s.a} = ({s.w} - {s.sum}) - {s.v};",
        f"{s.sum} = {s.w};",
    ]
    body = [
        f"float {s.sum} = 0.0f;",
        f"float {s.a} = 0.0f;",
        stride_loop(s, p),
        *kahan,
        "}",
        s.let(s.mean, f"block_sum({s.sum}) / {s.pick('elements', '(float)elements')}", "float"),
        f"float {s.sq} = 0.0f;",
        stride_loop(s, p),
        s.let(d, f"x[{p}] - {s.mean}", "float"),
        f"{s.sq} += {d} * {d};",
        "}",
        s.let(s.var, f"block_sum({s.sq}) / elements", "float"),
    ]
    return [*body, *store(s, s.mean, s.var)], []


def normalise(s: Student) -> list[str]:
    """Return the second kernel's body."""
    c, g, p, step = s.c, s.g, s.p, s.step
    group = s.pick(
        [s.let(c, "blockIdx.x % C", "int"), s.let(g, "blockIdx.x / channels_a_group", "int")],
        [
            s.let(s.plane, "blockIdx.x", "int"),
            s.let(c, f"{s.plane} % C", "int"),
            s.let(g, f"{s.plane} / channels_a_group", "int"),
        ],
        [
            s.let(s.n, "blockIdx.x / C", "int"),
            s.let(c, f"blockIdx.x - {s.n} * C", "int"),
            s.let(g, f"{s.n} * (C / channels_a_group) + {c} / channels_a_group"),
        ],
    )
    begin = s.pick("blockIdx.y * THREADS + threadIdx.x", "threadIdx.x + blockIdx.y * blockDim.x")
    hop = s.pick("gridDim.y * THREADS", "(int64_t)blockDim.x * gridDim.y")
    loop = f"for (int64_t {p} = {begin}; {p} < pixels; {p} += {s.pick(hop, step)}) {{"
    if step in loop:
        group = [*group, s.let(step, hop, "int64_t")]
    offset = s.pick("blockIdx.x * pixels", "(int64_t)blockIdx.x * pixels")
    local = [
        s.let(s.mean, f"mean[{g}]", "float"),
        s.let(s.r, f"rstd[{g}]", "float"),
        s.let(s.w, f"weight[{c}]", "float"),
        s.let(s.b, f"bias[{c}]", "float"),
    ]
    if s.chance(0.3):
        s.random.shuffle(local)
    at = s.pick(f"{offset} + {p}", s.xi)
    first = [s.let(s.xi, f"{offset} + {p}", "int64_t")] if at == s.xi else []
    plain = [*local, loop, *first, f"y[{at}] = (x[{at}] - {s.mean}) * {s.r} * {s.w} + {s.b};", "}"]
    moved = [
        *local,
        f"x += {offset};",
        f"y += {offset};",
        loop,
        f"y[{p}] = (x[{p}] - {s.mean}) * {s.r} * {s.w} + {s.b};",
        "}",
    ]
    fused = [
        s.let(s.a, f"weight[{c}] * rstd[{g}]", "float"),
        s.let(s.b, f"bias[{c}] - mean[{g}] * {s.a}", "float"),
        loop,
        *first,
        s.pick(f"y[{at}] = x[{at}] * {s.a} + {s.b};", f"y[{at}] = fmaf(x[{at}], {s.a}, {s.b});"),
        "}",
    ]
    direct = [loop, *first, f"y[{at}] = (x[{at}] - mean[{g}]) * rstd[{g}] * weight[{c}] + bias[{c}];", "}"]
    pointers = [
        *local,
        f"const float* {s.xp} = x + {offset};",
        f"float* {s.wp} = y + {offset};",
        loop,
        s.let(s.v, f"({s.xp}[{p}] - {s.mean}) * {s.r}", "float"),
        f"{s.wp}[{p}] = {s.v} * {s.w} + {s.b};",
        "}",
    ]
    return [*group, *s.pick(moved, plain, fused, direct, pointers)]
