// CUDA's streams and events. Everything is done when a call returns, so they only keep time; a stream that is being
// captured does nothing and records what it gets.
#pragma once

#include <time.h>

#include <simt/cuda_device.h>
#include <simt/cuda_errors.h>
#include <simt/runtime.h>

struct CUstream_st {
  unsigned flags;
  int priority;
  simt::CaptureBase* capture;  // what it gets becomes nodes of a graph; null, or one that may have ended
};
struct CUevent_st {
  bool timed, recorded;
  timespec time;
  simt::CaptureBase* capture;  // of the stream in which it was recorded
};
typedef struct CUevent_st* cudaEvent_t;
#define CUDART_CB
typedef void (*cudaHostFn_t)(void*);
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2,
                          cudaEventInterprocess = 4;
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventWaitDefault = 0;
inline const cudaStream_t cudaStreamLegacy = (cudaStream_t)1, cudaStreamPerThread = (cudaStream_t)2;

namespace simt {
inline constexpr int highest_priority = -5;  // of the devices of compute capability 7.5 to 9.0
}

inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags > cudaStreamNonBlocking)
    return simt::failed(cudaErrorInvalidValue, "a stream was created with flags that do not exist");
  const int high = simt::highest_priority, within = priority > 0 ? 0 : priority < high ? high : priority;
  *stream = new CUstream_st{flags, within, nullptr};
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
namespace simt {
inline bool is_own_stream(cudaStream_t stream) {
  return stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
}
inline CaptureBase* capture_of(cudaStream_t stream) {
  if (!captures || !is_own_stream(stream) || !stream->capture) return nullptr;
  return stream->capture->ended ? nullptr : stream->capture;
}
enum CapturedNode { kernel_node = 0, copy_node = 1, memset_node = 2, host_node = 3 };  // cudaGraphNodeType's numbers
// Adds the work to the graph if the stream is being captured, and returns whether it is.
template <class F>
bool captured(cudaStream_t stream, CapturedNode type, F work) {
  CaptureBase* capture = capture_of(stream);
  if (capture) capture->add(type, defer(work));
  return capture;
}
// Fails and invalidates the capture if the stream is being captured.
inline cudaError_t refuse_captured(cudaStream_t stream) {
  CaptureBase* capture = capture_of(stream);
  if (!capture) return cudaSuccess;
  capture->invalid = true;
  return failed(cudaErrorStreamCaptureUnsupported, "this call is not possible while its stream is being captured");
}
}  // namespace simt
inline cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = simt::is_own_stream(stream) ? stream->priority : 0;
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = simt::is_own_stream(stream) ? stream->flags : cudaStreamDefault;
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetDevice(cudaStream_t, int* ordinal) {
  *ordinal = 0;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!simt::is_own_stream(stream))
    return simt::failed(cudaErrorInvalidResourceHandle, "the default stream can't be destroyed");
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t error = simt::refuse_captured(stream);
  return error ? error : cudaDeviceSynchronize();
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return simt::refuse_captured(stream); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
  if (!event) return simt::failed(cudaErrorInvalidResourceHandle, "cudaStreamWaitEvent got no event");
  if (simt::captures && event->capture && !event->capture->ended && simt::is_own_stream(stream))
    stream->capture = event->capture;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = simt::highest_priority;
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!simt::captured(stream, simt::host_node, [=] { function(data); })) function(data);
  return cudaSuccess;
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned) {
  if (const cudaError_t error = simt::refuse_captured(stream)) return error;
  function(stream, cudaSuccess, data);
  return cudaSuccess;
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (flags > (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
    return simt::failed(cudaErrorInvalidValue, "an event was created with flags that do not exist");
  *event = new CUevent_st{};
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags = cudaEventDefault) {
  return cudaEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event) return simt::failed(cudaErrorInvalidResourceHandle, "cudaEventDestroy got no event");
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  if (!event) return simt::failed(cudaErrorInvalidResourceHandle, "cudaEventRecord got no event");
  event->capture = simt::capture_of(stream);
  ::clock_gettime(CLOCK_MONOTONIC, &event->time);
  event->recorded = true;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0) {
  return cudaEventRecord(event, stream);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!milliseconds) return simt::failed(cudaErrorInvalidValue, "cudaEventElapsedTime got no place for the time");
  if (!start || !end || !start->timed || !end->timed)
    return simt::failed(cudaErrorInvalidResourceHandle,
                        "cudaEventElapsedTime needs two events that were created without cudaEventDisableTiming");
  if (!start->recorded || !end->recorded)
    return simt::failed(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime needs two events that were recorded");
  *milliseconds = (float)((double)(end->time.tv_sec - start->time.tv_sec) * 1e3 +
                          (double)(end->time.tv_nsec - start->time.tv_nsec) * 1e-6);
  return cudaSuccess;
}
