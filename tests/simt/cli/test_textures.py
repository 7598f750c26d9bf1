"""Textures, surfaces and CUDA arrays in programs, compared with NumPy: np.pad gives what an address mode makes of an
index, and the programming guide's appendix the weights of a linear filter.
"""

import numpy as np
import pytest

from tests.simt.cli.sources import CHECK, line_of

WIDTH, HEIGHT, DEPTH, POINTS = 5, 4, 3, 48
MODES = ("wrap", "edge", "symmetric", "constant")  # np.pad's names of CUDA's modes 0 to 3
SIZES = f"enum {{ W = {WIDTH}, H = {HEIGHT}, D = {DEPTH}, POINTS = {POINTS} }};\n"

FETCH = (
    CHECK
    + SIZES
    + r"""
// Odd multiples of 1/4096, so that no weight lies half-way between two multiples of 1/256.
__device__ float place(int i, int stride, int normalized) {
  const float x = ((i * stride * 2 + 1) % 39996) / 4096.f - 1.5f;
  return normalized ? x / 2 : x;
}
__global__ void fetch(cudaTextureObject_t t, int dimensions, int normalized, float* out) {
  const int i = threadIdx.x;
  const float x = place(i, 613, normalized), y = place(i, 421, normalized), z = place(i, 227, normalized);
  float v = 0;
  if (dimensions == 1) v = tex1D<float>(t, x);
  if (dimensions == 2) v = tex2D<float>(t, x, y);
  if (dimensions == 3) tex3D(&v, t, x, y, z);
  if (dimensions == 4) v = tex2DLayered<float>(t, x, y, i % (D + 2) - 1);
  out[i] = v;
}
int main() {
  float h[D][H][W], *out, got[POINTS];
  for (int z = 0; z < D; ++z)
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) h[z][y][x] = x * x + 10 * y + 100 * z;
  CHECK(cudaMalloc(&out, sizeof got));
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  for (int dimensions = 1; dimensions <= 4; ++dimensions) {
    cudaArray_t array;
    const cudaExtent extent = make_cudaExtent(W, dimensions > 1 ? H : 0, dimensions > 2 ? D : 0);
    CHECK(cudaMalloc3DArray(&array, &format, extent, dimensions == 4 ? cudaArrayLayered : cudaArrayDefault));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(h, W * sizeof(float), W, H);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(W, dimensions > 1 ? H : 1, dimensions > 2 ? D : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    for (int setting = 0; setting < 16; ++setting) {
      cudaResourceDesc resource = {};
      resource.resType = cudaResourceTypeArray;
      resource.res.array.array = array;
      cudaTextureDesc description = {};
      for (auto& mode : description.addressMode) mode = (cudaTextureAddressMode)(setting % 4);
      description.filterMode = (cudaTextureFilterMode)(setting / 4 % 2);
      description.normalizedCoords = setting / 8;
      cudaTextureObject_t texture;
      CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
      fetch<<<1, POINTS>>>(texture, dimensions, description.normalizedCoords, out);
      CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
      for (float v : got) printf("%.9g ", v);
      puts("");
      CHECK(cudaDestroyTextureObject(texture));
    }
    CHECK(cudaFreeArray(array));
  }
  CHECK(cudaFree(out));
}
"""
)


