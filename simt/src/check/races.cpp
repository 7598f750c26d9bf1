// Finds accesses of two threads that nothing orders: in the blocks of one worker when they happen, between two workers
// when a launch ends.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <simt/probe.h>

#include "check/parts.h"

namespace simt {

// Whether a worker is writing to a place of global memory: a byte stands for several places. The value of a write can
// be read only after the write, and by then another worker could have written there.
static constexpr std::size_t places = 1 << 14;
static unsigned char taken[places];
static constexpr int most_turns = 100'000;  // for which a worker lets others run before it writes nevertheless

void Checker::take_place(std::uintptr_t address) {
  unsigned char* const place = &taken[(address >> 2) * 0x9E3779B97F4A7C15ull >> 50];
  for (int turn = 0; __atomic_test_and_set(place, __ATOMIC_ACQUIRE); ++turn) {
    if (turn == most_turns || job_->cancelled) return;  // the other one computes, or waits for this one
    sched_yield();
  }
  state_.place = place;
}

void free_places() { std::memset(taken, 0, sizeof taken); }

void Checker::leave_place() {
  if (state_.place) __atomic_clear(std::exchange(state_.place, nullptr), __ATOMIC_RELEASE);
}

void Checker::settle() {
  if (!state_.written) return;
  const auto* at = static_cast<const char*>(state_.written_at);
  const std::size_t step = std::size_t(1) << state_.written_shift;
  for (unsigned i = 0; i < state_.written_cells; ++i) {
    std::uint32_t value = 0;
    std::memcpy(&value, at + i * step, step);
    state_.written[i].value = value;
  }
  state_.written = nullptr;
  leave_place();
  if (!pending_race_) return;
  // Two unordered writes are harmless only if they wrote the same value.
  const auto pending = std::move(pending_race_);
  bool same = true;
  at = static_cast<const char*>(pending->at);
  for (std::size_t i = 0; i < pending->before.size(); ++i) {
    std::uint32_t value = 0;
    std::memcpy(&value, at + (i << pending->shift), std::size_t(1) << pending->shift);
    same = same && value == pending->before[i];
  }
  pending->finding.warning = same;
  add_finding(std::move(pending->finding));
}

// Returns whether an access is an atomicCAS, which confirms a value that the thread has read before.
static bool confirms(unsigned access) {
  return access & atomically && access >> kind_shift == static_cast<unsigned>(Atomic::compare);
}

// A plain read that races with an atomic write is harmless if the thread continues with an atomicCAS of the same
// address, as in the loop of CUDA's guide: the atomicCAS fails if the value is out of date. So is the same read where
// the loop ends before its first atomicCAS, because the value needs no update. Such a finding is therefore held back
// until the launch has ended, and dropped if somewhere in the launch an atomicCAS followed the read of that place in
// the code. This is called at the running thread's next access of the address; confirmed: it is an atomicCAS.
void Checker::release_held(std::uintptr_t address, bool confirmed) {
  if (held_.empty()) return;
  auto found = held_.extract({cursor.current, address});
  if (!found) return;
  auto& [finding, site] = found.mapped();
  if (!confirmed)
    hold_finding(std::move(finding), site);
  else if (site)  // 0: not known
    compared_.insert(site);
}

static constexpr std::size_t most_held = 4096;  // a loop's atomicCAS follows at once

void Checker::report_held() {
  for (auto& [place, held] : held_) hold_finding(std::move(held.first), held.second);
  held_.clear();
}

// Returns whether nothing orders the running thread's access after that of this key. second: the key is a second
// reader's, whose epoch is not recorded. address: of both accesses, where that is known.
bool Checker::races(std::uint64_t other, bool shared, bool second, std::uintptr_t address) const {
  if (other == 0) return false;
  const unsigned me = cursor.current, them = key::thread(other);
  const std::uint64_t then = key::clock(other), now = key::clock(state_.clock);
  if (then == now) {
    if (them == me) return false;
    if (me / 32 == them / 32 && key::epoch(other) < seen_[(me / 32 * 32 + me % 32) * 32 + them % 32]) return false;
    if (handed_.ordered(them, second ? 0 : key::epoch(other), me)) return false;
  } else {
    if (then >= key::clock(shared ? state_.began : state_.began_global)) return false;  // a barrier lies between
    if (shared) return false;  // left by an earlier block
  }
  std::lock_guard lock(check_mutex);
  Handovers::Moment before = moment(other);
  if (second) before.epoch = 0;
  if (other & key::atomic) before.word = address;
  return !checked.handovers.ordered(before, this->now());
}

// Returns the key of a recorded write that nothing orders before the running thread's access, or 0. relaxed: the access
// does not conflict with an atomic operation.
std::uint64_t Checker::racing_write(const Shadow& shadow, std::size_t at, bool shared, bool relaxed,
                                    std::uintptr_t address) const {
  const std::uint64_t last = shadow.cells[at].write;
  if (!(relaxed && last & key::atomic) && races(last, shared, false, address)) return last;
  if (!(last & key::many) || (shared && last < state_.clock)) return 0;
  const std::uint64_t before = relaxed ? shadow.earlier[at].plain : shadow.earlier[at].atomic;
  return races(before, shared, false, address) ? before : 0;
}

// Returns the key of a recorded reader since the last barrier that nothing orders before the running thread's write,
// or 0. atomic: the write is an atomic operation, which a volatile read does not conflict with.
std::uint64_t Checker::racing_reader(const Cell& cell, bool shared, bool atomic) const {
  const std::uint64_t first = cell.read & ~key::atomic;
  if (!(atomic && cell.read & key::atomic) && races(first, shared)) return first;
  if (!(cell.read & key::many) || key::clock(cell.read) != key::clock(state_.clock)) return 0;
  if (atomic && cell.second & key::atomic) return 0;
  const std::uint64_t second = (first & ~key::below_epoch) | (cell.second & key::below_epoch & ~key::atomic);
  return races(second, shared, true) ? second : 0;
}

// Forgets the thread's own read of this clock, which its atomicCAS has confirmed. Returns the site of the read if it is
// known to be the thread's last one, else 0.
static unsigned forget_read(Cell& cell, unsigned me, std::uint64_t clock) {
  if (cell.read < clock) return 0;
  const bool first = key::thread(cell.read) == me;
  const unsigned site = first && !(cell.second & key::again) ? key::site(cell.read) : 0;
  if (cell.read & key::many) {
    if (!first && (cell.second & key::thread_mask) != me) return 0;
    if (first) {
      cell.read = (cell.read & ~key::below_epoch) | (cell.second & key::below_epoch);
      cell.second = key::again;  // whether the second reader has read again was not recorded
    }
    cell.read &= ~key::many;
  } else if (first) {
    cell.read = 0;
  }
  return site;
}

// Records a read since the last barrier, of which the cell has one already. A plain read replaces a volatile one of
// shared memory, with which less conflicts.
static void note_further_read(Cell& cell, std::uint64_t mine) {
  const bool same = key::thread(cell.read) == key::thread(mine), plain = !(mine & key::atomic);
  if (plain && cell.read & key::atomic && (same || cell.read & key::many)) {
    cell.read = mine | (cell.read & key::many);
    cell.second |= key::again;
  } else if (same) {
    if (key::site(cell.read) != key::site(mine)) cell.second |= key::again;
  } else if (!(cell.read & key::many)) {
    cell.read |= key::many;
    cell.second = (cell.second & key::again) | static_cast<std::uint32_t>(mine & key::below_epoch);
  }
}

// Returns the key of the running thread, now, at a place in the code.
std::uint64_t Checker::key_now(const void* code) const {
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state_.text) >> 2;
  const std::uint64_t place = site < state_.sites ? std::uint64_t(site) << key::site_shift : 0;
  return state_.clock | std::uint64_t(epoch_[cursor.current]) << key::epoch_shift | place | cursor.current;
}

