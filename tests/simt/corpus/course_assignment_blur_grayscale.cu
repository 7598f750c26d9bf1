// title: a first assignment: grey picture from colours, box blur, brightness, with a PGM written to memory
// features: thread_indexing, vector_types, pitched_memory, command_line

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

#define BLUR_SIZE 2
#define CHANNELS 3

#define CUDA_SAFE_CALL(call)                                                          \
  do {                                                                                \
    cudaError err = call;                                                             \
    if (cudaSuccess != err) {                                                         \
      std::cerr << "Cuda error in file '" << __FILE__ << "' in line " << __LINE__     \
                << ": " << cudaGetErrorString(err) << std::endl;                      \
      exit(EXIT_FAILURE);                                                             \
    }                                                                                 \
  } while (0)

// Fixed weights in 1/1024, so that the result is the same everywhere
__global__ void colortoGrayscaleConvertion(unsigned char *Pout, const unsigned char *Pin, int width, int height) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col < width && row < height) {
    int grayOffset = row * width + col;
    int rgbOffset = grayOffset * CHANNELS;
    unsigned char r = Pin[rgbOffset];
    unsigned char g = Pin[rgbOffset + 1];
    unsigned char b = Pin[rgbOffset + 2];
    Pout[grayOffset] = (unsigned char)((215 * r + 727 * g + 72 * b + 512) >> 10);
  }
}

__global__ void blurKernel(const unsigned char *in, unsigned char *out, int w, int h) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col < w && row < h) {
    int pixVal = 0, pixels = 0;
    for (int blurRow = -BLUR_SIZE; blurRow < BLUR_SIZE + 1; ++blurRow)
      for (int blurCol = -BLUR_SIZE; blurCol < BLUR_SIZE + 1; ++blurCol) {
        int curRow = row + blurRow, curCol = col + blurCol;
        if (curRow >= 0 && curRow < h && curCol >= 0 && curCol < w) {
          pixVal += in[curRow * w + curCol];
          ++pixels;
        }
      }
    out[row * w + col] = (unsigned char)(pixVal / pixels);
  }
}

// Rows of pitched memory are addressed in bytes.
__global__ void brighten(char *picture, size_t pitch, int w, int h, int by) {
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < h; y += gridDim.y * blockDim.y) {
    uchar4 *row = (uchar4 *)(picture + y * pitch);
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < w / 4; x += gridDim.x * blockDim.x) {
      uchar4 p = row[x];
      p.x = min(p.x + by, 255);
      p.y = min(p.y + by, 255);
      p.z = min(p.z + by, 255);
      p.w = min(p.w + by, 255);
      row[x] = p;
    }
  }
}

// A volume of width x height x depth in cudaPitchedPtr: a gradient along z
__global__ void gradient3d(cudaPitchedPtr devPitchedPtr, cudaExtent extent) {
  char *devPtr = (char *)devPitchedPtr.ptr;
  size_t slicePitch = devPitchedPtr.pitch * extent.height;
  int z = blockIdx.x, y = threadIdx.y, x = threadIdx.x;
  float *row = (float *)(devPtr + z * slicePitch + y * devPitchedPtr.pitch);
  row[x] = 100.0f * z + 10.0f * y + x;
}

