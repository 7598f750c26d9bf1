// Declares counting: the events of a block's lanes become warp-level instructions, and these become counters.
#pragma once

#include <simt/recorder.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "count/flow.h"
#include "count/rules.h"
#include "count/touched_bytes.h"
#include "run/worker.h"

namespace simt {

// Which memory an address belongs to. ignored: the runtime's own, and the kernel's parameters.
enum class Space : std::uint8_t { global, shared, local, constant, ignored };
inline constexpr std::size_t spaces = 5, itself = spaces;     // itself: a block's or a meeting's own sums

// Sums over the warp-level instructions of one place in the code (and one space), each block's share times its weight.
struct Tally {
  double executions = 0, lanes = 0;
  double bytes = 0, used = 0, sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0, distinct = 0,
         deepest = 0;
  double diverged = 0;         // executions of a block after which the lanes diverged
  double joined = 0;           // sectors of stores beside which a thread stores again at once
  // How often lanes reconverged at this block, and how many.
  double arrivals = 0, arrived = 0;
  void add(const Tally& other);
};

// Totals whose sampling error is known, in this order.
enum Total : unsigned {
  warp_instructions,
  thread_instructions,
  flops,
  global_requests,
  global_sectors,
  shared_requests,
  shared_wavefronts,
  atomic_requests,
  atomic_lanes,
  barriers,
  exchanges,
  branches,
  diverged_branches,
  local_requests,
  constant_requests,
  block_unique_read,
  block_unique_written,
  totals
};

// A row of 32 addresses that a place in the code has met, relative to the first active lane's, and what it costs.
struct alignas(64) Pattern {
  std::uint64_t delta[32];
  std::uint32_t present = 0, lanes = 0;      // lanes that arrived, and those of them that access memory
  std::uint32_t offset, within;     // the low bits of the first lane's address that matter, and which they are
  std::uint64_t low, size;          // where the first lane's address must lie for the space to be the same
  std::uint64_t base;               // the first lane's address when this was worked out
  std::uint64_t times = 0;  // since it was last added up
  std::uint64_t joined = 0;  // stores among these whose first lane also makes its store before or after in that sector
  std::uint64_t marked;  // the first lane's address when its bytes were last marked as touched
  Space space;
  bool marks;
  Cost cost;
  unsigned spans;
  Span span[32];  // for that address
};

// A request to global or shared memory, kept to be drawn: of all requests of a place in the code the one with the most
// excess over the ideal, among these one with the most lanes, among these the first.
struct Example {
  std::uint64_t address[32];
  std::uint32_t lanes = 0;
  Space space = Space::ignored;
  Cost cost{};
  std::uint64_t base = 0, element = 0;  // of what they belong to: where it begins, and bytes of an element (0: unknown)
  std::string name;  // parameter, array or variable; empty where there is none
  std::uint64_t block = 0, order = 0;  // linear, and when it ran
  unsigned warp = 0;
  std::uint32_t excess() const {
    return space == Space::shared ? cost.wavefronts - cost.ideal_wavefronts
                                  : cost.sectors - std::min(cost.sectors, cost.ideal_sectors);
  }
  bool better(const Example& other) const;  // whether to show this one
};

// A place in the code: a call of a probe, or an operation that threads perform together.
struct SpotKind {
  Event event = Event::unknown;
  Together together = Together::none;
  bool branches = false;  // a block that several may follow
  std::uint8_t bytes = 0;
  int kind = 0;  // of an atomic operation, a simt::Atomic
  std::uint64_t offset = 0;  // in the module
  const char* what = nullptr;  // of an exchange
  int line = 0;  // where there is no offset
  double instructions = 0, flops = 0;  // of a block
};

struct Spot : SpotKind {
  bool entry = false;  // the first block of a function
  bool increments = false;  // an atomic addition of 1
  bool open = false;  // a block with unknown successors
  int function = -1;
  int block = -1;  // in the flow
  std::uint32_t lanes = 0;  // of a block or a meeting: who came here the last `times` times
  std::uint64_t times = 0;
  std::uint64_t diverged = 0, arrivals = 0, arrived = 0;  // since they were last added up
  struct Way {
    const Spot* spot = nullptr;
    int left_loop = -1;
  };
  Way followed[2];  // blocks that came after this one before, and the loops that lanes leave on the way
  static constexpr unsigned ways = 8;
  std::unique_ptr<Pattern> pattern[ways];  // the newest match first
  std::unique_ptr<Example> example;
  Tally tally[spaces + 1];
};

// The place where lanes will meet others: the start of a block (-1: the function's end) at a depth of calls.
struct Goal {
  int parent = -1;  // the join there
  int until = -1;
  int until_depth = 0;
};

// Lanes of a warp that run together, or that will run together when the others have arrived.
struct Path : Goal {
  static constexpr int deepest_call = 8;
  struct Frame {
    int function;
    Spot* block;
  };
  std::uint32_t lanes = 0;  // 0: this record is free
  std::uint32_t arrived = 0;  // of a join
  bool join = false;
  bool returned = false;  // of a join: lanes arrived only by leaving its function
  bool predicated = false;  // a short side of a branch: no lane jumps, so no lane arrives
  int depth = -1;  // of calls
  Frame frame[deepest_call];
  std::uint64_t stored = 0;  // the sector of the first lane's last store, and whether that was joined
  bool joined = false;