def corner_weights(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> dict[tuple[int, int, int], np.ndarray]:
    """Return the weight in 1/256 of each corner, by (z, y, x), from those of the second neighbours in each dimension.

    An H200 rounds products to 1/256 so that the sum stays 1: x and z first, then y (tests/simt/hardware/textures.cu).
    """
    both = np.floor(x * z / 256 + 0.5)
    planes = {(0, 0): 256 - x - z + both, (0, 1): x - both, (1, 0): z - both, (1, 1): both}
    weights = {}
    for (k, i), plane in planes.items():
        part = plane * y / 256
        second = np.floor(part + 0.5) if i else np.ceil(part - 0.5)
        weights[k, 0, i], weights[k, 1, i] = plane - second, second
    return weights


def expected_fetches(dimensions: int, setting: int) -> np.ndarray:
    """Return the values of one line of the program, computed in float64 from a padded array."""
    mode, linear, normalized = MODES[setting % 4], setting // 4 % 2, setting // 8
    if not normalized and mode in ("wrap", "symmetric"):
        mode = "edge"  # these modes need normalized coordinates
    z, y, x = np.meshgrid(np.arange(DEPTH), np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
    texels = (x * x + 10 * y + 100 * z).astype(np.float64)
    i = np.arange(POINTS)
    if dimensions < 3:
        texels = texels[:1]
    if dimensions == 1:
        texels = texels[:, :1]
    margin = 64
    sizes = dict(zip("zyx", texels.shape))
    padded = np.pad(texels, [(0, 0) if dimensions != 3 else (margin, margin), (margin, margin), (margin, margin)], mode)
    first, weight = {}, {}
    for axis, stride in (("z", 227), ("y", 421), ("x", 613)):
        at = ((i * stride * 2 + 1) % 39996 / 4096 - 1.5) * (sizes[axis] / 2 if normalized else 1)
        if axis == "y" and dimensions == 1:
            at = at * 0  # a row in a plane
        at = at - 0.5 * linear
        if mode == "edge":
            at = np.clip(at, 0, sizes[axis] - 1)
        first[axis] = np.floor(at).astype(int) + margin
        weight[axis] = np.round((at - np.floor(at)) * 256) if linear else np.zeros(POINTS)
    if dimensions != 3:
        weight["z"] = np.zeros(POINTS)
        first["z"] = np.clip(i % (DEPTH + 2) - 1, -1, DEPTH - 1) % DEPTH if dimensions == 4 else i * 0
    total = np.zeros(POINTS)
    for (k, j, m), part in corner_weights(weight["x"], weight["y"], weight["z"]).items():
        where = first["z"] + k, first["y"] + j, first["x"] + m
        inside = tuple(np.minimum(at, size - 1) for at, size in zip(where, padded.shape))  # beyond it: a weight of 0
        total += part / 256 * padded[inside]
    return total


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_fetches_in_every_mode(simt, command):
    """Are fetches of 1-D, 2-D, 3-D and layered arrays right for both filters, all address modes, and both kinds of
    coordinates, with nothing to report?
    """
    done = simt(command, "a.cu", files={"a.cu": FETCH})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 64
    for number, line in enumerate(lines):
        dimensions, setting = number // 16 + 1, number % 16
        got = np.array(line.split(), dtype=np.float64)
        np.testing.assert_allclose(
            got, expected_fetches(dimensions, setting), rtol=1e-5, atol=1e-4, err_msg=str(number)
        )


FORMATS = (
    CHECK
    + r"""
template <class T> __global__ void fetch(cudaTextureObject_t t, float4* out) {
  if constexpr (sizeof(T) == 16) out[threadIdx.x] = tex1Dfetch<float4>(t, (int)threadIdx.x - 1);
  else { T v = tex1Dfetch<T>(t, (int)threadIdx.x - 1); out[threadIdx.x] = make_float4(v.x, v.y, v.z, v.w); }
}
template <class Element, class T> void show(const Element* values, cudaTextureReadMode mode) {
  Element* d; float4 *out, got[4];
  CHECK(cudaMalloc(&d, 2 * sizeof(Element))); CHECK(cudaMalloc(&out, sizeof got));
  CHECK(cudaMemcpy(d, values, 2 * sizeof(Element), cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = d;
  resource.res.linear.desc = cudaCreateChannelDesc<Element>();
  resource.res.linear.sizeInBytes = 2 * sizeof(Element);
  cudaTextureDesc description = {};
  description.readMode = mode;
  cudaTextureObject_t t;
  CHECK(cudaCreateTextureObject(&t, &resource, &description, NULL));
  fetch<T><<<1, 4>>>(t, out);
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (float4 v : got) printf("%.7g %.7g %.7g %.7g  ", v.x, v.y, v.z, v.w);
  puts("");
  CHECK(cudaDestroyTextureObject(t)); CHECK(cudaFree(d)); CHECK(cudaFree(out));
}
int main() {
  const uchar4 bytes[] = {{0, 51, 255, 1}, {2, 3, 4, 5}};
  const char4 chars[] = {{-128, -127, 127, 0}, {1, 2, 3, 4}};
  const ushort4 shorts[] = {{65535, 0, 13107, 1}, {2, 3, 4, 5}};
  const float4 floats[] = {{-1.5f, 0, 3, 4}, {5, 6, 7, 8}};
  show<uchar4, uchar4>(bytes, cudaReadModeElementType);
  show<uchar4, float4>(bytes, cudaReadModeNormalizedFloat);
  show<char4, char4>(chars, cudaReadModeElementType);
  show<char4, float4>(chars, cudaReadModeNormalizedFloat);
  show<ushort4, float4>(shorts, cudaReadModeNormalizedFloat);
  show<float4, float4>(floats, cudaReadModeElementType);
}
"""
)


def test_formats_and_what_lies_outside_linear_memory(simt):
    """Are elements read as they are or scaled to [0, 1] and [-1, 1], and is memory outside read as 0?"""
    done = simt("run", "a.cu", files={"a.cu": FORMATS})
    none = [0, 0, 0, 0]
    elements = [
        [0, 51, 255, 1, 2, 3, 4, 5],
        [v / 255 for v in (0, 51, 255, 1, 2, 3, 4, 5)],
        [-128, -127, 127, 0, 1, 2, 3, 4],
        [max(v / 127, -1) for v in (-128, -127, 127, 0, 1, 2, 3, 4)],
        [v / 65535 for v in (65535, 0, 13107, 1, 2, 3, 4, 5)],
        [-1.5, 0, 3, 4, 5, 6, 7, 8],
    ]
    got = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(got) == len(elements), done.stderr
    for line, values in zip(got, elements):
        assert line == pytest.approx([*none, *values, *none], rel=1e-6)


SURFACE = (
    CHECK
    + r"""
__global__ void move(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h) {
  int x = threadIdx.x, y = threadIdx.y;
  uchar4 v;
  surf2Dread(&v, from, x * 4, y);
  if (x == 0 && y == 0) v = surf2Dread<uchar4>(from, 4 * w + 40, -3, cudaBoundaryModeClamp);
  if (x == 1 && y == 0) v = surf2Dread<uchar4>(from, -4, 0, cudaBoundaryModeZero);
  surf2Dwrite(v, to, (w - 1 - x) * 4, y WHERE);
}
int main() {
  const int w = 4, h = 2;
  uchar4 host[h][w];
  for (int y = 0; y < h; ++y) for (int x = 0; x < w; ++x) host[y][x] = make_uchar4(x, y, 10 * x + y, 7);
  cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
  cudaArray_t arrays[2];
  cudaSurfaceObject_t surfaces[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMallocArray(&arrays[i], &format, w, h, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = arrays[i];
    CHECK(cudaCreateSurfaceObject(&surfaces[i], &resource));
  }
  CHECK(cudaMemcpy2DToArray(arrays[0], 0, 0, host, sizeof host[0], sizeof host[0], h, cudaMemcpyHostToDevice));
  move<<<1, dim3(w, h)>>>(surfaces[0], surfaces[1], w, h);
  CHECK(cudaMemcpy2DFromArray(host, sizeof host[0], arrays[1], 0, 0, sizeof host[0], h, cudaMemcpyDeviceToHost));
  for (auto& row : host) for (uchar4 v : row) printf("%d,%d,%d,%d ", v.x, v.y, v.z, v.w);
  for (int i = 0; i < 2; ++i) { CHECK(cudaDestroySurfaceObject(surfaces[i])); CHECK(cudaFreeArray(arrays[i])); }
}
"""
)


def test_surfaces(simt):
    """Do surface reads and writes address columns in bytes, and follow the boundary mode? Is a trap an error?"""
    done = simt("check", "-DWHERE=", "a.cu", files={"a.cu": SURFACE})
    rows = [[(x, y, 10 * x + y, 7) for x in range(4)] for y in range(2)]
    rows[0][0], rows[0][1] = (3, 0, 30, 7), (0, 0, 0, 0)
    printed = "".join(",".join(map(str, v)) + " " for row in rows for v in reversed(row))
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
    done = simt("run", "-DWHERE=+1", "a.cu")
    assert done.returncode == 1 and "A surface read or write is outside the array." in done.stderr
    assert f"(kernel move, a.cu line {line_of(SURFACE, 'surf2Dwrite(v')})" in done.stderr


REFUSED = (
    CHECK
    + r"""
int main() {
  cudaChannelFormatDesc three = {32, 32, 32, 0, cudaChannelFormatKindFloat};
  cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
  cudaArray_t a;
  int h[5] = {};
  printf("%d ", cudaMallocArray(&a, &three, 4, 4));
  CHECK(cudaMallocArray(&a, &ints, 4));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray; r.res.array.array = a;
  cudaTextureDesc d = {};
  cudaTextureObject_t t; cudaSurfaceObject_t s;
  d.filterMode = cudaFilterModeLinear; printf("%d ", cudaCreateTextureObject(&t, &r, &d, NULL));
  d.readMode = cudaReadModeNormalizedFloat; printf("%d ", cudaCreateTextureObject(&t, &r, &d, NULL));
  printf("%d ", cudaCreateSurfaceObject(&s, &r));
  printf("%d\n", cudaMemcpy2DToArray(a, 4, 0, h, 16, 16, 1, cudaMemcpyHostToDevice));
  CHECK(cudaFreeArray(a));
}
"""
)


def test_what_cuda_refuses_is_an_error(simt):
    """Do three channels, filtered or scaled 32-bit integers, surfaces of plain arrays, and copies past the end fail?"""
    done = simt("run", "a.cu", files={"a.cu": REFUSED})
    assert done.stdout == "20 26 27 1 1\n", done.stderr


OTHER_SHAPES = (
    CHECK
    + r"""
cudaTextureObject_t make(cudaResourceDesc resource, int normalized = 0) {
  cudaTextureDesc description = {};
  description.normalizedCoords = normalized;
  for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, NULL));
  return texture;
}
cudaTextureObject_t fill(const float* values, cudaExtent extent, unsigned flags, int normalized = 0) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  const size_t rows = extent.height ? extent.height : 1;
  copy.srcPtr = make_cudaPitchedPtr((void*)values, extent.width * sizeof(float), extent.width, rows);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, rows, extent.depth);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return make(resource, normalized);
}
__global__ void layers(cudaTextureObject_t t) {
  for (int layer = 0; layer < 3; ++layer) printf("%g ", tex1DLayered<float>(t, 1.5f, layer));
  printf("\n");
}
__global__ void rows(cudaTextureObject_t t) {
  printf("%g %g %g\n", tex2D<float>(t, 0.5f, 0.5f), tex2D<float>(t, 2.5f, 1.5f), tex2D<float>(t, 9.f, 9.f));
}
__global__ void faces(cudaTextureObject_t t) {
  printf("%g %g %g %g %g %g ", texCubemap<float>(t, 1.f, -.4f, .2f), texCubemap<float>(t, -1.f, .4f, .2f),
         texCubemap<float>(t, .4f, 1.f, .2f), texCubemap<float>(t, .4f, -1.f, .2f),
         texCubemap<float>(t, .4f, .2f, 1.f), texCubemap<float>(t, .4f, .2f, -1.f));
  printf("%g\n", texCubemap<float>(t, 20.f, -8.f, 4.f));  // as the first: only the direction counts
}
int main() {
  float values[24], *pitched;
  size_t pitch;
  for (int i = 0; i < 24; ++i) values[i] = i;
  layers<<<1, 1>>>(fill(values, make_cudaExtent(2, 0, 3), cudaArrayLayered));
  CHECK(cudaMallocPitch(&pitched, &pitch, 3 * sizeof(float), 2));
  CHECK(cudaMemcpy2D(pitched, pitch, values, 3 * sizeof(float), 3 * sizeof(float), 2, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {pitched, cudaCreateChannelDesc<float>(), 3, 2, pitch};
  rows<<<1, 1>>>(make(resource));
  for (int n = 0; n < 2; ++n) faces<<<1, 1>>>(fill(values, make_cudaExtent(2, 2, 6), cudaArrayCubemap, n));
  CHECK(cudaDeviceSynchronize());
}
"""
)


def test_layers_of_rows_pitched_memory_and_cubemaps(simt):
    """Are the texels those of the programming guide's definitions?

    Of a cubemap a face has 4 texels, and (s / m + 1) / 2 and (t / m + 1) / 2 are the coordinates in it, with m the
    longest component: s, t of the faces +x, -x, +y, -y, +z, -z are -z -y, z -y, x z, x -z, x -y, -x -y.
    """

    def texel(face, s, t):
        return 4 * face + 2 * int((t + 1) / 2 * 2) + int((s + 1) / 2 * 2)

    cube = [texel(0, -0.2, 0.4), texel(1, 0.2, -0.4), texel(2, 0.4, 0.2)]
    cube += [texel(3, 0.4, -0.2), texel(4, 0.4, -0.2), texel(5, -0.4, -0.2)]
    done = simt("run", "a.cu", files={"a.cu": OTHER_SHAPES})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 3 5 \n0 5 5\n" + 2 * f"{' '.join(map(str, cube))} {cube[0]}\n"


BYTES = (
    CHECK
    + r"""
int main() {
  float h[15], got[15];
  for (int i = 0; i < 15; ++i) h[i] = i;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t a, b;
  CHECK(cudaMallocArray(&a, &format, 5, 3));
  CHECK(cudaMallocArray(&b, &format, 5, 3));
  CHECK(cudaMemcpyToArray(a, 0, 0, h, sizeof h, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, sizeof h));
  CHECK(cudaMemcpyToArrayAsync(b, 4 * 4, 0, h, 3 * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyFromArray(got, b, 0, 0, sizeof got, cudaMemcpyDeviceToHost));
  for (float v : got) printf("%g ", v);
  CHECK(cudaMemcpyFromArrayAsync(got, b, 2 * 4, 2, 3 * 4, cudaMemcpyDeviceToHost));
  printf("%g %g\n", got[0], got[2]);
  printf("%s ", cudaGetErrorName(cudaMemcpyToArray(b, 4, 0, h, sizeof h, cudaMemcpyHostToDevice)));
  printf("%s\n", cudaGetErrorName(cudaMemcpyFromArray(got, b, 0, 3, 4, cudaMemcpyDeviceToHost)));
  cudaFreeArray(a);
  cudaFreeArray(b);
}
"""
)


def test_copies_of_bytes_go_on_in_the_next_row(simt):
    """Do the deprecated copies of CUDA 13 write a run of bytes, and refuse what ends behind the array?"""
    done = simt("run", "a.cu", files={"a.cu": BYTES})
    expected = np.arange(15)
    expected[4:7] = [0, 1, 2]
    values = " ".join(map(str, [*expected, 12, 14]))
    assert (done.stdout, done.stderr) == (f"{values}\ncudaErrorInvalidValue cudaErrorInvalidValue\n", "")
