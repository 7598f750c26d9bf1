// title: pointer chasing through global, shared and constant memory with cycle counters read in several ways
// features: clocks, inline_ptx, colliding_macros, spaced_launches, shared_word_order, constant_memory, macros

#define N 509      // a prime, so that every stride visits all
#define WARP_SIZE 32
#define MIN(a,b) (((a)<(b))?(a):(b))
#define MAX(a,b) (((a)>(b))?(a):(b))
#define CHECK(x) do { cudaError_t e = x; if (e != cudaSuccess) { puts(cudaGetErrorString(e)); return 2; } } while (0)
#define u32 unsigned int
#define u64 unsigned long long
#define out result_
#define value (n + 0)
#define data chain

#include <cstdio>
#include <cstdlib>

__constant__ u32 c_chain[N];

static __device__ __inline__ u64 read_globaltimer()
{
	u64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

static __device__ __inline__ u32 read_clock_register()
{
	u32 t;
	asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory");
	return t;
}

static __device__ __inline__ u64 read_clock64_register()
{
	u64 t;
	asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory");
	return t;
}

struct Report { u64 hash; u32 last, hops, late; };

// one thread follows the chain; late counts how often a clock ran backwards
__global__ void chase_global(const u32 *data, int n, Report *out)
{
	u32 at = 0, late = 0;
	u64 hash = 0, before = read_globaltimer();
	for (int i = 0; i < value; i++) {
		long long start = clock64();
		at = data[at];
		hash = hash * 31 + at;
		long long stop = clock64();
		if (stop < start) late++;
	}
	u64 after = read_globaltimer();
	if (after < before) late++;
	out->hash = hash; out->last = at; out->hops = n; out->late = late;
}

__global__ void chase_shared(const u32 *data, int n, Report *out)
{
	u32 __shared__ s_chain[N];
	long long __shared__ s_stamps[WARP_SIZE];
	for (int i = threadIdx.x; i < N; i += WARP_SIZE) s_chain[i] = data[i];
	s_stamps[threadIdx.x] = clock64();
	__syncthreads();
	if (threadIdx.x != 0) return;
	u32 at = 0, late = 0;
	u64 hash = 0, start = read_clock64_register();
	#pragma unroll 4
	for (int i = 0; i < value; i++) { at = s_chain[at]; hash = hash * 31 + at; }
	u64 stop = read_clock64_register();
	if (stop < start) ++late;
	long long first = s_stamps[0], last = s_stamps[0];
	for (int i = 1; i < WARP_SIZE; i++) {
		first = MIN(first, s_stamps[i]);
		last = MAX(last, s_stamps[i]);
	}
	if (last < first || last > (long long)stop) ++late;
	out->hash = hash; out->last = at; out->hops = n; out->late = late;
}

__global__ void chase_constant(int n, Report *out)
{
	u32 at = 0, late = 0;
	u64 hash = 0;
	u32 start = read_clock_register();
	clock_t start_too = clock();
	for (int i = 0; i < value; i++) { at = c_chain[at]; hash = hash * 31 + at; }
	u32 cycles = read_clock_register() - start, cycles_too = (u32)(clock() - start_too);
	if ((int)cycles < 0 || (int)cycles_too < 0) late = 1;
	out->hash = hash; out->last = at; out->hops = n; out->late = late;
}

#undef value

int main()
{
	u32 h_chain[N], *d_chain;
	Report *d_report, got[3];
	int wrong = 0;
	for (int stride = 1; stride <= 400; stride = stride * 3 + 4) {
		for (u32 i = 0; i < N; i++) h_chain[i] = (i + stride) % N;
		u64 hash = 0;
		u32 at = 0;
		for (int i = 0; i < N - 1; i++) { at = h_chain[at]; hash = hash * 31 + at; }

		CHECK(cudaMalloc(&d_chain, sizeof h_chain));
		CHECK(cudaMalloc(&d_report, sizeof got));
		CHECK(cudaMemcpy(d_chain, h_chain, sizeof h_chain, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpyToSymbol(c_chain, h_chain, sizeof h_chain));
		chase_global << <1, 1>> >(d_chain, N - 1, d_report);
		chase_shared<< <1, WARP_SIZE, 0>> >(d_chain, N - 1, d_report + 1);
		chase_constant <<<dim3(1), dim3(1), 0, 0 >> > (N - 1, d_report + 2);
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpy(got, d_report, sizeof got, cudaMemcpyDeviceToHost));
		for (int k = 0; k < 3; k++)
			if (got[k].hash != hash || got[k].last != at || got[k].hops != N - 1 || got[k].late) {
				printf("memory %d, stride %d: wrong\n", k, stride);
				wrong++;
			}
		printf("stride %3d ends at %3u\n", stride, got[0].last);
		CHECK(cudaFree(d_chain));
		CHECK(cudaFree(d_report));
	}
	printf(wrong ? "FAILED\n" : "PASSED\n");
	return wrong != 0;
}