// Records an atomic operation. Of the others that it follows one is kept, the least ordered.
void Checker::note_atomic_write(std::size_t index, std::size_t at, bool shared, std::uint64_t mine) {
  Shadow& shadow = shadows_[index];
  Cell& cell = shadow.cells[at];
  const std::uint64_t last = std::exchange(cell.write, mine), clock = state_.clock, began = state_.began_global;
  if (!last || (shared && last < clock)) return;  // a barrier lies between
  if (!shadow.earlier) {
    const std::size_t count = (region(index).bytes >> shadow.shift) + 1;
    shadow.earlier = static_cast<Earlier*>(take(count * sizeof(Earlier)));
    if (!shadow.earlier) return;
  }
  // How far another access is: in another block, warp or thread. 0 if a barrier or the thread itself orders the two.
  auto distance = [&](std::uint64_t other) {
    if (other < began) return other ? 3 : 0;
    if (other < clock || key::thread(other) == key::thread(mine)) return 0;
    return key::thread(other) / 32 == key::thread(mine) / 32 ? 1 : 2;
  };
  Earlier& before = shadow.earlier[at];
  if (!(last & key::many)) before = {};
  if (!(last & key::atomic))
    before = {last, 0};
  else if (const int away = distance(last); away && away >= distance(before.atomic))
    before.atomic = last;
  if (before.plain || before.atomic) cell.write |= key::many;
}

