// title: forces between neighbours, whose positions and tables are read through textures on linear memory
// features: textures, linear_texture, alignment, deprecated_names, shared_word_order, vector_types, double_precision

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>

typedef double4 Vec4d;      // CUDA 13 would rather have double4_16a or double4_32a

#define ALIGN_UP(n, a) (((n) + (a) - 1) / (a) * (a))
#define SLICE 512           // what a texture's memory is aligned to on all GPUs until now

#ifdef __CUDACC__
#define ALIGNED(n) __align__(n)
#else
#define ALIGNED(n) __attribute__((aligned(n)))
#endif

typedef struct ALIGNED(16) { int first, count, kind, pad; } Bond_list;
typedef struct ALIGNED(8)  { unsigned short from, to; unsigned int flags; } Bond;
typedef struct { ALIGNED(32) double energy; float virial; } Totals;

#define CE(x) do { cudaError e__ = (x); if (e__ != cudaSuccess) { \
    fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e__)); exit(1); } } while (0)

/* There are no textures of doubles: two integers are put together. */
static __inline__ __device__ double fetch_double(cudaTextureObject_t t, int i)
{
    int2 v = tex1Dfetch<int2>(t, i);
    return __hiloint2double(v.y, v.x);
}

__global__ void forces(int n, cudaTextureObject_t pos, cudaTextureObject_t charge, cudaTextureObject_t lists,
                       cudaTextureObject_t weights, const Bond *__restrict__ bonds, Vec4d *out, Totals *totals)
{
    extern Vec4d __shared__ sums[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Vec4d f = make_double4(0, 0, 0, 0);
    if (i < n) {
        float4 a = tex1Dfetch<float4>(pos, i);
        double q = fetch_double(charge, i);
        int4 list = tex1Dfetch<int4>(lists, i);
        for (int k = list.x; k < list.x + list.y; k++) {
            Bond b = bonds[k];
            float4 c = tex1Dfetch<float4>(pos, b.to);
            float w = tex1Dfetch<float>(weights, (int)(b.flags & 255u));    // a byte as a fraction of 255
            double dx = (double)a.x - c.x, dy = (double)a.y - c.y, dz = (double)a.z - c.z;
            double r2 = dx * dx + dy * dy + dz * dz + 0.5;
            double s = q * fetch_double(charge, b.to) * w / (r2 * r2);
            f.x += s * dx;
            f.y += s * dy;
            f.z += s * dz;
            f.w += s * r2;
        }
        // out of range is zero
        f.w += tex1Dfetch<float>(weights, 100000) + tex1Dfetch<float>(weights, -1);
        out[i] = f;
    }
    sums[threadIdx.x] = f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) sums[threadIdx.x].w += sums[threadIdx.x + s].w;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        totals[blockIdx.x].energy = sums[0].w;
        totals[blockIdx.x].virial = (float)sums[0].w;
    }
}

static cudaTextureObject_t bind(const void *memory, cudaChannelFormatDesc desc, size_t bytes, bool normalized)
{
    cudaResourceDesc r;
    cudaTextureDesc t;
    memset(&r, 0, sizeof r);
    memset(&t, 0, sizeof t);
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = (void *)memory;
    r.res.linear.desc = desc;
    r.res.linear.sizeInBytes = bytes;
    t.readMode = normalized ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    cudaTextureObject_t made = 0;
    CE(cudaCreateTextureObject(&made, &r, &t, NULL));
    return made;
}