  void wait();  // becomes a join
  void resume();  // stops being a join
};

struct Counting;

// Sectors of one array that blocks read, and wrote, summed over blocks: of those counted, and estimated for the grid.
// requested, lanes: by loads, and by how many threads, estimated, each time. regular: by how many of these together with
// others whose bytes lie the same distance apart. atomics: requests of atomic operations, estimated. reach: from the
// first to the last that a block reads, estimated and summed like them.
struct ArraySectors {
  double counted[2] = {}, estimated[2] = {}, requested = 0, lanes = 0, regular = 0, atomics = 0, reach = 0;
};

// The counting of one worker.
class Counter final : public CountObserver {
 public:
  explicit Counter(Worker& worker) : worker_(worker) {}
  void begin(Job& job) override;
  void end() override;
  bool block_starts(std::uint64_t position, std::uint64_t to) override;
  void block_resumes() override;
  void block_parks(Block& block) override;
  void block_ends(Block& block) override;
  bool make_room(Block& block) override;

  std::uint64_t together(Together kind, const char* what, int line);  // its event
  void describe(const void* code, Event event, unsigned bytes, int kind);

 private:
  // The next step of a path: it diverges, waits for others, has returned from the function instead, or leaves a loop.
  enum class Step { on, part, arrive, come_back, leave };
  struct Region {
    std::uint64_t low, high;
    Space space;
    int array;  // of the job's, or -1
  };
  struct Warp {
    std::vector<Path> paths;
  };

  bool wants(std::uint64_t position, std::uint64_t to);
  void start();
  Spot& spot_of(std::uint64_t event) {
    Spot* const known = index_[event >> address_bits];
    return __builtin_expect(known != nullptr, 1) ? *known : new_spot(event >> address_bits);
  }
  Spot& new_spot(std::uint64_t where);
  const void* code_of(std::uint64_t where, SpotKind& kind) const;
  Space space_of(std::uint64_t address, std::uint64_t* low = nullptr, std::uint64_t* size = nullptr) const;
  void find_regions();

  void replay(Block& block, unsigned warp);
  bool run(Warp& warp, unsigned first, int index, std::uint32_t ended);
  Step step(Path& path, const std::uint64_t* row, unsigned leader);
  Step begin_block(Path& path, Spot& spot);
  Step enter(Path& path, Spot& spot, bool block);
  Step follow(Path& path, Spot& spot);
  void part(Warp& warp, int index, const std::uint64_t* row);
  void resume_as(Warp& warp, const Path& path, std::uint32_t lanes, const Goal& goal, bool predicated = false);
  Goal leave_loop(Warp& warp, int index, int loop, std::uint32_t lanes);
  void arrive(Warp& warp, int index, bool returned);
  void leave(Warp& warp, int index, std::uint32_t lanes);
  void settle(Warp& warp, int index);
  void force(Warp& warp, unsigned first);
  void scatter(Warp& warp);
  int new_path(Warp& warp);

  Pattern& learn(Spot& spot, const std::uint64_t* row, std::uint32_t lanes, unsigned leader);
  void cost_of(Pattern& pattern, const Spot& spot, const Request& request);
  void keep(Spot& spot, const Pattern& pattern, const std::uint64_t* address);
  void came(Spot& spot, std::uint32_t lanes);
  void mark(Pattern& pattern, std::uint64_t address, Event event);
  void flush(Spot& spot);
  void flush(Spot& spot, Pattern& pattern);
  void flush_all();
  std::size_t array_of(std::uint64_t address) const;
  void learn_edges();
  void note_touched();
  void consume(Block& block, bool all);
  void enlarge(unsigned thread);

  Worker& worker_;
  Job* job_ = nullptr;
  Counting* counting_ = nullptr;
  const Module* module_ = nullptr;
  std::shared_ptr<Flow> flow_;
  std::vector<Variable> constants_;
  std::vector<Region> regions_;
  const void* stacks_known_ = nullptr;
  std::size_t fibers_known_ = 0;
  mutable std::vector<bool> met_array_;  // which of the job's static shared arrays were accessed

