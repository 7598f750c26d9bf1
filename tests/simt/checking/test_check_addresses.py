"""simt.check() on addresses that a kernel must not use: null, constant memory, the host's variables and pointers.

And on words of which only a part was written.
"""

import pytest

import simt

SOURCE = r"""
#define ON_BOTH __host__ __device__
struct Tagged { char tag; int value; };
int host_count = 1;
float host_table[4];
static const float weights[2] = {1, 2};
const int rows = 4;
constexpr int columns = 8;
__constant__ float taps[4];
__device__ float device_table[4];
namespace inner { ON_BOTH int shared_by_both = 2; }

__device__ void fill(float* at, int i) { at[i] = 3; }

__global__ void null_copy(float* out) { float* p = nullptr; out[0] = out[1] = 1; memcpy(p, out, 8); }
__global__ void null_write(float* out) { int* p = nullptr; *p = 3; out[0] = 1; }
__global__ void writes_constant(float* out) { taps[threadIdx.x % 4] = 1; }
__global__ void writes_constant_by_pointer(float* out) { fill(taps, threadIdx.x % 4); }
__global__ void reads_host_variable(float* out) { out[threadIdx.x] = host_count; }
__global__ void writes_host_array(float* out) { host_table[threadIdx.x % 4] = 1; }
__global__ void reads_pointer(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x % 4]; }
__global__ void half_of_a_word(float* out) {
  unsigned short* halves = (unsigned short*)out;
  halves[2 * threadIdx.x] = 1;
  out[threadIdx.x + 32] = out[threadIdx.x];
}
__global__ void byte_of_a_word(float* out) {
  unsigned char* bytes = (unsigned char*)out;
  bytes[4 * threadIdx.x] = 1;
  out[threadIdx.x + 32] = *(int*)&bytes[4 * threadIdx.x];
}
__global__ void sound_variables(float* out) {
  static const float factors[2] = {1, 2};
  int i = threadIdx.x;
  if (i < 4) device_table[i] = 1;
  out[i] = taps[i % 4] + weights[i % 2] + factors[i % 2] + rows + columns + inner::shared_by_both;
}
__global__ void sound_parameters(float* out, Tagged by_value, float x, const float* in) {
  out[threadIdx.x] = by_value.value + by_value.tag + x + in[threadIdx.x];
}
__global__ void sound_parts(float* out) {
  unsigned char* bytes = (unsigned char*)out;
  for (int k = 0; k < 4; k++) bytes[4 * threadIdx.x + k] = k;
  out[threadIdx.x + 32] = *(int*)&bytes[4 * threadIdx.x];
}
__global__ void sound_padding(float* out) {
  Tagged* all = (Tagged*)out;
  all[threadIdx.x].tag = 1;
  all[threadIdx.x].value = 2;
  Tagged mine = all[threadIdx.x];
  all[threadIdx.x + 8] = mine;
}

torch::Tensor run(std::string name) {
  auto t = torch::empty({64}, torch::dtype(torch::kFloat32).device(torch::kCUDA));
  float* out = t.data_ptr<float>();
  std::vector<float> on_heap(4);
  host_count = on_heap.size();
  host_table[0] = host_count;
  inner::shared_by_both = host_count;
  if (name == "null_copy") null_copy<<<1, 1>>>(out);
  if (name == "null_write") null_write<<<1, 32>>>(out);
  if (name == "writes_constant") writes_constant<<<1, 4>>>(out);
  if (name == "writes_constant_by_pointer") writes_constant_by_pointer<<<1, 4>>>(out);
  if (name == "reads_host_variable") reads_host_variable<<<1, 32>>>(out);
  if (name == "writes_host_array") writes_host_array<<<1, 4>>>(out);
  if (name == "reads_heap") reads_pointer<<<1, 32>>>(out, on_heap.data());
  float on_stack[4] = {};
  if (name == "reads_stack") reads_pointer<<<1, 32>>>(out, on_stack);
  if (name == "reads_table") reads_pointer<<<1, 32>>>(out, host_table);
  if (name == "half_of_a_word") half_of_a_word<<<1, 32>>>(out);
  if (name == "byte_of_a_word") byte_of_a_word<<<1, 32>>>(out);
  if (name == "sound_variables") sound_variables<<<1, 32>>>(out);
  if (name == "sound_parameters") {
    auto in = torch::zeros({32}, t.options());
    sound_parameters<<<1, 32>>>(out, Tagged{1, 2}, 3, in.data_ptr<float>());
  }
  if (name == "sound_parts") sound_parts<<<1, 32>>>(out);
  if (name == "sound_padding") sound_padding<<<1, 8>>>(out);
  return t;
}
"""
# Of each call: the array that the finding names, and a word of its message.
ILLEGAL = {
    "null_copy": ("", "null pointer"),
    "null_write": ("", "null pointer"),
    "writes_constant": ("taps", "constant memory"),
    "writes_constant_by_pointer": ("taps", "constant memory"),
    "reads_host_variable": ("host_count", "variable of the host"),
    "writes_host_array": ("host_table", "variable of the host"),
    "reads_heap": ("in", "points to host memory"),
    "reads_stack": ("in", "points to host memory"),
    "reads_table": ("host_table", "variable of the host"),
}


@pytest.fixture(scope="module")
def module():
    return simt.load_inline("test_check_addresses", "torch::Tensor run(std::string name);", SOURCE, functions=["run"])


def find(module, name: str) -> list[simt.Finding]:
    with simt.check() as report:
        try:
            module.run(name)
        except simt.KernelError:
            assert name.startswith("null")  # a fault that ends the kernel
    return report.findings


@pytest.mark.slow
@pytest.mark.parametrize("name", ILLEGAL)
def test_is_the_illegal_address_found(module, name):
    array, words = ILLEGAL[name]
    line = SOURCE.split("\n").index(next(t for t in SOURCE.split("\n") if f"void {kernel_of(name)}(" in t)) + 1
    finding = find(module, name)[0]
    assert (finding.check, finding.severity, finding.array) == ("illegal_address", "error", array)
    assert words in finding.message
    assert finding.line == line or name == "writes_constant_by_pointer"


def kernel_of(name: str) -> str:
    return "reads_pointer" if name in ("reads_heap", "reads_stack", "reads_table") else name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half_of_a_word", "byte_of_a_word"])
def test_is_a_word_found_that_was_partly_written(module, name):
    """The argument points to numbers, of which no part can be padding."""
    (finding,) = find(module, name)
    assert (finding.check, finding.severity, finding.array) == ("uninitialized", "error", "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sound_variables", "sound_parameters", "sound_parts", "sound_padding"])
def test_sound_accesses_are_not_reported(module, name):
    assert find(module, name) == []
