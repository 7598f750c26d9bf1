"""Random kernels with variables that may have no value: does the check report those that read one, and no other?

Each kernel is made twice, as CUDA C++ and as Python, which knows which variables have a value. What the compiler may
leave out, a read whose value reaches no result, may be reported or not.
"""

import json
import random

import pytest

from tests.simt.cli.sources import CHECK

SOUND, DEFECTS, THREADS, INPUTS = 30, 6, 32, 8
VARIABLES = ("a", "b", "p.x", "p.y", "s[0]", "s[1]", "own[t]", "pair[t].x", "pair[t].y")


class Absent(Exception):
    """A variable without a value decided which way the kernel goes."""


class State:
    """What a thread's variables hold: a number, or None without a value. read: whether any read found none."""

    def __init__(self, thread: int, x: list[int]):
        self.variables: dict[str, int | None] = dict.fromkeys(VARIABLES)
        self.known = {"t": thread, "n": 3}
        self.x, self.read, self.reads = x, False, 0
        self.out: int | None = 0

    def get(self, name: str) -> int | None:
        self.read |= self.variables[name] is None
        self.reads += "i0" in self.known
        return self.variables[name]


class Maker:
    """Makes statements, each as C++ text and as a function of a State."""

    def __init__(self, dice: random.Random):
        self.dice, self.loops = dice, []

    def value(self):
        known = self.dice.choice(("t", "n", *self.loops, *self.loops))
        match self.dice.randrange(4):
            case 0:
                number = self.dice.randrange(9)
                return str(number), lambda state: number
            case 1:
                return known, lambda state: state.known[known]
            case 2:
                return f"x[({known} + t) % {INPUTS}]", lambda state: state.x[
                    (state.known[known] + state.known["t"]) % INPUTS
                ]
            case _:
                name, more = self.dice.choice(VARIABLES), self.dice.randrange(1, 5)
                operation = self.dice.choice(("+", "*", "^"))

                def compute(state: State) -> int | None:
                    value = state.get(name)
                    if value is None:
                        return None
                    value = {"+": value + more, "*": value * more, "^": value ^ more}[operation]
                    return (value + 2**31) % 2**32 - 2**31

                return f"(int)((unsigned){name} {operation} {more}u)", compute

    def condition(self):
        known, other = self.dice.choice(("t", *self.loops, *self.loops)), self.dice.randrange(4)
        match self.dice.randrange(4):
            case 0:
                return f"{known} > {other}", lambda state: state.known[known] > other
            case 1:
                return f"{known} == {other}", lambda state: state.known[known] == other
            case 2:
                return f"x[{known} % {INPUTS}] & 1", lambda state: state.x[state.known[known] % INPUTS] & 1
            case _:
                name = self.dice.choice(VARIABLES)
                one, of = (
                    self.condition() if self.dice.random() < 0.5 else (f"{known} > 0", lambda s: s.known[known] > 0)
                )

                def both(state: State) -> bool:
                    if not of(state):
                        return False
                    value = state.get(name)
                    if value is None:
                        raise Absent
                    return value > 2

                return f"({one}) && {name} > 2", both

    def statement(self, depth: int):
        kind = self.dice.randrange(8 if depth else 4)
        if kind < 2:
            name, (text, compute) = self.dice.choice(VARIABLES), self.value()

            def assign(state: State) -> None:
                state.variables[name] = compute(state)

            return f"{name} = {text};", assign
        if kind == 2:
            name = self.dice.choice(VARIABLES)

            def add(state: State) -> None:
                value = state.get(name)
                state.out = None if value is None or state.out is None else state.out + value

            return f"sum += (unsigned){name};", add
        if kind == 3:
            first, second = self.dice.sample(VARIABLES, 2)
            text, holds = self.condition()

            def choose(state: State) -> None:
                value = state.get(first if holds(state) else second)
                state.out = None if value is None or state.out is None else state.out + value

            return f"sum += (unsigned)({text} ? {first} : {second});", choose
        if kind < 6:
            (text, holds), (yes, do), (no, otherwise) = self.condition(), self.block(depth - 1), self.block(depth - 1)
            return f"if ({text}) {{ {yes} }} else {{ {no} }}", lambda state: (do if holds(state) else otherwise)(state)
        counter, turns = f"i{len(self.loops)}", self.dice.randrange(1, 5)
        self.loops.append(counter)
        text, do = self.block(depth - 1)
        self.loops.pop()

        def loop(state: State) -> None:
            for state.known[counter] in range(turns):
                do(state)
            del state.known[counter]

        end = self.dice.choice((str(turns), f"n + {turns - 3}"))
        return f"for (int {counter} = 0; {counter} < {end}; ++{counter}) {{ {text} }}", loop

    def block(self, depth: int):
        made = [self.statement(depth) for _ in range(self.dice.randrange(1, 5))]

        def run(state: State) -> None:
            for _, do in made:
                do(state)

        return " ".join(text for text, _ in made), run


def judge(run, x: list[int]) -> tuple[str, int]:
    """Return what the check must say, "silent", "reported" or "either", and how many reads in loops there are."""
    said, reads = "silent", 0
    for thread in range(THREADS):
        state = State(thread, x)
        try:
            run(state)
        except Absent:
            return "either", 0  # what follows from it is not known
        reads += state.reads
        if state.out is None:
            said = "reported"
        elif state.read and said == "silent":
            said = "either"
    return said, reads


def make_kernels(dice: random.Random, x: list[int]) -> list[tuple[str, str]]:
    """Return the bodies of kernels with what the check must say: some with a defect, more that are sound and read
    variables in loops.
    """
    sound, defects = [], []
    while len(sound) < SOUND or len(defects) < DEFECTS:
        text, run = Maker(dice).block(3)
        said, reads = judge(run, x)
        if said == "silent" and reads >= 2 * THREADS and len(sound) < SOUND:
            sound.append((text, said))
        elif said == "reported" and len(defects) < DEFECTS:
            defects.append((text, said))
    return sound + defects


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_reads_without_a_value(simt, tmp_path, seed):
    dice = random.Random(seed)
    x = [dice.randrange(-4, 9) for _ in range(INPUTS)]
    made = make_kernels(dice, x)
    kernels = "".join(
        f"__global__ void k{i}(const int* x, unsigned* out, int n) {{\n  const int t = threadIdx.x;\n"
        f"  __shared__ int own[{THREADS}];\n  __shared__ int2 pair[{THREADS}];\n"
        f"  int a, b, s[2];\n  int2 p;\n  unsigned sum = 0;\n  {text}\n  out[t] = sum;\n}}\n"
        for i, (text, _) in enumerate(made)
    )
    launches = "".join(f"  k{i}<<<1, {THREADS}>>>(x, out, 3);\n" for i in range(len(made)))
    main = (
        f"int main() {{\n  int host[] = {{{', '.join(map(str, x))}}}, *x;\n  unsigned* out;\n"
        f"  CHECK(cudaMalloc(&x, sizeof host));\n  CHECK(cudaMalloc(&out, {4 * THREADS}));\n"
        f"  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));\n{launches}"
        "  CHECK(cudaDeviceSynchronize());\n  CHECK(cudaFree(x));\n  CHECK(cudaFree(out));\n}\n"
    )
    done = simt("check", "--json", "found.json", "a.cu", files={"a.cu": CHECK + kernels + main})
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    reported = {each["kernel"] for each in found if each["check"] == "uninitialized"}
    wrong = [
        f"k{i} must be {said}: {text}"
        for i, (text, said) in enumerate(made)
        if said != ("reported" if f"k{i}" in reported else "silent")
    ]
    assert not wrong, "\n".join(wrong)
