// title: A layered cubemap: skies of several seasons, looked up by rays and blended
// features: textures, cubemaps, layered_textures, cuda_arrays, alignment, vector_types

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define cudaVerify(x)                                                                   \
    do {                                                                                \
        cudaError_t err__ = (x);                                                        \
        if (err__ != cudaSuccess) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(err__)); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

static const int Faces = 6;

// A ray of 16 bytes is loaded by one instruction.
struct __align__(16) Ray {
    float x, y, z;
    int season;
};

struct __builtin_align__(8) Sample {
    float now;
    float mixed;
};

static_assert(sizeof(Ray) == 16 && alignof(Ray) == 16, "a ray is four words");
static_assert(alignof(Sample) == 8, "a sample is two words");

__global__ void lookUpSky(const Ray *rays, Sample *samples, int count, cudaTextureObject_t sky, int seasons)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Ray r = rays[i];
    float now = texCubemapLayered<float>(sky, r.x, r.y, r.z, r.season), next;
    texCubemapLayered(&next, sky, r.x, r.y, r.z, (r.season + 1) % seasons);
    Sample s;
    s.now = now;
    s.mixed = 0.75f * now + 0.25f * next;
    samples[i] = s;
}

__global__ void sumFaces(cudaTextureObject_t sky, int width, float *sums)
{
    __shared__ __align__(16) float partial[64];
    const int face = blockIdx.x, season = blockIdx.y;
    const float3 centres[Faces] = {make_float3(1, 0, 0), make_float3(-1, 0, 0), make_float3(0, 1, 0),
                                   make_float3(0, -1, 0), make_float3(0, 0, 1), make_float3(0, 0, -1)};
    float sum = 0;
    for (int t = threadIdx.x; t < width * width; t += 64) {
        float u = (2 * (t % width) + 1.0f) / width - 1, v = (2 * (t / width) + 1.0f) / width - 1;
        float3 d = centres[face];
        if (face < 2) d.y = u, d.z = v;
        else if (face < 4) d.x = u, d.z = v;
        else d.x = u, d.y = v;
        sum += texCubemapLayered<float>(sky, d.x, d.y, d.z, season);
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 16) {
        const float4 four = reinterpret_cast<const float4 *>(partial)[threadIdx.x];
        sum = four.x + four.y + four.z + four.w;
        for (int o = 8; o; o /= 2) sum += __shfl_down_sync(0xffff, sum, o, 16);
        if (threadIdx.x == 0) sums[season * Faces + face] = sum;
    }
}

// The texel that a direction meets, by the table of faces in the programming guide
static int texelOf(const Ray &r, int width)
{
    float ax = r.x < 0 ? -r.x : r.x, ay = r.y < 0 ? -r.y : r.y, az = r.z < 0 ? -r.z : r.z, m, s, t;
    int face;
    if (ax > ay && ax > az) { face = r.x > 0 ? 0 : 1; m = ax; s = r.x > 0 ? -r.z : r.z; t = -r.y; }
    else if (ay > az)       { face = r.y > 0 ? 2 : 3; m = ay; s = r.x; t = r.y > 0 ? r.z : -r.z; }
    else                    { face = r.z > 0 ? 4 : 5; m = az; s = r.z > 0 ? r.x : -r.x; t = -r.y; }
    int column = (int)((s / m + 1) / 2 * width), row = (int)((t / m + 1) / 2 * width);
    return (face * width + row) * width + column;
}

