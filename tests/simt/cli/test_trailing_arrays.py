"""Arrays at the end of structs that have more elements in memory than in their type."""

import json

from tests.simt.cli.sources import CHECK, line_of

FLEXIBLE = (
    CHECK
    + r"""
struct Row { char tag; int n; double values[]; };
typedef struct { int n; char tag; float values[]; } Tail;
class Sum {
 public:
  int n;
  __host__ __device__ int get(int i) const { return values[i]; }
  int values[];
};
struct Derived : Row {};
struct Page { int count; Tail tail; };
struct Grid { int rows; float cells[][4]; };
typedef struct { char kind; struct Page page; } Book;
__global__ void fill(Row* row, Tail* tail, Sum* sum, Derived* derived, Book* book, Grid* grid) {
  extern __shared__ float s[];
  int i = threadIdx.x;
  Row head;
  head.n = row->n;
  s[i] = i;
  if (i < head.n) row->values[i] = s[i];
  if (i < tail->n) tail->values[i] = i;
  if (i < sum->n) sum->values[i] = sum->n;
  if (i < 2) derived->values[i] = 1;
  if (i < grid->rows) grid->cells[i][3] = i;
  if (i < book->page.tail.n) book->page.tail.values[i] = book->kind + i;
}
int main() {
  Row* row; Tail* tail; Sum* sum; Derived* derived; Book* book; Grid* grid;
  CHECK(cudaMallocManaged(&row, sizeof(Row) + 80)); CHECK(cudaMallocManaged(&tail, sizeof(Tail) + 40));
  CHECK(cudaMallocManaged(&sum, sizeof(Sum) + 40)); CHECK(cudaMallocManaged(&derived, sizeof(Derived) + 16));
  CHECK(cudaMallocManaged(&book, sizeof(Book) + 40));
  book->page.tail.n = 10; book->kind = 1;
  Book copy = *book;
  CHECK(cudaMallocManaged(&grid, sizeof(Grid) + 5 * 16)); grid->rows = 5;
  row->n = tail->n = sum->n = 10;
  fill<<<1, 32, 128>>>(row, tail, sum, derived, book, grid);
  CHECK(cudaDeviceSynchronize());
  printf("%g %g %d %g %d\n", row->values[9], tail->values[9], sum->get(9), book->page.tail.values[9], copy.kind);
  CHECK(cudaFree(row)); CHECK(cudaFree(tail)); CHECK(cudaFree(sum)); CHECK(cudaFree(derived));
  CHECK(cudaFree(book)); CHECK(cudaFree(grid));
}
"""
)


def test_types_with_an_array_without_length(simt):
    """Does a checked build accept them as kernel arguments and as local variables?"""
    done = simt("check", "a.cu", files={"a.cu": FLEXIBLE})
    assert (done.stdout, done.returncode) == ("9 9 10 10 1\n", 0), done.stderr


# The array at the end of Row and Table has as many elements as the memory that is allocated for it.
ONE_ELEMENT = (
    CHECK
    + r"""
#define LAST 1
struct Row { int n; float values[1]; };
class Table {
 public:
  int n;
  double cells[LAST][2];  // more rows follow
  __device__ void set(int i, double value) { cells[i][1] = value; }
  enum { columns = 2 };
};
struct Fixed { int n; float four[4]; };
struct Middle { float first[1]; float rest[9]; };
__global__ void fill(Row* row, Table* table) {
  int i = threadIdx.x;
  if (i < row->n) row->values[i] = i;
  if (i < table->n) table->set(i, i);
}
__global__ void overflow(Row* row, Fixed* fixed, Middle* middle) {
  int i = threadIdx.x;
  __shared__ float alone[1];
  float* p = (float*)alone;
  if (i == 0) *p = 0;
  if (i == 4) fixed->four[i] = *p;  // FIXED
  if (i == 3) middle->first[i] = 0;  // MIDDLE
  if (i == 12) row->values[i] = 0;  // PAST
}
int main() {
  Row* row; Table* table; Fixed* fixed; Middle* middle;
  CHECK(cudaMallocManaged(&row, sizeof(Row) + 9 * sizeof(float)));
  CHECK(cudaMallocManaged(&table, sizeof(Table) + 4 * 2 * sizeof(double)));
  CHECK(cudaMallocManaged(&fixed, 2 * sizeof(Fixed))); CHECK(cudaMallocManaged(&middle, sizeof(Middle)));
  row->n = 10;
  table->n = 5;
  fill<<<1, 32>>>(row, table);
  CHECK(cudaDeviceSynchronize());
  printf("%g %g\n", row->values[9], table->cells[4][1]);
  WRONG
  CHECK(cudaFree(row)); CHECK(cudaFree(table)); CHECK(cudaFree(fixed)); CHECK(cudaFree(middle));
}
"""
)


def test_arrays_of_one_element_at_the_end_of_a_struct(simt, tmp_path):
    """May an index exceed such an array but not its memory, and are arrays of other lengths or places still checked?"""
    done = simt("check", "a.cu", files={"a.cu": ONE_ELEMENT.replace("WRONG", "")})
    assert (done.stdout, done.returncode) == ("9 4\n", 0), done.stderr
    wrong = ONE_ELEMENT.replace("WRONG", "overflow<<<1, 32>>>(row, fixed, middle); cudaDeviceSynchronize();")
    simt("check", "--json", "found.json", "a.cu", files={"a.cu": wrong})
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    lines = {each["line"] for each in found if each["check"] == "out_of_bounds"}
    assert lines == {line_of(wrong, mark) for mark in ("// FIXED", "// MIDDLE", "// PAST")}, found
