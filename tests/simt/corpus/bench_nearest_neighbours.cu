// title: The k nearest records to a place, read from a text that the program writes itself
// features: vector_types, string_parsing, two_dimensional_grids
// args: 800 6 30.5 90.25

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

struct LatLong {
  float lat, lng;
};

struct Record {
  std::string name;
  float distance;
};

#define MUST(x)                                                        \
  {                                                                    \
    cudaError_t r = x;                                                 \
    if (r != cudaSuccess) {                                            \
      fprintf(stderr, "%s\n", cudaGetErrorString(r));                  \
      exit(1);                                                         \
    }                                                                  \
  }

__global__ void euclid(const LatLong* locations, float* distances, int n, float lat, float lng) {
  int id = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
  if (id < n) {
    const LatLong* l = locations + id;
    float a = lat - l->lat, b = lng - l->lng;
    distances[id] = sqrtf(a * a + b * b);
  }
}

int main(int argc, char* argv[]) {
  const int n = argc > 1 ? atoi(argv[1]) : 800, k = argc > 2 ? atoi(argv[2]) : 6;
  const float lat = argc > 3 ? (float)atof(argv[3]) : 30.5f, lng = argc > 4 ? (float)atof(argv[4]) : 90.25f;
  std::ostringstream text;
  for (int i = 0; i < n; i++) text << "STORM" << i << " " << (i * 37 % 721) / 8.0 << " " << (i * 101 % 1439) / 4.0 << "\n";
  std::istringstream in(text.str());
  std::vector<LatLong> locations;
  std::vector<Record> records;
  std::string name;
  LatLong l;
  while (in >> name >> l.lat >> l.lng) {
    locations.push_back(l);
    records.push_back({name, -1.0f});
  }
  const int count = (int)records.size();
  LatLong* d_locations;
  float* d_distances;
  std::vector<float> distances(count);
  MUST(cudaMalloc((void**)&d_locations, sizeof(LatLong) * count));
  MUST(cudaMalloc((void**)&d_distances, sizeof(float) * count));
  MUST(cudaMemcpy(d_locations, locations.data(), sizeof(LatLong) * count, cudaMemcpyHostToDevice));
  const int threads = 64, blocks = (count + threads - 1) / threads;
  dim3 grid((unsigned)std::ceil(std::sqrt((double)blocks)));  // nearly square
  grid.y = (blocks + grid.x - 1) / grid.x;
  euclid<<<grid, threads>>>(d_locations, d_distances, count, lat, lng);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(distances.data(), d_distances, sizeof(float) * count, cudaMemcpyDeviceToHost));
  MUST(cudaFree(d_locations));
  MUST(cudaFree(d_distances));
  int wrong = count != n;
  for (int i = 0; i < count; i++) {
    records[i].distance = distances[i];
    double want = std::hypot((double)lat - locations[i].lat, (double)lng - locations[i].lng);
    wrong += std::fabs(want - distances[i]) > 1e-4;
  }
  // coordinates are multiples of 1/8, so squares are exact and ties stay ties
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.distance < b.distance; });
  for (int i = 0; i < std::min(k, count); i++) printf("%s --> %.3f\n", records[i].name.c_str(), records[i].distance);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