  std::vector<Spot*> index_;  // by `where`
  std::deque<Spot> spots_;
  std::vector<Spot*> together_;
  std::map<std::pair<const char*, int>, std::uint32_t> together_of_;
  struct {
    const char* what;
    int line;
    std::uint64_t event;
  } met_[64] = {};  // by the low bits of the line
  struct Described {
    const void* code;
    Event event;
    std::uint8_t bytes;
    int kind;
  };
  std::unordered_map<std::uint64_t, Described> described_;  // by `where`
  std::uint64_t text_low_ = 0, text_high_ = 0;
  const ProbeFunction* probes_ = nullptr;

  std::vector<std::uint64_t> buffer_, scratch_;
  // Of each thread: the events that are not replayed yet, and the end of its buffer.
  std::vector<std::uint64_t*> at_, stop_, limit_;
  // A thread's own buffer, if its part of the common buffer was too small.
  std::vector<std::vector<std::uint64_t>> larger_;
  std::size_t larger_words_ = 0;
  std::vector<std::uint64_t*> ignored_, ignored_limit_;  // of a block that isn't counted
  std::vector<Warp> warps_;
  const Block* block_ = nullptr;  // whose events are replayed, and of which warp
  unsigned warp_ = 0;
  int left_ = -1;  // the loop that lanes are about to leave
  unsigned threads_ = 0;
  unsigned idle_ = 0;  // steps of the replay since a lane last got on
  unsigned rounds_ = 0;  // in which a thread with a full buffer was held back
  bool counted_ = false;  // the running block is in the sample

  // The sample. Blocks are taken in strata, one of each at random, which represents the stratum.
  std::uint64_t stratum_ = 0, stratum_end_ = 0, chosen_ = 0;
  double weight_ = 1, flushed_weight_ = 1;
  double now_[totals] = {};  // of the running block
  double before_[totals] = {};  // of the block before it in the sample
  bool has_before_ = false;
  double sum_[totals] = {}, variance_[totals] = {};
  std::vector<ArraySectors> arrays_;
  std::vector<TouchedBytes::Part> parts_;  // of the running block
  std::uint64_t sampled_ = 0, events_ = 0;

  TouchedBytes touched_;  // by the running block
  TouchedBytes all_touched_;  // by all of the worker's
};

// A counted launch and its counters.
struct Counting {
  std::vector<std::uint64_t> starts;  // of the arrays that are passed to the kernel, ascending
  std::uint64_t blocks = 0;
  std::uint64_t limit = 0;  // blocks to count; 0: as many as take about a second
  bool skip = false;  // blocks outside the sample don't run at all
  std::atomic<std::uint64_t> events{0}, counted{0};
  const Module* module = nullptr;
  std::shared_ptr<Flow> flow;
  std::uint64_t host_low = 0, host_high = 0;  // the launching thread's stack: the kernel's parameters lie there

  std::mutex mutex;  // of what follows, filled by one worker after the other
  struct Found {
    SpotKind spot;
    Tally tally[spaces + 1];
    std::unique_ptr<Example> example;
  };
  std::map<std::uint64_t, Found> code;  // by offset in the module
  std::map<std::pair<std::string, int>, Found> met;
  double sum[totals] = {}, variance[totals] = {};
  std::uint64_t sampled = 0;
  std::vector<ArraySectors> arrays;  // as many as `starts`, and before them one for what lies below
  TouchedBytes touched;
  std::vector<bool> met_array;
};

// A counted launch, as it is passed to Python.
struct CountedLaunch {
  std::string kernel, file, module;
  int line = 0, defined = 0;  // of the launch, and of the kernel
  dim3 grid, block;
  std::size_t dynamic_shared = 0, static_shared = 0;
  bool cooperative = false, complete = false;
  std::uint64_t sampled = 0;  // blocks
  bool unique_full = false;  // too many bytes were touched to tell all apart
  std::array<double, 6> unique{};  // bytes, sectors and granules that were touched, each read and written
  struct Array {
    ArraySectors blocks;
    TouchedBytes::Part touched;
  };
  std::vector<Array> arrays;  // those that were touched
  std::array<double, totals> sum{}, deviation{};
  std::vector<Counting::Found> places;
};
void begin_counts(std::uint64_t limit, bool skip);  // forgets what was counted before; limit, skip: as in Counting
std::vector<CountedLaunch> take_counts();  // oldest first

}  // namespace simt
