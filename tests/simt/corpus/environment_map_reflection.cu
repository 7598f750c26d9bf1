// title: reflections of an environment map of bytes on a sphere, with branches for other platforms and old versions
// features: textures, cubemaps, cuda_arrays, untaken_branches, vector_operators, constant_memory

#if defined(__HIPCC__)
#  include <hip/hip_runtime.h>
#  define cudaMallocArray hipMallocArray
#elif defined(__SYCL_DEVICE_ONLY__) || defined(SYCL_LANGUAGE_VERSION)
#  include <sycl/sycl.hpp>
   using namespace sycl; queue q{gpu_selector_v}; q.submit([&](handler &h) { h.parallel_for<<<1>>>; });
#elif defined(_WIN32) && !defined(__CYGWIN__)
#  define NOMINMAX
#  include <windows.h>
#  include <d3d11.h>
#  include <cuda_d3d11_interop.h>
   static cudaGraphicsResource *resource;   // cudaGraphicsD3D11RegisterResource(&resource, ...)
#else
#  include <math.h>
#  include <stdio.h>
#  include <stdlib.h>
#  include <string.h>
#endif

#ifdef CUDART_VERSION
#  if CUDART_VERSION < 5000
     texture<uchar4, cudaTextureTypeCubemap, cudaReadModeNormalizedFloat> envRef;
#    define ENV(d) texCubemap(envRef, (d).x, (d).y, (d).z)
#  elif CUDART_VERSION >= 99000 /* not yet */
#    error "This version of CUDA is unknown."
#  else
#    define ENV(d) texCubemap<float4>(env, (d).x, (d).y, (d).z)
#  endif
#else
#  error "This is a CUDA program; it can't be compiled without nvcc"
#endif

#ifdef USE_MIPMAPS
__global__ void blurred(cudaTextureObject_t env, float4 *o) { *o = texCubemapLod<float4>(env, 1, 0, 0, 2.5f); }
cudaMipmappedArray_t levels;
#endif

#ifdef ENABLE_DYNAMIC_PARALLELISM
__global__ void parent(float4 *o) { child<<<1, 32>>>(o); cudaDeviceSynchronize(); }
#endif

#ifndef SIZE
#define SIZE 32
#endif

typedef unsigned char u8;

inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
inline __host__ __device__ float3 operator*(float s, float3 a) { return make_float3(s * a.x, s * a.y, s * a.z); }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

inline __host__ __device__ float3 reflect(float3 i, float3 n)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 200
    return i - __fmul_rn(2.0f, __fadd_rn(dot(n, i), __int_as_float(0))) * n;
#elif 1
    return i - 2.0f * dot(n, i) * n;
#else
    return nothing at all;
#endif
}

__constant__ float3 c_view = {0.0f, 0.0f, -1.0f};

// One thread a pixel of a sphere that is seen from far away. A texel spans many pixels' directions; the kernel writes
// the direction as well, so that the host needn't repeat the rounding.
__global__ void shade(float4 *out, float3 *directions, int size, cudaTextureObject_t env)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size || y >= size) return;
    float u = (2 * x + 1.0f) / size - 1, v = (2 * y + 1.0f) / size - 1, rr = u * u + v * v;
    float3 d = make_float3(0, 0, 0);
    float4 c = make_float4(0, 0, 0, 0);
    if (rr < 1) {
        float3 n = make_float3(u, v, sqrtf(1 - rr));
        d = reflect(c_view, n);
        c = ENV(d);
#ifdef TONE_MAPPING
        c = tone_map(c, __ldg(exposure));
#endif
    }
    out[y * size + x] = c;
    directions[y * size + x] = d;
}

static int check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return 0;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}
#define DO(x) check(x, #x)

static u8 colour(int face, int x, int y, int c) { return (u8)(face * 40 + (c == 0 ? x * 11 : c == 1 ? y * 13 : c == 2 ? x ^ y : 5)); }

