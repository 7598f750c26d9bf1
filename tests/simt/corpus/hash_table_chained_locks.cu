// title: hash table with chains and a lock per bucket, and one with open addressing and atomicCAS
// features: atomics, mutex, memory_fences, device_structs

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define SIZE 3000
#define ELEMENTS SIZE
#define HASH_ENTRIES 128
#define EMPTY 0xffffffffu

#define HANDLE(e)                                                                  \
  if (cudaError_t err_ = (e); err_ != cudaSuccess) {                               \
    fprintf(stderr, "%s (%s:%d)\n", cudaGetErrorString(err_), __FILE__, __LINE__); \
    exit(1);                                                                       \
  }

struct Entry {
  unsigned int key;
  int value;
  Entry* next;
};

struct Table {
  size_t count;
  Entry** entries;
  Entry* pool;
};

struct Lock {
  int mutex;
  __device__ void lock() {
    while (atomicCAS(&mutex, 0, 1) != 0) {}
    __threadfence();
  }
  __device__ void unlock() {
    __threadfence();
    atomicExch(&mutex, 0);
  }
};

__host__ __device__ size_t hash(unsigned int key, size_t count) { return key % count; }

// One lane of a warp after the other: two lanes of a warp would wait for each other on old GPUs.
__global__ void add_to_table(unsigned int* keys, int* values, Table table, Lock* lock) {
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  while (tid < ELEMENTS) {
    unsigned int key = keys[tid];
    size_t hashValue = hash(key, table.count);
    for (int i = 0; i < 32; i++) {
      if ((tid % 32) == i) {
        Entry* location = &(table.pool[tid]);
        location->key = key;
        location->value = values[tid];
        lock[hashValue].lock();
        location->next = table.entries[hashValue];
        table.entries[hashValue] = location;
        lock[hashValue].unlock();
      }
    }
    tid += stride;
  }
}

struct Slot {
  unsigned int key;
  unsigned int count;
};

// Counts how often each key occurs.
__global__ void insert_open(const unsigned int* keys, int n, Slot* slots, unsigned int mask) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  unsigned int key = keys[i], slot = (key * 2654435761u >> 7) & mask;
  while (true) {
    unsigned int previous = atomicCAS(&slots[slot].key, EMPTY, key);
    if (previous == EMPTY || previous == key) {
      atomicAdd(&slots[slot].count, 1);
      return;
    }
    slot = (slot + 1) & mask;
  }
}

__global__ void lookup_open(const unsigned int* keys, unsigned int* counts, int n, const Slot* slots,
                            unsigned int mask) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  unsigned int slot = (keys[i] * 2654435761u >> 7) & mask;
  while (slots[slot].key != keys[i] && slots[slot].key != EMPTY) slot = (slot + 1) & mask;
  counts[i] = slots[slot].key == keys[i] ? slots[slot].count : 0;
}

int main(void) {
  std::vector<unsigned int> keys(ELEMENTS);
  std::vector<int> values(ELEMENTS);
  for (int i = 0; i < ELEMENTS; i++) {
    keys[i] = (i * 7919u) % 2048;  // about half of them twice
    values[i] = i;
  }
  unsigned int* dev_keys;
  int* dev_values;
  Table table;
  Lock* dev_lock;
  HANDLE(cudaMalloc((void**)&dev_keys, ELEMENTS * sizeof(unsigned int)));
  HANDLE(cudaMalloc((void**)&dev_values, ELEMENTS * sizeof(int)));
  HANDLE(cudaMalloc((void**)&dev_lock, HASH_ENTRIES * sizeof(Lock)));
  HANDLE(cudaMemcpy(dev_keys, keys.data(), ELEMENTS * sizeof(unsigned int), cudaMemcpyHostToDevice));
  HANDLE(cudaMemcpy(dev_values, values.data(), ELEMENTS * sizeof(int), cudaMemcpyHostToDevice));
  HANDLE(cudaMemset(dev_lock, 0, HASH_ENTRIES * sizeof(Lock)));
  table.count = HASH_ENTRIES;
  HANDLE(cudaMalloc((void**)&table.entries, HASH_ENTRIES * sizeof(Entry*)));
  HANDLE(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry*)));
  HANDLE(cudaMalloc((void**)&table.pool, ELEMENTS * sizeof(Entry)));
  add_to_table<<<6, 64>>>(dev_keys, dev_values, table, dev_lock);
  HANDLE(cudaGetLastError());

  // The table's pointers are those of the device: the copy is walked by the distance from the pool's start.
  std::vector<Entry*> entries(HASH_ENTRIES);
  std::vector<Entry> pool(ELEMENTS);
  HANDLE(cudaMemcpy(entries.data(), table.entries, HASH_ENTRIES * sizeof(Entry*), cudaMemcpyDeviceToHost));
  HANDLE(cudaMemcpy(pool.data(), table.pool, ELEMENTS * sizeof(Entry), cudaMemcpyDeviceToHost));
  int count = 0, wrong = 0, longest = 0;
  std::vector<bool> seen(ELEMENTS, false);
  for (size_t bucket = 0; bucket < table.count; bucket++) {
    int length = 0;
    for (Entry* e = entries[bucket]; e != NULL;) {
      const Entry& here = pool[e - table.pool];
      if (hash(here.key, table.count) != bucket || keys[here.value] != here.key || seen[here.value]) wrong++;
      seen[here.value] = true;
      length++;
      e = here.next;
    }
    count += length;
    longest = length > longest ? length : longest;
  }
  printf("chains: %d elements, %d wrong, longest chain %d\n", count, wrong, longest);
  wrong += count != ELEMENTS;

  const unsigned int capacity = 4096;
  Slot* slots;
  unsigned int* dev_counts;
  HANDLE(cudaMalloc((void**)&slots, capacity * sizeof(Slot)));
  HANDLE(cudaMalloc((void**)&dev_counts, ELEMENTS * sizeof(unsigned int)));
  std::vector<Slot> empty(capacity, Slot{EMPTY, 0});
  HANDLE(cudaMemcpy(slots, empty.data(), capacity * sizeof(Slot), cudaMemcpyHostToDevice));
  insert_open<<<(ELEMENTS + 127) / 128, 128>>>(dev_keys, ELEMENTS, slots, capacity - 1);
  lookup_open<<<(ELEMENTS + 127) / 128, 128>>>(dev_keys, dev_counts, ELEMENTS, slots, capacity - 1);
  HANDLE(cudaGetLastError());
  std::vector<unsigned int> counts(ELEMENTS), expected(2048, 0);
  HANDLE(cudaMemcpy(counts.data(), dev_counts, ELEMENTS * sizeof(unsigned int), cudaMemcpyDeviceToHost));
  for (unsigned int key : keys) expected[key]++;
  int twice = 0;
  for (int i = 0; i < ELEMENTS; i++) {
    wrong += counts[i] != expected[keys[i]];
    twice += counts[i] == 2;
  }
  printf("open addressing: %d keys occur twice, %d wrong\n", twice, wrong);

  HANDLE(cudaFree(dev_keys));
  HANDLE(cudaFree(dev_values));
  HANDLE(cudaFree(dev_lock));
  HANDLE(cudaFree(table.entries));
  HANDLE(cudaFree(table.pool));
  HANDLE(cudaFree(slots));
  HANDLE(cudaFree(dev_counts));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
