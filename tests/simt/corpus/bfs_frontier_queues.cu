// title: breadth-first search: push, pull and edge-centric levels, frontiers, and privatized frontiers in shared memory
// features: graphs_bfs, atomics, shared_memory, device_structs

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#define LOCAL_FRONTIER_CAPACITY 64
#define UNVISITED UINT_MAX

#define ERR(x)                                                                            \
  do {                                                                                    \
    if ((x) != cudaSuccess) {                                                             \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

struct CSRGraph {
  unsigned int numVertices, numEdges;
  unsigned int *srcPtrs, *dst;
};
struct COOGraph {
  unsigned int numEdges;
  unsigned int *src, *dst;
};

// Other threads may set the level at the same time: it is read anew, and as a whole.
__device__ inline unsigned int current(const volatile unsigned int* level) { return *level; }

__global__ void bfs_push(CSRGraph g, unsigned int* level, unsigned int* newVertexVisited, unsigned int currLevel) {
  unsigned int vertex = blockIdx.x * blockDim.x + threadIdx.x;
  if (vertex < g.numVertices && current(&level[vertex]) == currLevel - 1)
    for (unsigned int edge = g.srcPtrs[vertex]; edge < g.srcPtrs[vertex + 1]; ++edge)
      if (atomicCAS(&level[g.dst[edge]], UNVISITED, currLevel) == UNVISITED) atomicExch(newVertexVisited, 1);
}

// The graph is undirected, so rows are columns, too.
__global__ void bfs_pull(CSRGraph g, const unsigned int* level, unsigned int* next, unsigned int* newVertexVisited,
                         unsigned int currLevel) {
  unsigned int vertex = blockIdx.x * blockDim.x + threadIdx.x;
  if (vertex >= g.numVertices) return;
  unsigned int mine = level[vertex];
  if (mine == UNVISITED)
    for (unsigned int edge = g.srcPtrs[vertex]; edge < g.srcPtrs[vertex + 1]; ++edge)
      if (level[g.dst[edge]] == currLevel - 1) {
        mine = currLevel;
        atomicExch(newVertexVisited, 1);
        break;
      }
  next[vertex] = mine;
}

__global__ void bfs_edges(COOGraph g, unsigned int* level, unsigned int* newVertexVisited, unsigned int currLevel) {
  unsigned int edge = blockIdx.x * blockDim.x + threadIdx.x;
  if (edge < g.numEdges) {
    if (current(&level[g.src[edge]]) == currLevel - 1 &&
        atomicCAS(&level[g.dst[edge]], UNVISITED, currLevel) == UNVISITED)
      atomicExch(newVertexVisited, 1);
  }
}

__global__ void bfs_frontier(CSRGraph g, unsigned int* level, const unsigned int* prevFrontier,
                             unsigned int* currFrontier, unsigned int numPrev, unsigned int* numCurr,
                             unsigned int currLevel) {
  __shared__ unsigned int currFrontier_s[LOCAL_FRONTIER_CAPACITY];
  __shared__ unsigned int numCurrFrontier_s, currFrontierStartIdx;
  if (threadIdx.x == 0) numCurrFrontier_s = 0;
  __syncthreads();
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < numPrev) {
    unsigned int vertex = prevFrontier[i];
    for (unsigned int edge = g.srcPtrs[vertex]; edge < g.srcPtrs[vertex + 1]; ++edge) {
      unsigned int neighbor = g.dst[edge];
      if (atomicCAS(&level[neighbor], UNVISITED, currLevel) == UNVISITED) {
        const unsigned int idx = atomicAdd(&numCurrFrontier_s, 1);
        if (idx < LOCAL_FRONTIER_CAPACITY) {
          currFrontier_s[idx] = neighbor;
        } else {  // the private queue is full
          currFrontier[atomicAdd(numCurr, 1)] = neighbor;
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    numCurrFrontier_s = min(numCurrFrontier_s, LOCAL_FRONTIER_CAPACITY);
    currFrontierStartIdx = atomicAdd(numCurr, numCurrFrontier_s);
  }
  __syncthreads();
  for (unsigned int s = threadIdx.x; s < numCurrFrontier_s; s += blockDim.x)
    currFrontier[currFrontierStartIdx + s] = currFrontier_s[s];
}

template <typename T>
static T* upload(const std::vector<T>& v) {
  T* p;
  ERR(cudaMalloc((void**)&p, v.size() * sizeof(T)));
  ERR(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const unsigned int n = argc > 1 ? atoi(argv[1]) : 1500, root = 3;
  std::set<std::pair<unsigned, unsigned>> edges;
  for (unsigned int v = 0; v < n - 20; v++) {  // the last twenty have no edges
    unsigned int to[] = {(v * 5 + 1) % (n - 20), (v + 37) % (n - 20), v % 100 == 0 ? (v / 3 + 11) % (n - 20) : v};
    for (unsigned int w : to)
      if (w != v) edges.insert({v, w}), edges.insert({w, v});
  }
  std::vector<unsigned int> ptrs(n + 1, 0), src, dst;
  for (auto& e : edges) {
    src.push_back(e.first);
    dst.push_back(e.second);
    ptrs[e.first + 1]++;
  }
  for (unsigned int v = 0; v < n; v++) ptrs[v + 1] += ptrs[v];

  std::vector<unsigned int> expected(n, UNVISITED), start(n, UNVISITED), got(n);
  std::queue<unsigned int> queue;
  queue.push(root);
  expected[root] = start[root] = 0;
  for (; !queue.empty(); queue.pop())
    for (unsigned int e = ptrs[queue.front()]; e < ptrs[queue.front() + 1]; e++)
      if (expected[dst[e]] == UNVISITED) {
        expected[dst[e]] = expected[queue.front()] + 1;
        queue.push(dst[e]);
      }

  CSRGraph csr = {n, (unsigned)dst.size(), upload(ptrs), upload(dst)};
  COOGraph coo = {csr.numEdges, upload(src), csr.dst};
  unsigned int *level = upload(start), *other = upload(start), *flag, *frontier[2];
  ERR(cudaMalloc(&flag, sizeof(unsigned int)));
  for (auto& f : frontier) ERR(cudaMalloc(&f, n * sizeof(unsigned int)));

  const char* names[] = {"push", "pull", "edges", "frontier"};
  bool ok = true;
  for (int version = 0; version < 4; version++) {
    ERR(cudaMemcpy(level, start.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice));
    ERR(cudaMemcpy(frontier[0], &root, sizeof(root), cudaMemcpyHostToDevice));
    unsigned int found = 1, currLevel = 1;
    for (; found; currLevel++) {
      unsigned int previous = found, blocks = (n + 127) / 128;
      ERR(cudaMemset(flag, 0, sizeof(unsigned int)));
      if (version == 0) bfs_push<<<blocks, 128>>>(csr, level, flag, currLevel);
      if (version == 1) bfs_pull<<<blocks, 128>>>(csr, level, other, flag, currLevel), std::swap(level, other);
      if (version == 2) bfs_edges<<<(coo.numEdges + 127) / 128, 128>>>(coo, level, flag, currLevel);
      if (version == 3) {
        bfs_frontier<<<(previous + 127) / 128, 128>>>(csr, level, frontier[0], frontier[1], previous, flag, currLevel);
        std::swap(frontier[0], frontier[1]);
      }
      ERR(cudaGetLastError());
      ERR(cudaMemcpy(&found, flag, sizeof(found), cudaMemcpyDeviceToHost));
    }
    ERR(cudaMemcpy(got.data(), level, n * sizeof(unsigned int), cudaMemcpyDeviceToHost));
    unsigned int reached = 0;
    for (unsigned int l : got) reached += l != UNVISITED;
    printf("%-9s %u levels, %u of %u vertices reached%s\n", names[version], currLevel - 2, reached, n,
           got == expected ? "" : ", WRONG");
    ok = ok && got == expected;
  }
  for (unsigned int* p : {csr.srcPtrs, csr.dst, coo.src, level, other, flag, frontier[0], frontier[1]})
    ERR(cudaFree(p));
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