int main(void)
{
    const int edge = 16, size = SIZE, faces = 6;
    uchar4 *texels = (uchar4 *)malloc(faces * edge * edge * sizeof(uchar4));
    for (int i = 0; i < faces * edge * edge; i++) {
        int f = i / (edge * edge), y = i / edge % edge, x = i % edge;
        texels[i] = make_uchar4(colour(f, x, y, 0), colour(f, x, y, 1), colour(f, x, y, 2), colour(f, x, y, 3));
    }

    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    DO(cudaMalloc3DArray(&array, &format, make_cudaExtent(edge, edge, faces), cudaArrayCubemap));
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.dstArray = array;
    copy.kind = cudaMemcpyHostToDevice;
    for (int f = 0; f < faces; f++) {   // face by face
        copy.srcPtr = make_cudaPitchedPtr(texels + f * edge * edge, edge * sizeof(uchar4), edge, edge);
        copy.dstPos = make_cudaPos(0, 0, f);
        copy.extent = make_cudaExtent(edge, edge, 1);
        DO(cudaMemcpy3D(&copy));
    }
    cudaResourceDesc from;
    memset(&from, 0, sizeof from);
    from.resType = cudaResourceTypeArray;
    from.res.array.array = array;
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    how.normalizedCoords = 1;
    how.readMode = cudaReadModeNormalizedFloat;
    how.filterMode = cudaFilterModePoint;
    cudaTextureObject_t env;
    DO(cudaCreateTextureObject(&env, &from, &how, NULL));

    float4 *d_out, *out = (float4 *)malloc(size * size * sizeof(float4));
    float3 *d_directions, *directions = (float3 *)malloc(size * size * sizeof(float3));
    DO(cudaMalloc((void **)&d_out, size * size * sizeof(float4)));
    DO(cudaMalloc((void **)&d_directions, size * size * sizeof(float3)));
    shade<<<dim3((size + 15) / 16, (size + 7) / 8), dim3(16, 8)>>>(d_out, d_directions, size, env);
    DO(cudaGetLastError());
    DO(cudaMemcpy(out, d_out, size * size * sizeof(float4), cudaMemcpyDeviceToHost));
    DO(cudaMemcpy(directions, d_directions, size * size * sizeof(float3), cudaMemcpyDeviceToHost));

    int bad = 0, hit = 0, near_edges = 0;
    for (int i = 0; i < size * size; i++) {
        double u = (2 * (i % size) + 1.0) / size - 1, v = (2 * (i / size) + 1.0) / size - 1, z = 1 - u * u - v * v;
        float3 d = directions[i];
        if (z <= 0) {
            bad += out[i].x != 0 || d.z != 0;
            continue;
        }
        // the reflected view in double precision
        z = sqrt(z);
        double w[3] = {2 * z * u, 2 * z * v, 2 * z * z - 1};
        bad += fabs(w[0] - d.x) + fabs(w[1] - d.y) + fabs(w[2] - d.z) > 1e-5;
        double a[3] = {fabs(w[0]), fabs(w[1]), fabs(w[2])}, s, t, m;
        int axis = a[0] > a[1] && a[0] > a[2] ? 0 : a[1] > a[2] ? 1 : 2, positive = w[axis] > 0;
        m = a[axis];
        if (axis == 0) s = positive ? -w[2] : w[2], t = -w[1];
        else if (axis == 1) s = w[0], t = positive ? w[2] : -w[2];
        else s = positive ? w[0] : -w[0], t = -w[1];
        s = (s / m + 1) / 2 * edge, t = (t / m + 1) / 2 * edge;
        // a texture unit has few bits of fraction: leave out what is close to the edge of a texel
        if (fabs(s - rint(s)) < 0.02 || fabs(t - rint(t)) < 0.02) {
            near_edges++;
            continue;
        }
        uchar4 c = texels[((2 * axis + !positive) * edge + (int)t) * edge + (int)s];
        bad += fabs(out[i].x - c.x / 255.0) > 1e-5 || fabs(out[i].y - c.y / 255.0) > 1e-5 ||
               fabs(out[i].z - c.z / 255.0) > 1e-5 || fabs(out[i].w - c.w / 255.0) > 1e-5;
        hit++;
    }
    printf("%d x %d pixels, %d compared, %d near edges of texels\n", size, size, hit, near_edges);
    bad += hit < size * size / 2;
    DO(cudaDestroyTextureObject(env));
    DO(cudaFreeArray(array));
    DO(cudaFree(d_out));
    DO(cudaFree(d_directions));
    free(texels); free(out); free(directions);
    printf(bad ? "FAILED\n" : "PASSED\n");
    return bad ? 1 : 0;
}