void Checker::note_in_cells(std::size_t index, std::size_t from, std::size_t to, unsigned access, bool shared,
                            std::uint64_t mine) {
  const unsigned me = cursor.current;
  const Shadow& shadow = shadows_[index];
  for (std::size_t i = from; i <= to; ++i) {
    Cell& cell = shadow.cells[i];
    if (shared && !under_way(cell)) cell.elsewhere = 0;  // an earlier block's
    if (access & writing) {
      if (access & atomically)
        note_atomic_write(index, i, shared, mine);
      else
        cell.write = mine;
      const unsigned site = confirms(access) ? forget_read(cell, me, state_.clock) : 0;
      if (site) compared_.insert(site);
    } else if (!(access & atomically)) {
      const std::uint64_t read = mine | (access & as_volatile ? key::atomic : 0);
      if (key::clock(cell.read) == key::clock(state_.clock)) {
        note_further_read(cell, read);
      } else {
        if (!shared && cell.read && key::clock(cell.read) < key::clock(state_.began_global)) cell.elsewhere = cell.read;
        cell.read = read;
        cell.second = 0;
      }
    }
  }
}

void Checker::look(std::size_t index, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  const Region& where = region(index);
  Shadow& shadow = shadows_[index];
  const bool write = access & writing, shared = where.kind == Slot::shared;
  const unsigned me = cursor.current;
  const std::uint64_t mine = key_now(code) | (access & atomically ? key::atomic : 0);
  const std::size_t from = (address - where.base) >> shadow.shift,
                    to = (address + bytes - 1 - where.base) >> shadow.shift;
  // A volatile read of shared memory is never torn or omitted: it does not conflict with atomic operations.
  const bool relaxed = access & atomically || (!write && access & as_volatile);
  std::uint64_t written = 0, read = 0, copied = 0;  // keys of the accesses with which it races
  for (std::size_t i = from; i <= to; ++i) {
    const Cell& cell = shadow.cells[i];
    if (!written) written = racing_write(shadow, i, shared, relaxed, address);
    if (shared && !copied && under_way(cell)) copied = cell.elsewhere;
    if (!write) continue;
    if (!read) read = racing_reader(cell, shared, access & atomically);
    if (!read && !shared && races(cell.elsewhere, shared)) read = cell.elsewhere;
  }
  settle();
  release_held(address, confirms(access));
  for (const std::uint64_t other : {written, read, copied}) {
    if (!other) continue;
    Finding finding;
    finding.check = "race";
    finding.what = verb(access);
    finding.other_what = other == read         ? "read"
                         : other == copied     ? races(other, shared) ? "copy" : "copy under way"
                         : other & key::atomic ? "atomic"
                                               : "write";
    locate(finding, code);
    describe_other(finding, other);
    if (key::clock(other) == key::clock(state_.clock)) finding.barrier_line = barrier_line_;
    name(finding, where, address, bytes);
    if (other == written && write && !(access & atomically) && !(other & key::atomic)) {
      pending_race_ = std::make_unique<PendingRace>(PendingRace{
          std::move(finding), {}, reinterpret_cast<const void*>(where.base + (from << shadow.shift)), shadow.shift});
      for (std::size_t i = from; i <= to; ++i) pending_race_->before.push_back(shadow.cells[i].value);
    } else if (access == reading && other & key::atomic && held_.size() < most_held) {
      finding.first = next_moment();
      held_.insert_or_assign({me, address}, std::pair{std::move(finding), key::site(mine)});
    } else if (other == read && access & atomically) {
      hold_finding(std::move(finding), key::site(read));
    } else {
      add_finding(std::move(finding));
    }
  }
  note_in_cells(index, from, to, access, shared, mine);
  if (!write) return;
  shadow.wrote = true;
  if (!shared && state_.several) take_place(address);
  state_.written = shadow.cells + from;
  state_.written_at = reinterpret_cast<const void*>(where.base + (from << shadow.shift));
  state_.written_cells = static_cast<unsigned>(to - from + 1);
  state_.written_shift = shadow.shift;
}

