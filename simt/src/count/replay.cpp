// Replays the events of a warp's lanes as the warp would have run them: one instruction at a time for all lanes that
// are at the same place. Lanes that diverge at a branch reconverge where all paths from it meet.
#include <algorithm>
#include <cstring>

#include "count/counter.h"

namespace simt {
namespace {

typedef std::uint64_t Four __attribute__((vector_size(32)));

#if defined(__x86_64__)
#define SIMT_FAST __attribute__((target_clones("avx2", "default")))
#else
#define SIMT_FAST
#endif
#define SIMT_IN inline __attribute__((always_inline))

SIMT_IN Four load(const std::uint64_t* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
SIMT_IN void store(std::uint64_t* to, Four value) { std::memcpy(to, &value, sizeof value); }
SIMT_IN bool any(Four v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }

// Returns whether any lane's event, relative to the first lane's, differs from the expected one.
SIMT_IN bool differs(const std::uint64_t* row, std::uint64_t first, const std::uint64_t* delta) {
  const Four base = {first, first, first, first};
  Four wrong = {};
  for (unsigned i = 0; i < 32; i += 4) wrong |= (load(row + i) - base) ^ load(delta + i);
  return any(wrong);
}

SIMT_IN bool same(const std::uint64_t* row, std::uint64_t first) {
  const Four base = {first, first, first, first};
  Four wrong = {};
  for (unsigned i = 0; i < 32; i += 4) wrong |= load(row + i) ^ base;
  return !any(wrong);
}

// The next four events of every lane, as four rows of 32.
SIMT_IN void transpose(const std::uint64_t* const* from, std::size_t at, std::uint64_t (*rows)[32]) {
  for (unsigned lane = 0; lane < 32; lane += 4) {
    const Four a = load(from[lane] + at), b = load(from[lane + 1] + at), c = load(from[lane + 2] + at),
               d = load(from[lane + 3] + at);
    const Four even_ab = __builtin_shufflevector(a, b, 0, 4, 2, 6), odd_ab = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const Four even_cd = __builtin_shufflevector(c, d, 0, 4, 2, 6), odd_cd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    store(rows[0] + lane, __builtin_shufflevector(even_ab, even_cd, 0, 1, 4, 5));
    store(rows[1] + lane, __builtin_shufflevector(odd_ab, odd_cd, 0, 1, 4, 5));
    store(rows[2] + lane, __builtin_shufflevector(even_ab, even_cd, 2, 3, 6, 7));
    store(rows[3] + lane, __builtin_shufflevector(odd_ab, odd_cd, 2, 3, 6, 7));
  }
}

// The lanes that access memory, of those that give an address (ldmatrix of fewer than four matrices).
std::uint32_t asking(const Spot& spot, std::uint32_t lanes) {
  const auto kind = static_cast<Atomic>(spot.kind);
  const std::uint32_t first = spot.event != Event::read  ? lanes
                              : kind == Atomic::first_8  ? 0xff
                              : kind == Atomic::first_16 ? 0xffff
                                                         : lanes;
  return lanes & first ? lanes & first : lanes;
}

constexpr unsigned most_idle = 1000;  // steps of paths without progress of any lane

}  // namespace

// ---- one instruction ----

SIMT_IN void Counter::came(Spot& spot, std::uint32_t lanes) {
  if (__builtin_expect(spot.lanes != lanes, 0)) {
    flush(spot);
    spot.lanes = lanes;
  }
  ++spot.times;
}

// The block after the one in which the lanes were.
Counter::Step Counter::follow(Path& path, Spot& spot) {
  Path::Frame& top = path.frame[path.depth];
  if (!top.block || spot.block < 0) return Step::on;
  std::lock_guard lock(flow_->mutex);
  if (!flow_->follows(top.block->block, spot.block)) {
    if (spot.entry) {  // the function calls itself
      if (path.depth + 1 < Path::deepest_call) path.frame[++path.depth] = {spot.function, nullptr};
      return Step::on;
    }
    for (int depth = path.depth; depth-- > 0;) {
      const Path::Frame& below = path.frame[depth];
      if (below.function != spot.function || !below.block || !flow_->follows(below.block->block, spot.block)) continue;
      if (depth < path.until_depth) return Step::come_back;
      path.depth = depth;
      return Step::on;
    }
    flow_->add(top.block->block, spot.block);
    for (Spot& each : spots_) each.followed[0] = each.followed[1] = {};  // loops may have changed
  }
  flow_->meeting_point(top.block->block);
  top.block->followed[1] = top.block->followed[0];
  top.block->followed[0] = {&spot, flow_->left_loop(top.block->block, spot.block)};
  return Step::on;
}

// Handles a change of function: a call or a return.
Counter::Step Counter::enter(Path& path, Spot& spot, bool block) {
  if (!(block && spot.entry))
    for (int depth = path.depth; depth-- > 0;)
      if (path.frame[depth].function == spot.function) {
        if (depth < path.until_depth) return Step::come_back;
        path.depth = depth;
        return Step::on;
      }
  if (path.depth + 1 < Path::deepest_call) ++path.depth;
  path.frame[path.depth] = {spot.function, nullptr};
  return Step::on;
}

// The lanes are at the start of a block.
SIMT_IN Counter::Step Counter::begin_block(Path& path, Spot& spot) {
  const Path::Frame& top = path.frame[path.depth];
  if (top.block) {
    if (top.block->followed[0].spot != &spot && top.block->followed[1].spot != &spot)
      if (follow(path, spot) == Step::come_back) return Step::come_back;
    const Spot::Way& way = top.block->followed[top.block->followed[0].spot == &spot ? 0 : 1];
    if (__builtin_expect(way.left_loop >= 0 && way.spot == &spot && path.until >= 0 && path.until_depth == path.depth,
                         0)) {
      std::lock_guard lock(flow_->mutex);
      left_ = way.left_loop;
      if (flow_->inside(path.until, left_)) return Step::leave;
    }
  }
  if (spot.block == path.until && path.depth == path.until_depth) {
    if (!path.predicated) {
      ++spot.arrivals;
      spot.arrived += static_cast<std::uint64_t>(__builtin_popcount(path.lanes));
    }
    return Step::arrive;
  }
  path.frame[path.depth].block = &spot;
  came(spot, path.lanes);
  return Step::on;
}

// One row of events, of all lanes of the path.
SIMT_IN Counter::Step Counter::step(Path& path, const std::uint64_t* row, unsigned leader) {
  const std::uint64_t first = row[leader], address = first & address_mask;
  if (address != 0 && address < first_address) {
    if (!same(row, first)) return Step::part;
    came(*together_[first >> address_bits], path.lanes);
    return Step::on;
  }
  Spot& spot = spot_of(first);
  const bool elsewhere = path.depth < 0 || spot.function != path.frame[path.depth].function;
  if (address == 0) {
    if (!same(row, first)) return Step::part;
    if (__builtin_expect(elsewhere, 0) && enter(path, spot, true) == Step::come_back) return Step::come_back;
    return begin_block(path, spot);
  }
  Pattern* pattern = spot.pattern[0].get();
  const bool known = pattern && pattern->present == path.lanes && pattern->offset == (address & pattern->within) &&
                     address - pattern->low < pattern->size && !differs(row, first, pattern->delta);
  if (__builtin_expect(!known || elsewhere, 0)) {
    for (unsigned lane = 0; lane < 32; ++lane)
      if ((row[lane] ^ first) >> address_bits || (row[lane] & address_mask) < first_address) return Step::part;
    if (elsewhere && enter(path, spot, spot.block >= 0) == Step::come_back) return Step::come_back;
  }
  if (spot.block >= 0)
    if (const Step way = begin_block(path, spot); way != Step::on) return way;
  if (__builtin_expect(!known, 0)) pattern = &learn(spot, row, path.lanes, leader);
  ++pattern->times;
  if (spot.event == Event::write) {
    const bool joined = address / 32 == std::exchange(path.stored, address / 32);
    if (joined) pattern->joined += path.joined ? 1 : 2;
    path.joined = joined;
  } else {
    path.stored = 0;
  }
  if (pattern->marks && pattern->marked != address) mark(*pattern, address, spot.event);
  return Step::on;
}

// Finds the pattern among the spot's patterns, or computes it.
Pattern& Counter::learn(Spot& spot, const std::uint64_t* row, std::uint32_t lanes, unsigned leader) {
  const std::uint64_t first = row[leader], address = first & address_mask;
  unsigned way = 1;
  for (; way < Spot::ways && spot.pattern[way]; ++way) {
    Pattern& known = *spot.pattern[way];
    if (known.present == lanes && known.offset == (address & known.within) && address - known.low < known.size &&
        !differs(row, first, known.delta))
      break;
  }
  const bool found = way < Spot::ways && spot.pattern[way];
  if (!found) {
    way = std::min(way, Spot::ways - 1);
    if (!spot.pattern[0]) way = 0;
    if (!spot.pattern[way]) spot.pattern[way] = std::make_unique<Pattern>();
  }
  std::rotate(spot.pattern, spot.pattern + way, spot.pattern + way + 1);
  Pattern& pattern = *spot.pattern[0];
  if (found) return pattern;
  flush(spot, pattern);
  std::uint64_t addresses[32];
  for (unsigned lane = 0; lane < 32; ++lane) {
    pattern.delta[lane] = row[lane] - first;
    addresses[lane] = row[lane] & address_mask;
  }
  pattern.present = lanes;
  pattern.lanes = asking(spot, lanes);
  pattern.marked = 0;
  pattern.space = space_of(address, &pattern.low, &pattern.size);
  // A shift by whole sectors costs the same, and in shared memory one by whole words; but an atomic operation's lines
  // have banks. (So have a load's, but what a shift changes there is little, or cost_of says so.)
  pattern.within = pattern.space == Space::shared ? 3 : spot.event == Event::atomic ? ~std::uint32_t(0) : 31;
  cost_of(pattern, spot, {addresses, pattern.lanes, spot.bytes});
  pattern.offset = address & pattern.within;
  keep(spot, pattern, addresses);
  return pattern;
}

// ---- paths ----

int Counter::new_path(Warp& warp) {
  for (std::size_t i = 0; i < warp.paths.size(); ++i)
    if (!warp.paths[i].lanes) {
      warp.paths[i] = Path{};
      return static_cast<int>(i);
    }
  warp.paths.emplace_back();
  return static_cast<int>(warp.paths.size()) - 1;
}

void Path::wait() {
  join = returned = true;
  arrived = 0;
}

// Lanes that have all returned are in the block that called, the others at the start of one.
void Path::resume() {
  if (returned && depth > 0)
    --depth;
  else if (depth >= 0)
    frame[depth].block = nullptr;
  join = false;
  arrived = 0;
}

// A join whose lanes have all arrived becomes a path again.
void Counter::settle(Warp& warp, int index) {
  Path& join = warp.paths[static_cast<std::size_t>(index)];
  if (join.join && join.arrived == join.lanes) join.resume();
}

void Counter::arrive(Warp& warp, int index, bool returned) {
  Path& path = warp.paths[static_cast<std::size_t>(index)];
  const int parent = path.parent;
  Path& join = warp.paths[static_cast<std::size_t>(parent)];
  join.arrived |= path.lanes;
  join.returned &= returned;
  path.lanes = 0;
  settle(warp, parent);
}

// Removes lanes that have ended from the path and from all joins that wait for them.
void Counter::leave(Warp& warp, int index, std::uint32_t lanes) {
  while (index >= 0) {
    Path& path = warp.paths[static_cast<std::size_t>(index)];
    path.lanes &= ~lanes;
    path.arrived &= ~lanes;
    if (path.lanes) settle(warp, index);
    index = path.parent;
  }
}

// Splits some lanes off a path, with their own goal.
void Counter::resume_as(Warp& warp, const Path& path, std::uint32_t lanes, const Goal& goal, bool predicated) {
  Path& own = warp.paths[static_cast<std::size_t>(new_path(warp))];
  own = path;
  own.lanes = lanes;
  own.predicated = predicated;
  static_cast<Goal&>(own) = goal;
}

// Lanes that leave a loop: the paths inside it no longer wait for them. They wait for all that went in, if these meet.
Goal Counter::leave_loop(Warp& warp, int index, int loop, std::uint32_t lanes) {
  const int depth = warp.paths[static_cast<std::size_t>(index)].depth;
  int outer = index;  // the path that came into the loop
  for (;;) {
    const Path& path = warp.paths[static_cast<std::size_t>(outer)];
    if (path.parent < 0 || path.until < 0 || path.until_depth != depth || !flow_->inside(path.until, loop)) break;
    outer = path.parent;
  }
  const Path before = warp.paths[static_cast<std::size_t>(outer)];
  Goal goal{before.parent, before.until, before.until_depth};
  const int meeting = flow_->meeting_after(loop);
  if (meeting >= 0 && (before.until != meeting || before.until_depth != depth)) {
    goal = {new_path(warp), meeting, depth};
    Path& all = warp.paths[static_cast<std::size_t>(goal.parent)];
    all = before;
    all.wait();
    static_cast<Goal&>(warp.paths[static_cast<std::size_t>(outer)]) = goal;
  }
  for (int i = index;; i = warp.paths[static_cast<std::size_t>(i)].parent) {
    Path& path = warp.paths[static_cast<std::size_t>(i)];
    path.lanes &= ~lanes;
    if (path.lanes) settle(warp, i);
    if (i == outer) return goal;
  }
}

// The lanes' next events differ: each group becomes a path until the block where all paths meet.
void Counter::part(Warp& warp, int index, const std::uint64_t* row) {
  const Path path = warp.paths[static_cast<std::size_t>(index)];
  Spot* const at = path.depth >= 0 ? path.frame[path.depth].block : nullptr;
  struct Group {
    std::uint32_t lanes;
    int block, loop;
  } groups[32];  // the block that it goes to, the loop that it leaves
  unsigned count = 0, staying = 0;
  auto key = [&](unsigned lane) {
    const std::uint64_t address = row[lane] & address_mask;
    return (row[lane] >> address_bits) << 1 | (address < first_address && address != 0);
  };
  for (std::uint32_t left = path.lanes; left;) {
    const auto leader = static_cast<unsigned>(__builtin_ctz(left));
    Group& group = groups[count++] = {0, -1, -1};
    for (std::uint32_t rest = left; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      if (key(lane) == key(leader)) group.lanes |= 1u << lane;
    }
    left &= ~group.lanes;
    if (!at || key(leader) & 1) continue;
    const Spot& to = spot_of(row[leader]);
    if (to.function == at->function) group.block = to.block;
  }
  std::lock_guard lock(flow_->mutex);
  const int meeting = at ? flow_->meeting_point(at->block) : -1;
  if (at) ++at->diverged;
  for (unsigned g = 0; g < count; ++g) {
    if (groups[g].block >= 0) groups[g].loop = flow_->left_loop(at->block, groups[g].block);
    staying += groups[g].loop < 0;
    if (groups[g].loop >= 0)
      resume_as(warp, path, groups[g].lanes, leave_loop(warp, index, groups[g].loop, groups[g].lanes));
  }
  if (staying < 2) return;  // the path itself keeps those that stay
  bool predicated = at != nullptr;
  for (unsigned g = 0; g < count && predicated; ++g)
    predicated = groups[g].loop < 0 && groups[g].block >= 0 &&
                 (groups[g].block == meeting || flow_->under(groups[g].block) == at->block);
  Path& rest = warp.paths[static_cast<std::size_t>(index)];
  const bool known = rest.until == meeting && rest.until_depth == path.depth;
  const bool joins = !known && (meeting >= 0 || path.depth > 0);
  const Goal goal = joins ? Goal{index, meeting, path.depth} : static_cast<Goal&>(rest);
  if (joins)
    rest.wait();
  else
    rest.lanes = 0;
  for (unsigned g = 0; g < count; ++g)
    if (groups[g].loop < 0) resume_as(warp, path, groups[g].lanes, goal, predicated);
}

// Runs one path to the end of its lanes' events; returns whether anything changed. The innermost loop of the replay.
SIMT_FAST bool Counter::run(Warp& warp, unsigned first, int index, std::uint32_t ended) {
  alignas(32) std::uint64_t rows[4][32];
  const std::uint64_t* from[32];
  bool changed = false;
  for (;;) {
    Path& path = warp.paths[static_cast<std::size_t>(index)];
    if (!path.lanes || path.join) return changed;
    const std::uint32_t lanes = path.lanes;
    const auto leader = static_cast<unsigned>(__builtin_ctz(lanes));
    std::size_t count = ~std::size_t(0);
    std::uint32_t dry = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned thread = first + (lanes >> lane & 1 ? lane : leader);
      from[lane] = at_[thread];
      const auto left = static_cast<std::size_t>(stop_[thread] - at_[thread]);
      count = std::min(count, left);
      if (!left) dry |= lanes & 1u << lane;
    }
    if (dry) {
      if (!(dry & ended)) return changed;
      Spot* const block = path.depth >= 0 ? path.frame[path.depth].block : nullptr;
      if (block && (dry & ended) != lanes) ++block->diverged;
      leave(warp, index, dry & ended);
      changed = true;
      continue;
    }
    std::size_t done = 0;
    Step outcome = Step::on;
    unsigned r = 0;
    while (done < count && outcome == Step::on) {
      const auto batch = static_cast<unsigned>(std::min<std::size_t>(4, count - done));
      if (batch == 4) {
        transpose(from, done, rows);
      } else {
        for (unsigned row = 0; row < batch; ++row)
          for (unsigned lane = 0; lane < 32; ++lane) rows[row][lane] = from[lane][done + row];
      }
      for (r = 0; r < batch; ++r) {
        outcome = step(path, rows[r], leader);
        if (outcome != Step::on) break;
        ++done;
      }
    }
    for (std::uint32_t left = lanes; left; left &= left - 1)
      at_[first + static_cast<unsigned>(__builtin_ctz(left))] += done;
    changed |= done > 0;
    idle_ = done > 0 ? 0 : idle_ + 1;
    if (outcome == Step::arrive || outcome == Step::come_back) {
      arrive(warp, index, outcome == Step::come_back);
      return true;
    }
    if (outcome == Step::part) {
      part(warp, index, rows[r]);
      return true;
    }
    if (outcome == Step::leave) {
      const Path leaving = path;
      std::lock_guard lock(flow_->mutex);
      resume_as(warp, leaving, lanes, leave_loop(warp, index, left_, lanes));
      return true;
    }
  }
}

void Counter::replay(Block& block, unsigned number) {
  Warp& warp = warps_[number];
  const unsigned first = number * 32;
  block_ = &block;
  warp_ = number;
  std::uint32_t ended = 0;
  for (unsigned lane = 0; lane < 32 && first + lane < threads_; ++lane)
    if (block.gone(first + lane)) ended |= 1u << lane;
  idle_ = 0;
  for (bool changed = true; changed;) {
    if (idle_ > most_idle) scatter(warp);
    changed = false;
    for (std::size_t i = 0; i < warp.paths.size(); ++i)
      if (warp.paths[i].lanes && !warp.paths[i].join) changed |= run(warp, first, static_cast<int>(i), ended);
  }
}

// A safeguard against paths that split and meet without end: every lane becomes a path of its own.
void Counter::scatter(Warp& warp) {
  Path all;
  for (const Path& path : warp.paths) all.lanes |= path.lanes;
  warp.paths.assign(1, all);
  idle_ = 0;
}

// Lanes wait for others that cannot arrive before they have run: they resume without them.
void Counter::force(Warp& warp, unsigned first) {
  for (std::size_t i = 0; i < warp.paths.size(); ++i) {
    if (!warp.paths[i].lanes) continue;
    if (warp.paths[i].join) {
      const std::uint32_t here = warp.paths[i].arrived;
      if (!here) continue;
      Path alone = warp.paths[i];
      warp.paths[i].lanes &= ~here;
      warp.paths[i].arrived = 0;
      alone.lanes = here;
      alone.resume();
      warp.paths[static_cast<std::size_t>(new_path(warp))] = alone;
    } else {
      std::uint32_t with = 0;
      for (unsigned lane = 0; lane < 32; ++lane)
        if (warp.paths[i].lanes >> lane & 1 && stop_[first + lane] != at_[first + lane]) with |= 1u << lane;
      const std::uint32_t without = warp.paths[i].lanes & ~with;
      if (!with || !without) continue;
      Path rest = warp.paths[i];
      rest.lanes = without;
      warp.paths[i].lanes = with;
      warp.paths[static_cast<std::size_t>(new_path(warp))] = rest;
    }
  }
}

}  // namespace simt