int main()
{
    const int width = 8, seasons = 4, count = 3000;
    const int perSeason = Faces * width * width;
    std::vector<float> texels(seasons * perSeason);
    for (size_t i = 0; i < texels.size(); ++i) texels[i] = (float)((i * 29) % 211) + 256 * (float)(i / perSeason);

    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaExtent extent = make_cudaExtent(width, width, seasons * Faces);
    cudaArray_t array;
    cudaVerify(cudaMalloc3DArray(&array, &desc, extent, cudaArrayLayered | cudaArrayCubemap));
    cudaMemcpy3DParms p = {0};
    p.srcPtr = make_cudaPitchedPtr(texels.data(), width * sizeof(float), width, width);
    p.dstArray = array;
    p.extent = extent;
    p.kind = cudaMemcpyHostToDevice;
    cudaVerify(cudaMemcpy3D(&p));

    cudaChannelFormatDesc gotDesc;
    cudaExtent gotExtent;
    unsigned flags = 0;
    cudaVerify(cudaArrayGetInfo(&gotDesc, &gotExtent, &flags, array));
    int wrong = gotExtent.depth != (size_t)(seasons * Faces) || gotDesc.x != 32 ||
                flags != (cudaArrayLayered | cudaArrayCubemap);

    cudaResourceDesc res;
    memset(&res, 0, sizeof(res));
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    cudaTextureDesc tex;
    memset(&tex, 0, sizeof(tex));
    for (int i = 0; i < 3; i++) tex.addressMode[i] = cudaAddressModeClamp;
    tex.filterMode = cudaFilterModePoint;
    tex.readMode = cudaReadModeElementType;
    tex.normalizedCoords = 1;
    cudaTextureObject_t sky;
    cudaVerify(cudaCreateTextureObject(&sky, &res, &tex, NULL));

    // Rays through the faces at a quarter, a half and three quarters of texels, far from their edges
    std::vector<Ray> rays(count);
    for (int i = 0; i < count; i++) {
        int face = i % 6, column = (i * 37 + i / 60) % width, row = (i / 6 * 53) % width;
        float u = (column + 0.25f * (1 + i % 3)) * 2 / width - 1, v = (row + 0.25f * (1 + i / 5 % 3)) * 2 / width - 1;
        float length = (float)(1 << i % 5), m = face & 1 ? -length : length;
        float d[3];
        d[face / 2] = m;
        d[(face / 2 + 1) % 3] = u * length;
        d[(face / 2 + 2) % 3] = v * length;
        rays[i].x = d[0], rays[i].y = d[1], rays[i].z = d[2], rays[i].season = i / 7 % seasons;
    }
    Ray *dRays;
    Sample *dSamples;
    float *dSums;
    cudaVerify(cudaMalloc(&dRays, count * sizeof(Ray)));
    cudaVerify(cudaMalloc(&dSamples, count * sizeof(Sample)));
    cudaVerify(cudaMalloc(&dSums, seasons * Faces * sizeof(float)));
    // cudaMalloc aligns to 256 bytes at least
    wrong += ((uintptr_t)dRays | (uintptr_t)dSamples | (uintptr_t)dSums) % 256 != 0;
    cudaVerify(cudaMemcpy(dRays, rays.data(), count * sizeof(Ray), cudaMemcpyHostToDevice));
    lookUpSky<<<(count + 127) / 128, 128>>>(dRays, dSamples, count, sky, seasons);
    sumFaces<<<dim3(Faces, seasons), 64>>>(sky, width, dSums);
    cudaVerify(cudaGetLastError());
    std::vector<Sample> samples(count);
    std::vector<float> sums(seasons * Faces);
    cudaVerify(cudaMemcpy(samples.data(), dSamples, count * sizeof(Sample), cudaMemcpyDeviceToHost));
    cudaVerify(cudaMemcpy(sums.data(), dSums, sums.size() * sizeof(float), cudaMemcpyDeviceToHost));

    double total = 0;
    for (int i = 0; i < count; i++) {
        int t = texelOf(rays[i], width), season = rays[i].season;
        float now = texels[season * perSeason + t], next = texels[(season + 1) % seasons * perSeason + t];
        if (samples[i].now != now || samples[i].mixed != 0.75f * now + 0.25f * next) wrong++;
        total += samples[i].mixed;
    }
    for (int f = 0; f < seasons * Faces; f++) {
        float want = 0;
        for (int t = 0; t < width * width; t++) want += texels[f * width * width + t];
        if (sums[f] != want) wrong++;
    }
    printf("%d rays: %.2f, first face of each season: %.0f %.0f %.0f %.0f\n", count, total, sums[0], sums[6], sums[12], sums[18]);

    cudaVerify(cudaDestroyTextureObject(sky));
    cudaVerify(cudaFreeArray(array));
    cudaVerify(cudaFree(dRays));
    cudaVerify(cudaFree(dSamples));
    cudaVerify(cudaFree(dSums));
    printf("%s\n", wrong ? "FAILED" : "PASSED");
    return wrong ? 1 : 0;
}
