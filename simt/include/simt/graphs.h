// CUDA graphs: nodes in the order in which they may run, filled node by node or by capturing streams. A launch runs the
// nodes one after another.
#pragma once

#include <string.h>

#include <simt/cuda_arrays.h>

typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;

enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
  cudaGraphNodeTypeHost = 3,
  cudaGraphNodeTypeGraph = 4,
  cudaGraphNodeTypeEmpty = 5
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess = 0,
  cudaGraphExecUpdateErrorTopologyChanged = 2,
  cudaGraphExecUpdateErrorNodeTypeChanged = 3
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};
struct cudaMemsetParams {
  void* dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void* userData;
};

struct CUgraphNode_st {
  cudaGraphNodeType type;
  simt::Work* work;  // shared by the graph, its clones and what was instantiated from it; never freed
  cudaGraphNode_t* before;  // the nodes that must run first
  size_t before_count;
  cudaGraphNode_t original;  // the node of the graph from which this one was instantiated
  CUgraph_st* child;
};
struct CUgraph_st {
  cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
};
struct CUgraphExec_st {
  CUgraph_st graph;  // in an order in which the nodes may run
};

namespace simt {
// A kernel whose address a program stores as a void*, with what a launch needs to know about it. The frontend wraps such
// casts in erase().
struct ErasedKernel {
  const void* function;
  Site site;
  Work* (*make)(const ErasedKernel&, Config, void**);
  cudaError_t (*launch)(const ErasedKernel&, const char* file, int line, const Config&, bool cooperative, void**);
  ErasedKernel* next;
};
inline ErasedKernel* erased_kernels = nullptr;
inline const ErasedKernel* find_erased(const void* function) {
  const ErasedKernel* at = erased_kernels;
  while (at && at->function != function) at = at->next;
  return at;
}
template <class... P, std::size_t... I>
Work* defer_pointed(const ErasedKernel& kernel, Config config, void** arguments, void (*)(P...),
                    std::index_sequence<I...>) {
  std::tuple<Kept<P>...> values(pointed<Kept<P>>(arguments[I])...);
  auto call = call_of((void (*)(P...))kernel.function);
  return defer_launch(kernel.site, kernel.function, call, config, false, values);
}
template <class... P>
void* erase(void (*kernel)(P...), const char* name, const char* parameters, int defined, int max_threads,
            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const auto make = [](const ErasedKernel& erased, Config config, void** arguments) {
    return defer_pointed(erased, config, arguments, (void (*)(P...)) nullptr, std::index_sequence_for<P...>());
  };
  const auto launch = [](const ErasedKernel& erased, const char* file, int line, const Config& config, bool cooperative,
                         void** arguments) {
    const Site& site = erased.site;
    return launch_pointed(NamedKernel<P...>{(void (*)(P...))erased.function, site.kernel, site.parameters, site.defined,
                                            site.max_threads},
                          file, line, config, cooperative, arguments, std::index_sequence_for<P...>());
  };
  if (!find_erased((const void*)kernel))
    erased_kernels = new ErasedKernel{
        (const void*)kernel, {name, file, line, parameters, defined, max_threads}, make, launch, erased_kernels};
  return (void*)kernel;
}
inline cudaError_t launch_erased(const void* function, const char* file, int line, const Config& config,
                                 bool cooperative, void** arguments) {
  if (const ErasedKernel* kernel = find_erased(function))
    return kernel->launch(*kernel, file, line, config, cooperative, arguments);
  return failed(cudaErrorInvalidDeviceFunction,
                "a launch got an address that is not `(void*)kernel` with the name of a kernel");
}

template <class T>
void append(T*& items, size_t& count, T item) {
  T* grown = new T[count + 1];
  for (size_t i = 0; i < count; ++i) grown[i] = items[i];
  grown[count++] = item;
  delete[] items;
  items = grown;
}
inline cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Work* work,
                                const cudaGraphNode_t* before = nullptr, size_t count = 0) {
  auto* node = new CUgraphNode_st{type, work, nullptr, 0, nullptr, nullptr};
  for (size_t i = 0; i < count; ++i) append(node->before, node->before_count, before[i]);
  append(graph->nodes, graph->count, node);
  return node;
}
inline void free_nodes(CUgraph_st& graph) {
  for (size_t i = 0; i < graph.count; ++i) {
    delete[] graph.nodes[i]->before;
    delete graph.nodes[i];
  }
  delete[] graph.nodes;
  graph.nodes = nullptr, graph.count = 0;
}
// Adds copies of a graph's nodes, each after those that must run first. Returns false if they wait for one another.
inline bool copy_in_order(const CUgraph_st& from, CUgraph_st& to) {
  bool* done = new bool[from.count + 1]();
  auto is_done = [&](cudaGraphNode_t node) {
    for (size_t i = 0; i < from.count; ++i)
      if (from.nodes[i] == node) return done[i];
    return true;
  };
  size_t left = from.count;
  for (bool progress = true; left && progress;) {
    progress = false;
    for (size_t i = 0; i < from.count; ++i) {
      const CUgraphNode_st& node = *from.nodes[i];
      bool ready = !done[i];
      for (size_t b = 0; b < node.before_count; ++b) ready = ready && is_done(node.before[b]);
      if (!ready) continue;
      const cudaGraphNode_t copy = add_node(&to, node.type, node.work);
      copy->original = from.nodes[i], copy->child = node.child;
      done[i] = progress = true;
      --left;
    }
  }
  delete[] done;
  return left == 0;
}
inline void run_nodes(const CUgraph_st& graph) {
  for (size_t i = 0; i < graph.count; ++i) {
    if (graph.nodes[i]->work) graph.nodes[i]->work->run();
    if (graph.nodes[i]->child) run_nodes(*graph.nodes[i]->child);
  }
}
// What a kernel node runs: a kernel whose address is known to take these parameters.
inline Work* make_kernel_work(const cudaKernelNodeParams& p) {
  const ErasedKernel* kernel = find_erased((const void*)p.func);
  return kernel && p.kernelParams
             ? kernel->make(*kernel, {p.gridDim, p.blockDim, p.sharedMemBytes, nullptr}, p.kernelParams)
             : nullptr;
}
inline cudaError_t unknown_kernel() {
  return failed(cudaErrorInvalidDeviceFunction,
                "a kernel node needs `func = (void*)kernel` with the kernel's own name, and kernelParams");
}
inline void fill(const cudaMemsetParams& p) {
  for (size_t y = 0; y < (p.height ? p.height : 1); ++y)
    for (size_t x = 0; x < p.width; ++x) {
      char* at = (char*)p.dst + y * p.pitch + x * p.elementSize;
      move_bytes(at, &p.value, p.elementSize);
    }
}
}  // namespace simt

