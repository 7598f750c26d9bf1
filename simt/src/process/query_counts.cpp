// Writes counted launches as JSON for Python, which calls this through ctypes (simt/counting/).
#include <cmath>
#include <cstdio>
#include <string>

#include "count/counter.h"
#include "process/json.h"

namespace simt {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, value == std::floor(value) && std::fabs(value) < 1e15 ? "%.0f" : "%.17g", value);
  return text;
}

template <class Values>
std::string listed(const Values& values) {
  return array_of(values, number);
}

std::string written(const Example& e) {
  std::string out = "{\"space\":" + std::to_string(static_cast<int>(e.space)) + ",\"name\":" + quoted(e.name) +
                    ",\"element\":" + std::to_string(e.element) +
                    ",\"start\":" + std::to_string(e.space == Space::global ? e.base % 32 : 0) +
                    ",\"block\":" + std::to_string(e.block) + ",\"warp\":" + std::to_string(e.warp) + ",\"cost\":[" +
                    std::to_string(e.cost.sectors) + "," + std::to_string(e.cost.ideal_sectors) + "," +
                    std::to_string(e.cost.wavefronts) + "," + std::to_string(e.cost.ideal_wavefronts) +
                    "],\"addresses\":[";
  for (unsigned lane = 0; lane < 32; ++lane)
    out += (lane ? "," : "") +
           (e.lanes >> lane & 1 ? std::to_string(static_cast<std::int64_t>(e.address[lane] - e.base)) : "null");
  return out + "]}";
}

std::string written(const Counting::Found& found) {
  const SpotKind& spot = found.spot;
  std::string out =
      "{\"offset\":" + std::to_string(spot.offset) + ",\"line\":" + std::to_string(spot.line) +
      ",\"what\":" + quoted(spot.what ? spot.what : "") + ",\"event\":" + std::to_string(static_cast<int>(spot.event)) +
      ",\"together\":" + std::to_string(static_cast<int>(spot.together)) + ",\"bytes\":" + std::to_string(spot.bytes) +
      ",\"atomic\":" + std::to_string(spot.kind) + ",\"branches\":" + std::to_string(spot.branches) + ",\"tally\":{";
  bool first = true;
  for (std::size_t s = 0; s <= spaces; ++s) {
    const Tally& t = found.tally[s];
    if (t.executions == 0 && t.diverged == 0 && t.arrivals == 0) continue;
    const double values[] = {
        t.executions,       t.lanes,    t.bytes,   t.used,     t.sectors, t.ideal_sectors, t.wavefronts,
        t.ideal_wavefronts, t.distinct, t.deepest, t.diverged, t.joined,  t.arrivals,      t.arrived};
    out += std::string(first ? "" : ",") + "\"" + std::to_string(s) + "\":" + listed(values);
    first = false;
  }
  return out + "}" + (found.example ? ",\"example\":" + written(*found.example) : "") + "}";
}

// Read, then written: sectors of the counted blocks, estimated for the grid, distinct ones, from first to last; those
// that more than half of the blocks touched, and by how many blocks. Then how many loads requested, in how many
// threads, and in how many of these a regular distance apart, and atomic operations request it; and from the first to
// the last that each block reads.
std::string written(const CountedLaunch::Array& array) {
  std::vector<double> all;
  for (unsigned i = 0; i < 2; ++i)
    for (const double value :
         {array.blocks.counted[i], array.blocks.estimated[i], static_cast<double>(array.touched.sectors[i]),
          static_cast<double>(array.touched.extent(i)), static_cast<double>(array.touched.common[i]),
          static_cast<double>(array.touched.common_times[i])})
      all.push_back(value);
  all.push_back(array.blocks.requested);
  all.push_back(array.blocks.lanes);
  all.push_back(array.blocks.regular);
  all.push_back(array.blocks.atomics);
  all.push_back(array.blocks.reach);
  return listed(all);
}

std::string written(const CountedLaunch& launch) {
  return "{\"kernel\":" + quoted(launch.kernel) + ",\"file\":" + quoted(launch.file) +
         ",\"line\":" + std::to_string(launch.line) + ",\"defined\":" + std::to_string(launch.defined) +
         ",\"module\":" + quoted(launch.module) + ",\"grid\":" + three(launch.grid) +
         ",\"block\":" + three(launch.block) + ",\"dynamic_shared\":" + std::to_string(launch.dynamic_shared) +
         ",\"static_shared\":" + std::to_string(launch.static_shared) +
         ",\"cooperative\":" + std::to_string(launch.cooperative) + ",\"sampled\":" + std::to_string(launch.sampled) +
         ",\"complete\":" + std::to_string(launch.complete) + ",\"unique_full\":" + std::to_string(launch.unique_full) +
         ",\"unique\":" + listed(launch.unique) +
         ",\"arrays\":" + array_of(launch.arrays, [](const CountedLaunch::Array& array) { return written(array); }) +
         ",\"sum\":" + listed(launch.sum) + ",\"deviation\":" + listed(launch.deviation) +
         ",\"spots\":" + array_of(launch.places, [](const Counting::Found& found) { return written(found); }) + "}";
}

}  // namespace

// Counts the launches that follow. limit: blocks to count, 0 for as many as take about a second; skip: others do not
// run.
extern "C" SIMT_API void simt_count_begin(std::uint64_t limit, int skip) { begin_counts(limit, skip != 0); }

// What was counted since, and forgets it. Valid until the next call.
extern "C" SIMT_API const char* simt_count_take() {
  static std::string taken;
  taken = array_of(take_counts(), [](const CountedLaunch& launch) { return written(launch); });
  return taken.c_str();
}

}  // namespace simt