int main(int argc, char **argv)
{
    const int n = 500, threads = 64, blocks = (n + threads - 1) / threads;
    static float4 pos[n];
    static double charge[n];
    static Bond_list lists[n];
    static Bond bonds[n * 7];
    static unsigned char weights[256];
    static Vec4d out[n];
    static Totals totals[(n + 63) / 64];
    int nbonds = 0, errors = 0, i, k;

    assert(sizeof(Bond_list) == 16 && sizeof(Bond) == 8 && sizeof(Totals) == 32 && __alignof__(Totals) == 32);
    for (i = 0; i < 256; i++) weights[i] = (unsigned char)(255 - i * 3 % 256);
    for (i = 0; i < n; i++) {
        pos[i] = make_float4((float)(i % 10), (float)(i / 10 % 10), (float)(i / 100), 0);
        charge[i] = (i % 2 ? 1 : -1) * (1.0 + i / 3.0);
        lists[i].first = nbonds;
        lists[i].kind = lists[i].pad = 0;
        for (k = 0; k < i % 8; k++) {
            bonds[nbonds].from = (unsigned short)i;
            bonds[nbonds].to = (unsigned short)((i + 1 + k * k * 13) % n);
            bonds[nbonds++].flags = 0xabc00u | (unsigned)(i * 5 + k) % 256;
        }
        lists[i].count = nbonds - lists[i].first;
    }

    // one allocation for all inputs
    size_t at_charge = ALIGN_UP(sizeof pos, SLICE), at_lists = at_charge + ALIGN_UP(sizeof charge, SLICE),
           at_weights = at_lists + ALIGN_UP(sizeof lists, SLICE), at_bonds = at_weights + ALIGN_UP(sizeof weights, SLICE);
    char *arena;
    Vec4d *d_out;
    Totals *d_totals;
    CE(cudaMalloc((void **)&arena, at_bonds + sizeof bonds));
    CE(cudaMalloc((void **)&d_out, sizeof out));
    CE(cudaMalloc((void **)&d_totals, sizeof totals));
    if (((uintptr_t)arena | (uintptr_t)d_out | (uintptr_t)d_totals) & 255) errors++;   // as the guide promises
    cudaDeviceProp prop;
    CE(cudaGetDeviceProperties(&prop, 0));
    if (SLICE % prop.textureAlignment || (uintptr_t)arena % prop.textureAlignment) errors++;
    CE(cudaMemcpy(arena, pos, sizeof pos, cudaMemcpyHostToDevice));
    CE(cudaMemcpy(arena + at_charge, charge, sizeof charge, cudaMemcpyHostToDevice));
    CE(cudaMemcpy(arena + at_lists, lists, sizeof lists, cudaMemcpyHostToDevice));
    CE(cudaMemcpy(arena + at_weights, weights, sizeof weights, cudaMemcpyHostToDevice));
    CE(cudaMemcpy(arena + at_bonds, bonds, nbonds * sizeof(Bond), cudaMemcpyHostToDevice));
    CE(cudaMemset(d_totals, 0, sizeof totals));

    cudaTextureObject_t t_pos = bind(arena, cudaCreateChannelDesc<float4>(), sizeof pos, false);
    cudaTextureObject_t t_charge = bind(arena + at_charge, cudaCreateChannelDesc<int2>(), sizeof charge, false);
    cudaTextureObject_t t_lists =
        bind(arena + at_lists, cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindSigned), sizeof lists, false);
    cudaTextureObject_t t_weights = bind(arena + at_weights, cudaCreateChannelDesc<unsigned char>(), sizeof weights, true);

    CE(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    forces<<<blocks, threads, threads * sizeof(Vec4d)>>>(n, t_pos, t_charge, t_lists, t_weights,
                                                         (const Bond *)(arena + at_bonds), d_out, d_totals);
    CE(cudaGetLastError());
    CE(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
    CE(cudaMemcpy(totals, d_totals, sizeof totals, cudaMemcpyDeviceToHost));

    double energy = 0, energy_of_gpu = 0;
    for (i = 0; i < n; i++) {
        double f[4] = {0, 0, 0, 0};
        for (k = lists[i].first; k < lists[i].first + lists[i].count; k++) {
            float4 a = pos[i], c = pos[bonds[k].to];
            double d[3] = {(double)a.x - c.x, (double)a.y - c.y, (double)a.z - c.z}, r2 = 0.5;
            for (int j = 0; j < 3; j++) r2 += d[j] * d[j];
            double s = charge[i] * charge[bonds[k].to] * (weights[bonds[k].flags % 256] / 255.0) / (r2 * r2);
            for (int j = 0; j < 3; j++) f[j] += s * d[j];
            f[3] += s * r2;
        }
        double size = fabs(f[0]) + fabs(f[1]) + fabs(f[2]) + fabs(f[3]) + 1;
        double apart = fabs(f[0] - out[i].x) + fabs(f[1] - out[i].y) + fabs(f[2] - out[i].z) + fabs(f[3] - out[i].w);
        if (!(apart < 1e-5 * size)) errors++;
        energy += f[3];
    }
    for (i = 0; i < blocks; i++) {
        energy_of_gpu += totals[i].energy;
        if (totals[i].virial != (float)totals[i].energy) errors++;
    }
    if (!(fabs(energy - energy_of_gpu) < 1e-6 * fabs(energy))) errors++;
    printf("%d bonds, energy %.0f, %d errors\n", nbonds, energy, errors);

    CE(cudaDestroyTextureObject(t_pos));
    CE(cudaDestroyTextureObject(t_charge));
    CE(cudaDestroyTextureObject(t_lists));
    CE(cudaDestroyTextureObject(t_weights));
    CE(cudaFree(arena));
    CE(cudaFree(d_out));
    CE(cudaFree(d_totals));
    puts(errors ? "FAILED" : "PASSED");
    return errors ? 1 : 0;
}