// ---- launches of kernels whose addresses are in variables ----

#define SIMT_LAUNCH_ERASED(function, cooperative)                                                             \
  inline cudaError_t function(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, \
                              cudaStream_t stream = nullptr, const char* file = __builtin_FILE(),             \
                              int line = __builtin_LINE()) {                                                  \
    return simt::launch_erased(kernel, file, line, {grid, block, shared, stream}, cooperative, arguments);    \
  }
SIMT_LAUNCH_ERASED(cudaLaunchKernel, false)
SIMT_LAUNCH_ERASED(cudaLaunchCooperativeKernel, true)
#undef SIMT_LAUNCH_ERASED
inline cudaError_t cudaLaunchKernelExC(const simt::ConfigAt& at, const void* kernel, void** arguments) {
  if (!at.given) return simt::failed(cudaErrorInvalidValue, "cudaLaunchKernelExC got a null pointer");
  return simt::launch_erased(kernel, at.file, at.line, at.config(), at.is_cooperative(), arguments);
}

// ---- building a graph ----

inline cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return simt::failed(cudaErrorInvalidValue, "cudaGraphDestroy got no graph");
  simt::free_nodes(*graph);
  delete graph;
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                          size_t count, const cudaKernelNodeParams* parameters) {
  simt::Work* work = simt::make_kernel_work(*parameters);
  if (!work) return simt::unknown_kernel();
  *node = simt::add_node(graph, cudaGraphNodeTypeKernel, work, before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                            size_t count, void* target, const void* source, size_t bytes,
                                            cudaMemcpyKind kind) {
  simt::Work* work = simt::defer([=] { cudaMemcpy(target, source, bytes, kind); });
  *node = simt::add_node(graph, cudaGraphNodeTypeMemcpy, work, before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                          size_t count, const cudaMemcpy3DParms* parameters) {
  simt::Work* work = simt::defer([p = *parameters] { cudaMemcpy3D(&p); });
  *node = simt::add_node(graph, cudaGraphNodeTypeMemcpy, work, before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                          size_t count, const cudaMemsetParams* parameters) {
  if (parameters->elementSize != 1 && parameters->elementSize != 2 && parameters->elementSize != 4)
    return simt::failed(cudaErrorInvalidValue, "the elementSize of a memset node is 1, 2 or 4");
  *node =
      simt::add_node(graph, cudaGraphNodeTypeMemset, simt::defer([p = *parameters] { simt::fill(p); }), before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                        size_t count, const cudaHostNodeParams* parameters) {
  simt::Work* work = simt::defer([p = *parameters] { p.fn(p.userData); });
  *node = simt::add_node(graph, cudaGraphNodeTypeHost, work, before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                         size_t count) {
  *node = simt::add_node(graph, cudaGraphNodeTypeEmpty, nullptr, before, count);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                              size_t count, cudaGraph_t child) {
  *node = simt::add_node(graph, cudaGraphNodeTypeGraph, nullptr, before, count);
  (*node)->child = new CUgraph_st;
  if (simt::copy_in_order(*child, *(*node)->child)) return cudaSuccess;
  return simt::failed(cudaErrorInvalidValue, "the nodes of the child graph wait for one another");
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                            size_t count) {
  for (size_t i = 0; i < count; ++i) simt::append(to[i]->before, to[i]->before_count, from[i]);
  return cudaSuccess;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes)
    for (size_t i = 0; i < *count && i < graph->count; ++i) nodes[i] = graph->nodes[i];
  if (!nodes || *count > graph->count) *count = graph->count;
  return cudaSuccess;
}
inline cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return cudaSuccess;
}

// ---- launching it ----

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long = 0) {
  if (!exec || !graph) return simt::failed(cudaErrorInvalidValue, "cudaGraphInstantiate got no graph");
  *exec = new CUgraphExec_st;
  if (simt::copy_in_order(*graph, (*exec)->graph)) return cudaSuccess;
  return simt::failed(cudaErrorInvalidValue, "the nodes of the graph wait for one another");
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(exec, graph);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  simt::free_nodes(exec->graph);
  delete exec;
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const int error = simt::sticky_error()) return (cudaError_t)error;
  if (!exec) return simt::failed(cudaErrorInvalidValue, "cudaGraphLaunch got no graph");
  if (simt::capture_of(stream))
    return simt::failed(cudaErrorStreamCaptureUnsupported, "simt cannot capture the launch of a graph");
  simt::run_nodes(exec->graph);
  return (cudaError_t)simt::sticky_error();
}
inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                    const cudaKernelNodeParams* parameters) {
  simt::Work* work = simt::make_kernel_work(*parameters);
  if (!work) return simt::unknown_kernel();
  for (size_t i = 0; i < exec->graph.count; ++i)
    if (exec->graph.nodes[i]->original == node) exec->graph.nodes[i]->work = work;
  return cudaSuccess;
}
inline cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  simt::Work* work = simt::make_kernel_work(*parameters);
  if (!work) return simt::unknown_kernel();
  node->work = work;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  CUgraph_st made;
  simt::copy_in_order(*graph, made);
  cudaGraphExecUpdateResult result = cudaGraphExecUpdateSuccess;
  if (made.count != exec->graph.count) result = cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < made.count && !result; ++i)
    if (made.nodes[i]->type != exec->graph.nodes[i]->type) result = cudaGraphExecUpdateErrorNodeTypeChanged;
  *info = {result, nullptr, nullptr};
  for (size_t i = 0; i < made.count && !result; ++i) {
    exec->graph.nodes[i]->work = made.nodes[i]->work;
    exec->graph.nodes[i]->child = made.nodes[i]->child;
  }
  simt::free_nodes(made);
  if (!result) return cudaSuccess;
  return simt::failed(cudaErrorGraphExecUpdateFailure, "the graph differs from the one that was instantiated");
}

