// title: A layered 2-D texture: every layer transformed, then written through a layered surface
// features: textures, surfaces, cuda_arrays, layered_textures

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#define HANDLE(x) handle_error((x), __FILE__, __LINE__)
static void handle_error(cudaError_t err, const char* file, int line) {
  if (err != cudaSuccess) {
    printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
    exit(EXIT_FAILURE);
  }
}

/* out = -in + layer */
__global__ void transform_layer(float* out, int width, int height, int layer, cudaTextureObject_t tex) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    float u = (x + 0.5f) / (float)width, v = (y + 0.5f) / (float)height;
    out[layer * width * height + y * width + x] = -tex2DLayered<float>(tex, u, v, layer) + layer;
  }
}

/* Doubles every value of every layer where it lies: the byte offset in x, the row and the layer address it. */
__global__ void double_in_place(cudaSurfaceObject_t surf, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, layer = blockIdx.z;
  if (x >= width || y >= height) return;
  float value;
  surf2DLayeredread(&value, surf, x * (int)sizeof(float), y, layer);
  surf2DLayeredwrite(2.0f * value, surf, x * (int)sizeof(float), y, layer);
}

int main(void) {
  const int width = 32, height = 20, layers = 5;
  const int cells = width * height * layers;
  float* h_in = (float*)malloc(cells * sizeof(float));
  float* h_out = (float*)malloc(cells * sizeof(float));
  int layer, i, errors = 0;
  double sum = 0;
  for (layer = 0; layer < layers; layer++)
    for (i = 0; i < width * height; i++) h_in[layer * width * height + i] = (float)(i + layer * 3);

  cudaChannelFormatDesc channel = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray* cu_3darray;
  HANDLE(cudaMalloc3DArray(&cu_3darray, &channel, make_cudaExtent(width, height, layers),
                           cudaArrayLayered | cudaArraySurfaceLoadStore));
  cudaMemcpy3DParms parms;
  memset(&parms, 0, sizeof(parms));
  parms.srcPos = make_cudaPos(0, 0, 0);
  parms.dstPos = make_cudaPos(0, 0, 0);
  parms.srcPtr = make_cudaPitchedPtr(h_in, width * sizeof(float), width, height);
  parms.dstArray = cu_3darray;
  parms.extent = make_cudaExtent(width, height, layers);
  parms.kind = cudaMemcpyHostToDevice;
  HANDLE(cudaMemcpy3D(&parms));

  cudaResourceDesc res;
  memset(&res, 0, sizeof(res));
  res.resType = cudaResourceTypeArray;
  res.res.array.array = cu_3darray;
  cudaSurfaceObject_t surf;
  HANDLE(cudaCreateSurfaceObject(&surf, &res));
  dim3 block(8, 8, 1);
  double_in_place<<<dim3((width + 7) / 8, (height + 7) / 8, layers), block>>>(surf, width, height);
  HANDLE(cudaGetLastError());
  HANDLE(cudaDeviceSynchronize());

  cudaTextureDesc td;
  memset(&td, 0, sizeof(td));
  td.normalizedCoords = 1;
  td.filterMode = cudaFilterModeLinear;
  td.addressMode[0] = cudaAddressModeWrap;
  td.addressMode[1] = cudaAddressModeWrap;
  td.readMode = cudaReadModeElementType;
  cudaTextureObject_t tex;
  HANDLE(cudaCreateTextureObject(&tex, &res, &td, NULL));
  float* d_out;
  HANDLE(cudaMalloc((void**)&d_out, cells * sizeof(float)));
  for (layer = 0; layer < layers; layer++)
    transform_layer<<<dim3((width + 7) / 8, (height + 7) / 8, 1), block>>>(d_out, width, height, layer, tex);
  HANDLE(cudaGetLastError());
  HANDLE(cudaMemcpy(h_out, d_out, cells * sizeof(float), cudaMemcpyDeviceToHost));

  for (layer = 0; layer < layers; layer++)
    for (i = 0; i < width * height; i++) {
      float want = -2.0f * h_in[layer * width * height + i] + layer;
      float diff = h_out[layer * width * height + i] - want;
      if (diff > 0.5f || diff < -0.5f) errors++;
      sum += h_out[layer * width * height + i];
    }
  printf("%d layers of %d x %d, sum %.0f\n", layers, width, height, sum);
  HANDLE(cudaDestroyTextureObject(tex));
  HANDLE(cudaDestroySurfaceObject(surf));
  HANDLE(cudaFreeArray(cu_3darray));
  HANDLE(cudaFree(d_out));
  free(h_in);
  free(h_out);
  puts(errors ? "FAILED" : "PASSED");
  return errors != 0;
}
