#include "bodies.h"

#include <cmath>

void step_on_cpu(Bodies &bodies, float dt) {
  const std::vector<float4> old = bodies.position;
  for (int i = 0; i < bodies.count(); i++) {
    double force[3] = {0, 0, 0};
    for (const float4 &other : old) {
      const double d[3] = {double(other.x) - old[i].x, double(other.y) - old[i].y, double(other.z) - old[i].z};
      const double f = other.w / std::pow(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + kSoftening, 1.5);
      for (int k = 0; k < 3; k++) force[k] += f * d[k];
    }
    float4 &v = bodies.velocity[i], &p = bodies.position[i];
    v = make_float4(v.x + dt * force[0], v.y + dt * force[1], v.z + dt * force[2], 0);
    p = make_float4(old[i].x + dt * v.x, old[i].y + dt * v.y, old[i].z + dt * v.z, old[i].w);
  }
}

bool energy_is_finite(double energy) { return std::isfinite(energy); }
