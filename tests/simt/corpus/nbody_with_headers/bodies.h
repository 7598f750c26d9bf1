#pragma once

#include <cuda_runtime.h>
#include <vector>

constexpr float kTimeStep = 0.005f;
constexpr float kSoftening = 0.05f;

struct Bodies {
  std::vector<float4> position;  // w: mass
  std::vector<float4> velocity;
  explicit Bodies(int n) : position(n), velocity(n) {}
  int count() const { return static_cast<int>(position.size()); }
};

enum class Method { plain, tiled };

extern int launches;  // of kernels, so far
void simulate_on_gpu(Bodies &bodies, int steps, Method method);
void step_on_cpu(Bodies &bodies, float dt);
bool energy_is_finite(double energy);