static uint32_t adler32(const unsigned char *data, size_t length) {
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < length; ++i) {
    a = (a + data[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

int main(int argc, char **argv) {
  int width = 100, height = 67;
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "--width=", 8)) width = atoi(argv[i] + 8) / 4 * 4;
    if (!strncmp(argv[i], "--height=", 9)) height = atoi(argv[i] + 9);
  }
  const int n = width * height;
  unsigned char *rgb = new unsigned char[n * CHANNELS], *gray = new unsigned char[n], *result = new unsigned char[n];
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      unsigned char *p = rgb + (y * width + x) * CHANNELS;
      p[0] = x * 2;
      p[1] = y * 3;
      p[2] = (x ^ y) * 5;
    }
  unsigned char *d_rgb, *d_gray, *d_blurred;
  CUDA_SAFE_CALL(cudaMalloc((void **)&d_rgb, n * CHANNELS));
  CUDA_SAFE_CALL(cudaMalloc((void **)&d_gray, n));
  CUDA_SAFE_CALL(cudaMalloc((void **)&d_blurred, n));
  CUDA_SAFE_CALL(cudaMemcpy(d_rgb, rgb, n * CHANNELS, cudaMemcpyHostToDevice));
  dim3 dimBlock(16, 16, 1), dimGrid((width - 1) / 16 + 1, (height - 1) / 16 + 1, 1);
  colortoGrayscaleConvertion<<<dimGrid, dimBlock>>>(d_gray, d_rgb, width, height);
  blurKernel<<<dimGrid, dimBlock>>>(d_gray, d_blurred, width, height);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(gray, d_gray, n, cudaMemcpyDeviceToHost));

  char *d_pitched;
  size_t pitch;
  CUDA_SAFE_CALL(cudaMallocPitch((void **)&d_pitched, &pitch, width, height));
  CUDA_SAFE_CALL(cudaMemcpy2D(d_pitched, pitch, d_blurred, width, width, height, cudaMemcpyDeviceToDevice));
  brighten<<<dim3(2, 3), dim3(8, 4)>>>(d_pitched, pitch, width, height, 40);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy2D(result, width, d_pitched, pitch, width, height, cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int i = 0; i < n; i++) {
    const unsigned char *p = rgb + 3 * i;
    wrong += gray[i] != int(p[0] * 215.0 / 1024 + p[1] * 727.0 / 1024 + p[2] * 72.0 / 1024 + 0.5);
    int sum = 0, count = 0, x = i % width, y = i / width;
    for (int v = y - 2; v <= y + 2; v++)
      for (int u = x - 2; u <= x + 2; u++)
        if (u >= 0 && v >= 0 && u < width && v < height) sum += gray[v * width + u], count++;
    int e = sum / count + 40;
    wrong += result[i] != (e > 255 ? 255 : e);
  }
  std::ostringstream file;
  file << "P5\n" << width << " " << height << "\n255\n";
  file.write(reinterpret_cast<char *>(result), n);
  std::string bytes = file.str();
  std::cout << "picture of " << bytes.size() << " bytes, checksum " << std::hex << std::setw(8) << std::setfill('0')
            << adler32((const unsigned char *)bytes.data(), bytes.size()) << std::dec << ", wrong: " << wrong
            << std::endl;

  const int w3 = 7, h3 = 5, d3 = 4;
  float volume[d3][h3][w3];
  cudaExtent extent = make_cudaExtent(w3 * sizeof(float), h3, d3);
  cudaPitchedPtr pitched;
  CUDA_SAFE_CALL(cudaMalloc3D(&pitched, extent));
  gradient3d<<<d3, dim3(w3, h3)>>>(pitched, extent);
  cudaMemcpy3DParms parms = {0};
  parms.srcPtr = pitched;
  parms.dstPtr = make_cudaPitchedPtr(volume, w3 * sizeof(float), w3, h3);
  parms.extent = extent;
  parms.kind = cudaMemcpyDeviceToHost;
  CUDA_SAFE_CALL(cudaMemcpy3D(&parms));
  for (int z = 0; z < d3; z++)
    for (int y = 0; y < h3; y++)
      for (int x = 0; x < w3; x++) wrong += volume[z][y][x] != 100.0f * z + 10.0f * y + x;
  std::cout << "volume: last " << volume[d3 - 1][h3 - 1][w3 - 1] << std::endl;

  CUDA_SAFE_CALL(cudaFree(pitched.ptr));
  CUDA_SAFE_CALL(cudaFree(d_pitched));
  CUDA_SAFE_CALL(cudaFree(d_rgb));
  CUDA_SAFE_CALL(cudaFree(d_gray));
  CUDA_SAFE_CALL(cudaFree(d_blurred));
  delete[] rgb;
  delete[] gray;
  delete[] result;
  std::cout << (wrong ? "FAILED" : "PASSED") << std::endl;
  return wrong ? 1 : 0;
}