// From now until a thread has waited for it, the copy may write at any moment. It races with accesses of other threads
// since the last barrier, and with every access until then, including the thread's own. A write of the same value is
// no race here; it is reported when the copy is written.
void Checker::copy_begins(std::uintptr_t target, std::size_t bytes, CopyBits bits, const void* code) {
  std::size_t index = 0;
  const Region* where = region_of(target, index);
  if (!where || where->kind != Slot::shared || target + bytes > where->base + where->bytes)
    return;  // reported when it is written
  const Shadow& shadow = fine_enough(index, target, bytes);
  if (!shadow.cells) return;
  const std::uint64_t mine = key_now(code);
  std::uint64_t written = 0, read = 0, copied = 0;
  for (std::size_t i = (target - where->base) >> shadow.shift; i <= (target + bytes - 1 - where->base) >> shadow.shift;
       ++i) {
    Cell& cell = shadow.cells[i];
    const std::size_t piece = std::size_t(1) << shadow.shift;
    const auto* at = reinterpret_cast<const char*>(where->base + (i << shadow.shift));
    const char* brings = reinterpret_cast<const char*>(&bits) + (i * piece - (target - where->base));
    if (!written && std::memcmp(at, brings, piece) != 0) written = racing_write(shadow, i, true, false, target);
    if (!read) read = racing_reader(cell, true, false);
    if (!copied && under_way(cell) && !copies_bring(at, piece, brings)) copied = cell.elsewhere;
    cell.elsewhere = mine;
    cell.read = 0;  // otherwise the next read would pass as one of many readers
  }
  for (const std::uint64_t other : {written, read, copied}) {
    if (!other) continue;
    Finding finding;
    finding.check = "race";
    finding.what = "copy";
    finding.other_what = other == read         ? "read"
                         : other == copied     ? races(other, true) ? "copy" : "copy under way"
                         : other & key::atomic ? "atomic"
                                               : "write";
    locate(finding, code);
    describe_other(finding, other);
    name(finding, *where, target, bytes);
    add_finding(std::move(finding));
  }
}

void Checker::copy_arrives(std::uintptr_t target, std::size_t bytes) {
  std::size_t index = 0;
  const Region* where = region_of(target, index);
  if (!where || where->kind != Slot::shared || target + bytes > where->base + where->bytes || !shadows_[index].cells)
    return;
  const Shadow& shadow = shadows_[index];
  for (std::size_t i = (target - where->base) >> shadow.shift; i <= (target + bytes - 1 - where->base) >> shadow.shift;
       ++i)
    shadow.cells[i].elsewhere = 0;
}

// An atomic read is probed before it happens: another worker may have written in between.
void Checker::settle_taken() {
  if (!taking_.address) return;
  std::lock_guard lock(check_mutex);
  checked.handovers.atomic(taking_.address, taking_.when, true, false);
  taking_ = {};
}

void Checker::fence() {
  const Critical critical(worker_);
  settle_taken();
  handed_.fence(cursor.current);
  std::lock_guard lock(check_mutex);
  checked.handovers.fence(now());
}

Handovers::Moment Checker::now() const {
  return {block_, cursor.current, key::clock(state_.clock) - starts_.back().clock, epoch_[cursor.current]};
}

Handovers::Moment Checker::moment(std::uint64_t k) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), key::clock(k),
                                [](std::uint64_t c, const BlockStart& s) { return c < s.clock; });
  const BlockStart start = after == starts_.begin() ? BlockStart{0, block_} : *std::prev(after);
  return {start.block, key::thread(k), key::clock(k) - start.clock, key::epoch(k)};
}

// ---- two workers ----

namespace {

// Compares the records of two workers for one granule: whether their blocks race there.
struct WorkerPair {
  const Checker& here;
  const Checker& there;
  const Region& region;

  bool apart(std::uint64_t a, std::uint64_t b, std::uintptr_t address) const {
    auto one = here.moment(a), two = there.moment(b);
    if (a & key::atomic) one.word = address;
    if (b & key::atomic) two.word = address;
    return !checked.handovers.ordered(one, two) && !checked.handovers.ordered(two, one);
  }

