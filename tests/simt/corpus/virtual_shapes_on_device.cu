// title: classes with virtual functions, created on the device with new, used and deleted there
// features: virtual_functions, device_new_delete, device_classes, device_templates
// differs: a ray touches a sphere, and hits it where a GPU rounds a product and a sum at once

#include <cstdio>
#include <cstdlib>

#define checkCudaErrors(val) check_cuda((val), #val, __FILE__, __LINE__)

void check_cuda(cudaError_t result, char const* const func, const char* const file, int const line) {
  if (result) {
    fprintf(stderr, "CUDA error = %u at %s:%d '%s'\n", static_cast<unsigned int>(result), file, line, func);
    cudaDeviceReset();
    exit(99);
  }
}

struct vec3 {
  float e[3];
  __host__ __device__ vec3() : e{0, 0, 0} {}
  __host__ __device__ vec3(float x, float y, float z) : e{x, y, z} {}
  __host__ __device__ float x() const { return e[0]; }
  __host__ __device__ float y() const { return e[1]; }
  __host__ __device__ float z() const { return e[2]; }
  __host__ __device__ vec3 operator-() const { return vec3(-e[0], -e[1], -e[2]); }
  __host__ __device__ float operator[](int i) const { return e[i]; }
  __host__ __device__ float& operator[](int i) { return e[i]; }
};
__host__ __device__ inline vec3 operator+(const vec3& a, const vec3& b) {
  return vec3(a[0] + b[0], a[1] + b[1], a[2] + b[2]);
}
__host__ __device__ inline vec3 operator-(const vec3& a, const vec3& b) { return a + -b; }
__host__ __device__ inline vec3 operator*(float t, const vec3& v) { return vec3(t * v[0], t * v[1], t * v[2]); }
__host__ __device__ inline float dot(const vec3& a, const vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

struct ray {
  vec3 origin, direction;
  __device__ vec3 at(float t) const { return origin + t * direction; }
};

class hitable {
 public:
  __device__ virtual bool hit(const ray& r, float t_min, float t_max, float& t) const = 0;
  __device__ virtual int material() const { return 0; }
  __device__ virtual ~hitable() {}
};

class sphere : public hitable {
 public:
  __device__ sphere(vec3 c, float r, int m) : center(c), radius(r), mat(m) {}
  __device__ bool hit(const ray& r, float t_min, float t_max, float& t) const override {
    vec3 oc = r.origin - center;
    float a = dot(r.direction, r.direction), b = dot(oc, r.direction), c = dot(oc, oc) - radius * radius;
    float discriminant = b * b - a * c;
    if (discriminant <= 0) return false;
    float root = (-b - sqrtf(discriminant)) / a;
    if (!(root < t_max && root > t_min)) root = (-b + sqrtf(discriminant)) / a;
    if (!(root < t_max && root > t_min)) return false;
    t = root;
    return true;
  }
  __device__ int material() const override { return mat; }

 protected:
  vec3 center;
  float radius;
  int mat;
};

class floor_plane final : public hitable {
 public:
  __device__ bool hit(const ray& r, float t_min, float t_max, float& t) const override {
    if (r.direction.y() >= 0) return false;
    t = (-1.0f - r.origin.y()) / r.direction.y();
    return t > t_min && t < t_max;
  }
};

class hitable_list : public hitable {
 public:
  __device__ hitable_list(hitable** l, int n) : list(l), size(n) {}
  __device__ bool hit(const ray& r, float t_min, float t_max, float& t) const override {
    bool any = false;
    float closest = t_max;
    for (int i = 0; i < size; i++)
      if (list[i]->hit(r, t_min, closest, t)) {
        any = true;
        closest = t;
      }
    t = closest;
    return any;
  }
  __device__ int material_at(const ray& r, float t) const {
    for (int i = 0; i < size; i++) {
      float own;
      if (list[i]->hit(r, 0.0f, 1e6f, own) && own == t) return list[i]->material();
    }
    return -1;
  }
  __device__ ~hitable_list() {
    for (int i = 0; i < size; i++) delete list[i];
  }

 private:
  hitable** list;
  int size;
};

__global__ void create_world(hitable** d_list, hitable** d_world) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    d_list[0] = new sphere(vec3(0, 0, -3), 1.0f, 1);
    d_list[1] = new sphere(vec3(1.5f, -0.5f, -2.5f), 0.5f, 2);
    d_list[2] = new floor_plane;
    *d_world = new hitable_list(d_list, 3);
  }
}

__global__ void render(int* fb, int max_x, int max_y, hitable** world) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int j = threadIdx.y + blockIdx.y * blockDim.y;
  if ((i >= max_x) || (j >= max_y)) return;
  ray r{vec3(), vec3(2.0f * i / max_x - 1.0f, 1.0f - 2.0f * j / max_y, -1.0f)};
  float t = 0;
  int pixel = -1;
  if ((*world)->hit(r, 0.0f, 1e6f, t)) pixel = static_cast<hitable_list*>(*world)->material_at(r, t);
  fb[j * max_x + i] = pixel;
}

__global__ void free_world(hitable** d_world) { delete *d_world; }

int main() {
  const int nx = 60, ny = 30;
  int *fb, counts[4] = {0, 0, 0, 0};
  hitable **d_list, **d_world;
  checkCudaErrors(cudaMallocManaged((void**)&fb, nx * ny * sizeof(int)));
  checkCudaErrors(cudaMalloc((void**)&d_list, 3 * sizeof(hitable*)));
  checkCudaErrors(cudaMalloc((void**)&d_world, sizeof(hitable*)));
  create_world<<<1, 1>>>(d_list, d_world);
  checkCudaErrors(cudaGetLastError());
  checkCudaErrors(cudaDeviceSynchronize());
  render<<<dim3(nx / 8 + 1, ny / 8 + 1), dim3(8, 8)>>>(fb, nx, ny, d_world);
  checkCudaErrors(cudaGetLastError());
  checkCudaErrors(cudaDeviceSynchronize());

  int differ = 0;
  for (int j = 0; j < ny; j++) {
    for (int i = 0; i < nx; i++) {
      double d[3] = {2.0 * i / nx - 1, 1 - 2.0 * j / ny, -1}, nearest = 1e6;
      double spheres[2][4] = {{0, 0, -3, 1}, {1.5, -0.5, -2.5, 0.5}};
      int what = -1;
      for (int s = 0; s < 2; s++) {
        double *c = spheres[s], a = d[0] * d[0] + d[1] * d[1] + 1, b = -(c[0] * d[0] + c[1] * d[1] + c[2] * d[2]);
        double disc = b * b - a * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2] - c[3] * c[3]);
        if (disc > 0 && (-b - sqrt(disc)) / a < nearest) nearest = (-b - sqrt(disc)) / a, what = s + 1;
      }
      if (d[1] < 0 && -1 / d[1] < nearest) what = 0;
      differ += what != fb[j * nx + i];
      counts[fb[j * nx + i] + 1]++;
      if (j % 3 == 0 && i % 2 == 0) putchar(" .oO"[fb[j * nx + i] + 1]);
    }
    if (j % 3 == 0) putchar('\n');
  }
  free_world<<<1, 1>>>(d_world);
  checkCudaErrors(cudaGetLastError());
  checkCudaErrors(cudaDeviceSynchronize());
  checkCudaErrors(cudaFree(d_list));
  checkCudaErrors(cudaFree(d_world));
  checkCudaErrors(cudaFree(fb));
  bool ok = differ <= 6 && counts[1] > 100 && counts[2] > 100 && counts[3] > 20;  // edges may round differently
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