// ---- capturing streams ----

namespace simt {
// A capture in progress. Its streams execute nothing: what they get becomes nodes, in the order of the calls.
struct Capture : CaptureBase {
  CUgraph_st* graph = new CUgraph_st;
  cudaStream_t origin = nullptr;
  void add(int type, Work* work) override { add_node(graph, (cudaGraphNodeType)type, work); }
};
}  // namespace simt

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!simt::is_own_stream(stream))
    return simt::failed(cudaErrorStreamCaptureUnsupported, "the default stream cannot be captured: create a stream");
  if (stream->capture) return simt::failed(cudaErrorIllegalState, "the stream is being captured already");
  auto* capture = new simt::Capture;
  capture->origin = stream;
  stream->capture = capture;
  ++simt::captures;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  auto* capture = static_cast<simt::Capture*>(simt::capture_of(stream));
  if (!capture) return simt::failed(cudaErrorIllegalState, "the stream is not being captured");
  if (capture->origin != stream)
    return simt::failed(cudaErrorStreamCaptureUnmatched, "the capture began in another stream");
  --simt::captures;
  capture->ended = true;  // streams that joined it see this
  stream->capture = nullptr;
  if (capture->invalid)
    return simt::failed(cudaErrorStreamCaptureInvalidated, "the capture failed: a call in it cannot be captured");
  *graph = capture->graph;
  return cudaSuccess;
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const simt::CaptureBase* capture = simt::capture_of(stream);
  *status = !capture           ? cudaStreamCaptureStatusNone
            : capture->invalid ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