  Finding finding(std::uint64_t a, std::uint64_t b, std::uintptr_t address, std::size_t bytes, const char* what,
                  const char* other_what) const {
    Finding made;
    made.check = "race";
    made.what = what;
    made.other_what = other_what;
    here.describe_other(made, a);
    made.kernel = here.launch().site.kernel;
    made.file = here.launch().site.file;
    made.code = made.other_code;
    made.block = made.other_block;
    made.thread = made.other_thread;
    made.in_thread = true;
    there.describe_other(made, b);
    here.name(made, region, address, bytes);
    return made;
  }
};

const char* verb_of(std::uint64_t k, bool write) { return !write ? "read" : k & key::atomic ? "atomic" : "write"; }

// Returns the key of the plain write before the cell's atomic one, or 0.
std::uint64_t plain_before(const Checker::Shadow& shadow, const Cell& cell) {
  return cell.write & key::many ? shadow.earlier[&cell - shadow.cells].plain : 0;
}

void compare(const Checker& here, const Checker& there, std::size_t index, const Region& region) {
  const Checker::Shadow &a = here.shadow(index), &b = there.shadow(index);
  if (!a.cells || !b.cells || !(a.wrote || b.wrote)) return;
  const WorkerPair both{here, there, region};
  const std::uint8_t shift = std::min(a.shift, b.shift);
  const std::size_t piece = std::size_t(1) << shift;
  std::map<std::pair<unsigned, unsigned>, bool> reported;  // pairs of sites
  for (std::size_t i = 0; i < (region.bytes + piece - 1) >> shift; ++i) {
    const Cell &x = a.cells[i >> (a.shift - shift)], &y = b.cells[i >> (b.shift - shift)];
    const std::uintptr_t address = region.base + (i << shift);
    auto meet = [&](std::uint64_t p, bool p_writes, std::uint64_t q, bool q_writes, bool same_value) {
      if (!p || !q || (p & key::atomic && q & key::atomic) || !both.apart(p, q, address)) return;
      const bool first = reported.emplace(std::pair(key::site(p), key::site(q)), same_value).second;
      if (!first && reported.size() > 64) return;
      const char *verb = verb_of(p, p_writes), *other_verb = verb_of(q, q_writes);
      // The later block first, as where one worker runs both: the report must not depend on which worker ran which.
      Finding finding = here.moment(p).block < there.moment(q).block
                            ? WorkerPair{there, here, region}.finding(q, p, address, piece, other_verb, verb)
                            : both.finding(p, q, address, piece, verb, other_verb);
      finding.warning = same_value;
      // When the read happened was not recorded. What it read may be the cause of any other finding.
      if (!p_writes || !q_writes) finding.first = checked.began;
      if (p_writes && q_writes)
        add_finding(std::move(finding));
      else if ((p_writes ? p : q) & key::atomic)
        hold_finding(std::move(finding), key::site(p_writes ? q : p));
      else
        add_finding(std::move(finding));
    };
    if (x.write && y.write) {
      meet(x.write, true, y.write, true, x.value == y.value);
      if (y.write & key::atomic) meet(plain_before(a, x), true, y.write, true, false);
      if (x.write & key::atomic) meet(x.write, true, plain_before(b, y), true, false);
    }
    if (x.write) {
      meet(x.write, true, y.read, false, false);
      meet(x.write, true, y.elsewhere, false, false);
    }
    if (y.write) {
      meet(x.read, false, y.write, true, false);
      meet(x.elsewhere, false, y.write, true, false);
    }
  }
}

}  // namespace

void end_checked(const std::vector<CheckObserver*>& observers) {
  std::vector<Checker*> checkers;
  for (CheckObserver* observer : observers) checkers.push_back(static_cast<Checker*>(observer));
  for (std::size_t i = 0; i < checkers.size(); ++i)
    for (std::size_t k = i + 1; k < checkers.size(); ++k)
      for (std::size_t region = 0; region < checked.regions.size(); ++region)
        compare(*checkers[i], *checkers[k], region, checked.regions[region]);
  std::unordered_set<unsigned> compared;
  for (const Checker* checker : checkers) compared.insert(checker->compared().begin(), checker->compared().end());
  release_findings(compared);
  for (Checker* checker : checkers) checker->clear_cells();
}

}  // namespace simt
