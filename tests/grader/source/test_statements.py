"""Do statements that mean the same have one form, and others another? Is hostile text read in bounded time?"""

import gc
import time

import pytest

from grader.source.statements import MOST_STATEMENTS, find_target, inline_values, read_statements

KERNEL = """
code = r'''
__global__ void kernel(const float* x, float* y, int n, int width) {
%s
}
'''
"""


def read(body: str) -> list[str]:
    """Return the forms of a kernel's statements, sorted."""
    return sorted(one.shape for one in read_statements(KERNEL % body).statements)


@pytest.mark.parametrize(
    "one, other",
    [
        ("int i = threadIdx.x;", "const int64_t place = threadIdx.x; // mine"),
        ("i++;", "i += 1;"),
        ("++i;", "i = i + 1;"),
        ("s += x[i] * y[i];", "s = s + y[i] * x[i];"),
        ("s -= x[i];", "s = s - *(x + i);"),
        ("for (int i = 0; i < n; ++i) { s += x[i]; }", "int k = 0; while (n > k) { t += x[k]; k++; }"),
        ("if (i >= n) return; y[i] = 1;", "if (i < n) { y[i] = 1.0f; }"),
        ("if (i >= n || i < 0) return;", "if (!(0 <= i && i < n)) { return; }"),
        ("int a = i * width + 3;", "long a = 3 + (width * (int)i);"),
        ("int a = i / 4 % 8;", "int a = (i >> 2) & 7;"),
        ("float a = fmaf(b, c, d);", "float a = d + c * b;"),
        ("float a = rsqrtf(v);", "float a = 1.f / sqrt(v);"),
        ("float a = x[i];", "float a; a = __ldg(&x[i]);"),
        ("int a = i, b = i * 2;", "int a = i; int b = 2 * i;"),
        ("float a = b - (c - d);", "float a = b - c + d;"),
        ("#define MANY 8\nfloat a[MANY];", "constexpr int K = 4 * 2; float a[K];"),
        ("float a = fmaxf(b, 0.0f);", "float a = max(0, b);"),
        ("y[i] = b > c ? b : d;", "*(y + i) = c < b ? b : d;"),
    ],
)
def test_same_meaning_has_one_form(one, other):
    assert read(one) == read(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("i++;", "i--;"),
        ("s += x[i];", "s *= x[i];"),
        ("int a = i / width;", "int a = width / i;"),
        ("int a = i % width;", "int a = i / width;"),
        ("if (i < n) s += 1;", "if (i <= n) s += 1;"),
        ("int a = threadIdx.x;", "int a = threadIdx.y;"),
        ("y[i] = x[n];", "y[i] = x[width];"),  # the places of parameters count, their names do not
        ("a = b * (c + d);", "a = b * c + d;"),
        ("__syncthreads();", "__syncwarp();"),
        ("float a[8];", "float a[16];"),
        ("__shared__ float a[8];", "float a[8];"),
    ],
)
def test_other_meaning_has_another_form(one, other):
    assert read(one) != read(other)


def test_names_of_parameters_do_not_count():
    body = "for (int i = threadIdx.x; i < n; i += width) y[i] = x[i];"
    text = KERNEL % body
    renamed = text.replace(" x,", " p,").replace("= x[", "= p[").replace("int n", "int many").replace("< n", "< many")
    assert [one.shape for one in read_statements(text).statements] == [
        one.shape for one in read_statements(renamed).statements
    ]


def test_lines_are_those_of_the_file():
    text = 'import torch\n\nsource = """\n__global__ void f(int* y) {\n    int i =\n        3;\n    y[i] = 1;\n}\n"""\n'
    found = {one.text: one.lines for one in read_statements(text).statements}
    assert found["i = 3"] == (5, 6) and found["y [ i ] = 1"] == (7, 7)


def test_a_value_set_once_and_used_once_stands_in_its_place():
    one = read_statements(KERNEL % "int a = i * width; float v = x[a + 1]; y[i] = v * v;").statements
    other = read_statements(KERNEL % "float v = x[1 + width * i]; y[i] = v * v;").statements
    assert [each.shape for each in inline_values(one)] == [each.shape for each in inline_values(other)]
    assert [find_target(each.tree) for each in other[1:3]] == [("v", True), ("", False)]


def test_python_counts_and_docstrings_do_not():
    one = 'class M:\n    """One."""\n    def forward(self, x):\n        z = torch.relu(x)\n        return z\n'
    other = (
        one.replace("M", "N")
        .replace("One", "Two")
        .replace("z", "r")
        .replace("\n        r", "\n        # note\n        r")
    )
    forms = [[each.shape for each in read_statements(text).statements] for text in (one, other)]
    assert forms[0] == forms[1] and len(forms[0]) == 4
    assert [each.shape for each in read_statements(one.replace("relu", "exp")).statements] != forms[0]


@pytest.mark.parametrize(
    "body",
    [
        "(" * 20000,
        "{" * 9000,
        "a = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "a = " + "-" * 5000 + "1;",
        "a = " + "+".join(["b"] * 9000) + ";",
        "a = " + "*".join(["9" * 400] * 200) + ";",
        "a = " + "%".join(["b"] * 290) + ";",
        "if (a) " * 5000 + "b = 1;",
        "for (" * 5000,
        "x" + "[0" * 3000,
        "f<" * 3000,
        "a = b ? " * 3000 + "1;",
        "a += 1;" * 5000,
        "#define A B\n" * 900,
        "/* \x00 \u202e",
        "a = 'x; \" y",
        "".join(f"int v{n + 1} = v{n} / (v{n} + {n});" for n in range(900)),
        "".join(f"int v{n + 1} = v{n} % {n};" for n in range(900)) + "y[0] = v900;",
    ],
)
def test_hostile_text_is_read_in_bounded_time(body):
    gc.freeze()  # else each collection looks at what the tests before left, too
    begun = time.process_time()
    found = read_statements(KERNEL % body).statements
    inline_values(found)
    seconds = time.process_time() - begun
    gc.unfreeze()
    assert 0 < len(found) <= MOST_STATEMENTS + 1 and seconds < 3
