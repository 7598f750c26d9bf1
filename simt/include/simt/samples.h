// The part of the folder Common of NVIDIA's samples that most of them use: errors, the choice of a device, arguments of
// the form -name=value, a stopwatch. A folder that is passed with -I comes first.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <simt/cuda_api.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

namespace simt {
inline void stop_at_error(cudaError_t error, const char* what, const char* file, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\"\n", file, line, (int)error, cudaGetErrorName(error), what);
  exit(EXIT_FAILURE);
}
// Returns what follows `name` in an argument -name, --name or -name=value, or null if there is none.
inline const char* argument(int argc, const char** argv, const char* name) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    const char* at = argv[i] + strspn(argv[i], "-");
    if (at != argv[i] && strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == '=')) return at + length;
  }
  return nullptr;
}
}  // namespace simt

#define checkCudaErrors(call) ::simt::stop_at_error((call), #call, __FILE__, __LINE__)
#define getLastCudaError(message) ::simt::stop_at_error(cudaGetLastError(), message, __FILE__, __LINE__)

inline bool checkCmdLineFlag(int argc, const char** argv, const char* name) { return simt::argument(argc, argv, name); }
inline int getCmdLineArgumentInt(int argc, const char** argv, const char* name) {
  const char* value = simt::argument(argc, argv, name);
  return value && *value == '=' ? atoi(value + 1) : 0;
}
inline float getCmdLineArgumentFloat(int argc, const char** argv, const char* name) {
  const char* value = simt::argument(argc, argv, name);
  return value && *value == '=' ? (float)atof(value + 1) : 0;
}
inline bool getCmdLineArgumentString(int argc, const char** argv, const char* name, char** into) {
  const char* value = simt::argument(argc, argv, name);
  *into = value && *value == '=' ? const_cast<char*>(value + 1) : nullptr;
  return *into;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }
inline int findCudaDevice(int, const char**) {
  printf("GPU Device 0: \"%s\" with compute capability %d.%d\n\n", simt::device().name, simt::device().major,
         simt::device().minor);
  return 0;
}
inline bool checkCudaCapabilities(int major, int minor) {
  return simt::device().major > major || (simt::device().major == major && simt::device().minor >= minor);
}

// Milliseconds.
struct StopWatchInterface {
  double started = 0, total = 0;
  int sessions = 0;
  static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
  }
};
inline bool sdkCreateTimer(StopWatchInterface** watch) { return *watch = new StopWatchInterface; }
inline bool sdkDeleteTimer(StopWatchInterface** watch) {
  delete *watch;
  *watch = nullptr;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface** watch) { return (*watch)->started = StopWatchInterface::now(); }
inline bool sdkStopTimer(StopWatchInterface** watch) {
  (*watch)->total += StopWatchInterface::now() - (*watch)->started;
  return ++(*watch)->sessions;
}
inline bool sdkResetTimer(StopWatchInterface** watch) {
  **watch = {StopWatchInterface::now()};
  return true;
}
inline float sdkGetTimerValue(StopWatchInterface** watch) { return (float)(*watch)->total; }
inline float sdkGetAverageTimerValue(StopWatchInterface** watch) {
  return (*watch)->sessions ? (float)((*watch)->total / (*watch)->sessions) : 0;
}
