// title: Cubemap texture: directions to faces
// features: textures, cuda_arrays, cubemaps
// args: 16

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void require(cudaError_t status, const std::string& where) {
  if (status != cudaSuccess) throw std::runtime_error(where + ": " + cudaGetErrorString(status));
}

// The direction through the centre of texel (x, y) of a face, by the table of the programming guide.
__host__ __device__ inline float3 direction(int face, int x, int y, int width) {
  float u = 2.0f * (x + 0.5f) / width - 1.0f;
  float v = 2.0f * (y + 0.5f) / width - 1.0f;
  switch (face) {
    case 0: return make_float3(1.0f, -v, -u);
    case 1: return make_float3(-1.0f, -v, u);
    case 2: return make_float3(u, 1.0f, v);
    case 3: return make_float3(u, -1.0f, -v);
    case 4: return make_float3(u, -v, 1.0f);
    default: return make_float3(-u, -v, -1.0f);
  }
}

__global__ void lookUp(float* out, int width, cudaTextureObject_t cube) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int face = blockIdx.z;
  if (x >= width || y >= width) return;
  float3 d = direction(face, x, y, width);
  float scale = 1.0f + face;  // the length of a direction does not matter
  out[(face * width + y) * width + x] = texCubemap<float>(cube, d.x * scale, d.y * scale, d.z * scale);
}

int run(int width) {
  const int faces = 6;
  const std::size_t count = static_cast<std::size_t>(width) * width * faces;
  std::vector<float> texels(count), got(count);
  for (std::size_t i = 0; i < count; ++i) texels[i] = static_cast<float>((i * 13) % 257) + 1000.0f * (i / (width * width));

  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  require(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, width, faces), cudaArrayCubemap), "allocate cubemap");
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(texels.data(), width * sizeof(float), width, width);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, width, faces);
  copy.kind = cudaMemcpyHostToDevice;
  require(cudaMemcpy3D(&copy), "fill cubemap");

  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc settings{};
  settings.normalizedCoords = true;
  settings.filterMode = cudaFilterModePoint;
  settings.addressMode[0] = settings.addressMode[1] = settings.addressMode[2] = cudaAddressModeClamp;
  settings.readMode = cudaReadModeElementType;
  cudaTextureObject_t cube{};
  require(cudaCreateTextureObject(&cube, &resource, &settings, nullptr), "create texture");

  float* out = nullptr;
  require(cudaMalloc(&out, count * sizeof(float)), "allocate output");
  dim3 block(8, 8), grid((width + 7) / 8, (width + 7) / 8, faces);
  lookUp<<<grid, block>>>(out, width, cube);
  require(cudaGetLastError(), "launch");
  require(cudaMemcpy(got.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost), "copy back");
  require(cudaFree(out), "free");
  require(cudaDestroyTextureObject(cube), "destroy texture");
  require(cudaFreeArray(array), "free array");

  int wrong = 0;
  for (int f = 0; f < faces; ++f) {
    double sum = 0;
    for (int i = 0; i < width * width; ++i) {
      if (got[f * width * width + i] != texels[f * width * width + i]) ++wrong;
      sum += got[f * width * width + i];
    }
    std::cout << "face " << f << ": mean " << std::fixed << std::setprecision(1) << sum / (width * width) << '\n';
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) try {
  int wrong = run(argc > 1 ? std::stoi(argv[1]) : 16);
  std::cout << (wrong ? "FAILED" : "PASSED") << std::endl;
  return wrong ? 1 : 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << std::endl;
  return 1;
}
