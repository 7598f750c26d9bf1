// title: Layers of 1-D tables: colour maps applied to a scan, with and without interpolation
// features: textures, layered_textures, cuda_arrays, surfaces, colliding_macros, grid_stride

#define N (1 << 10)
#define L 5                 // colour maps
#define W 64                // entries of each
#define T cudaTextureObject_t
#define S cudaSurfaceObject_t
#define F4 float4
#define DIM 96
#define x_ (blockIdx.x * blockDim.x + threadIdx.x)
#define FULL 0xffffffffu
#define LANE (threadIdx.x & 31)
#define CEIL(a, b) (((a) + (b) - 1) / (b))
#define E(call) { cudaError_t e_ = call; if (e_) { printf("%s\n", cudaGetErrorString(e_)); return -1; } }
#define BLOCKS CEIL(N, DIM)
#define ZERO(a) memset(&a, 0, sizeof(a))
#define read read_entry_
#define write write_entry_
#define name map_name_
#define site 3
#define local own_
#define launch(k, ...) k<<<BLOCKS, DIM>>>(__VA_ARGS__)

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name[L] = {"grey", "heat", "ice", "bands", "alarm"};

__host__ __device__ F4 read(int layer, int i)
{
  float t = (float)i / W;  // exact: W is a power of two
  switch (layer) {
    case 0: return make_float4(t, t, t, 1);
    case 1: return make_float4(1 - t * t, t, 0.25f, 0.5f);
    case 2: return make_float4(0, t * t, 1 - t, t);
    case site: return make_float4(i & 1, i >> 1 & 1, i >> 2 & 1, 0);
    default: return make_float4(i > W / 2, 0, i <= W / 2, i);
  }
}

// The tables are made on the device: a surface of layers
__global__ void write(S tables)
{
  for (int i = x_; i < W * L; i += gridDim.x * blockDim.x) {
    F4 local = read(i / W, i % W);
    surf1DLayeredwrite(local, tables, (i % W) * (int)sizeof(F4), i / W);
  }
}

// nearest: the entry; otherwise between entries
__global__ void apply(T nearest, T linear, const unsigned char *scan, F4 *a, F4 *b, int layer)
{
  if (x_ >= N) return;
  float v = scan[x_];
  a[x_] = tex1DLayered<F4>(nearest, v + 0.5f, layer);
  b[x_] = tex1DLayered<F4>(linear, (v + 0.5f + 0.25f * (LANE % 4)) / W, layer);
}

int main(void)
{
  unsigned char h[N], *d;
  F4 *da, *db, *ha = (F4 *)malloc(N * sizeof(F4)), *hb = (F4 *)malloc(N * sizeof(F4));
  int bad = 0;
  for (int i = 0; i < N; i++) h[i] = (unsigned char)((i * i / 3 + 5 * i) % (W - 1));

  cudaArray_t array;
  cudaChannelFormatDesc c = cudaCreateChannelDesc<F4>();
  E(cudaMalloc3DArray(&array, &c, make_cudaExtent(W, 0, L), cudaArrayLayered | cudaArraySurfaceLoadStore));
  cudaResourceDesc r;
  ZERO(r);
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  S s;
  E(cudaCreateSurfaceObject(&s, &r));
  cudaTextureDesc t;
  ZERO(t);
  t.addressMode[0] = cudaAddressModeClamp;
  t.filterMode = cudaFilterModePoint;
  t.readMode = cudaReadModeElementType;
  T nearest, linear;
  E(cudaCreateTextureObject(&nearest, &r, &t, 0));
  t.filterMode = cudaFilterModeLinear;
  t.normalizedCoords = 1;
  E(cudaCreateTextureObject(&linear, &r, &t, 0));

  E(cudaMalloc(&d, N));
  E(cudaMalloc(&da, N * sizeof(F4)));
  E(cudaMalloc(&db, N * sizeof(F4)));
  E(cudaMemcpy(d, h, N, cudaMemcpyHostToDevice));
  write<<<2, DIM>>>(s);
  E(cudaGetLastError());

  for (int layer = 0; layer < L; layer++) {
    double sum = 0;
    launch(apply, nearest, linear, d, da, db, layer);
    E(cudaGetLastError());
    E(cudaMemcpy(ha, da, N * sizeof(F4), cudaMemcpyDeviceToHost));
    E(cudaMemcpy(hb, db, N * sizeof(F4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) {
      F4 p = read(layer, h[i]), q = read(layer, h[i] + 1);
      double w = 0.25 * (i % DIM % 32 % 4);  // the weight of the next entry
      bad += ha[i].x != p.x || ha[i].y != p.y || ha[i].z != p.z || ha[i].w != p.w;
      bad += fabs(p.x + w * (q.x - p.x) - hb[i].x) > 1e-3 || fabs(p.y + w * (q.y - p.y) - hb[i].y) > 1e-3 ||
             fabs(p.z + w * (q.z - p.z) - hb[i].z) > 1e-3 || fabs(p.w + w * (q.w - p.w) - hb[i].w) > 1e-2;
      sum += ha[i].x + ha[i].y + ha[i].z + ha[i].w;
    }
    printf("%-5s %.3f, %d wrong\n", name[layer], sum, bad);
  }
  E(cudaDestroyTextureObject(nearest));
  E(cudaDestroyTextureObject(linear));
  E(cudaDestroySurfaceObject(s));
  E(cudaFreeArray(array));
  E(cudaFree(d));
  E(cudaFree(da));
  E(cudaFree(db));
  free(ha);
  free(hb);
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
