// title: gravitating bodies in several files: header-only vectors, kernels in one file, the CPU's version in another
// features: several_files, headers, shared_memory, device_classes, templates
// files: kernels.cu cpu.cpp

#include "bodies.h"
#include "vec3.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

static double energy(const Bodies& b) {
  double kinetic = 0, potential = 0;
  for (int i = 0; i < b.count(); i++) {
    const float4 p = b.position[i], v = b.velocity[i];
    kinetic += 0.5 * p.w * (v.x * v.x + v.y * v.y + v.z * v.z);
    for (int j = 0; j < i; j++) {
      const float4 q = b.position[j];
      double d2 = (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) + (p.z - q.z) * (p.z - q.z) + kSoftening;
      potential -= p.w * q.w / std::sqrt(d2);
    }
  }
  return kinetic + potential;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 200, steps = argc > 2 ? std::atoi(argv[2]) : 5;
  Bodies start(n);
  unsigned state = 1;
  auto random = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
  };
  for (int i = 0; i < n; i++) {
    start.position[i] = make_float4(4 * random(), 4 * random(), 4 * random(), 0.5f + (i % 3) * 0.25f);
    start.velocity[i] = make_float4(random(), random(), random(), 0);
  }
  Bodies reference = start, plain = start, tiled = start;
  for (int s = 0; s < steps; s++) step_on_cpu(reference, kTimeStep);
  simulate_on_gpu(plain, steps, Method::plain);
  simulate_on_gpu(tiled, steps, Method::tiled);

  double worst = 0;
  vec3<double> momentum;
  for (int i = 0; i < n; i++) {
    for (const Bodies* b : {&plain, &tiled}) {
      vec3<double> difference = vec3<double>(b->position[i]) - vec3<double>(reference.position[i]);
      worst = std::fmax(worst, length(difference));
    }
    momentum +=
        static_cast<double>(tiled.position[i].w) * (vec3<double>(tiled.velocity[i]) - vec3<double>(start.velocity[i]));
  }
  const double before = energy(start), after = energy(tiled);
  std::printf("%d bodies, %d steps, %d launches\n", n, steps, launches);
  std::printf("energy %.3g before, changed by less than 5 %%: %s\n", before,
              std::fabs(after - before) < 0.05 * std::fabs(before) ? "yes" : "no");
  std::printf("momentum kept: %s\n", length(momentum) < 1e-2 ? "yes" : "no");
  bool ok = worst < 1e-3 && length(momentum) < 1e-2 && launches == 2 * steps && energy_is_finite(after);
  ok = ok && std::fabs(after - before) < 0.05 * std::fabs(before);
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
