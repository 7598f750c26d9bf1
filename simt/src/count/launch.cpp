// Begins and ends a counted launch, and keeps its counters until Python takes them.
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "count/parts.h"
#include "run/program_stack.h"

namespace simt {
namespace {

struct Sample {
  std::uint64_t limit = 0;
  bool skip = false;
} sample;
std::vector<CountedLaunch> launches;

}  // namespace

void begin_counting(Job& job) {
  if (!job.module || !probes_of(*job.module)) return;
  job.counting = new Counting;
  Counting& counting = *job.counting;
  counting.blocks = job.blocks;
  counting.limit = job.launch->cooperative ? 0 : sample.limit;
  counting.skip = sample.skip;
  counting.module = job.module;
  counting.flow = flow_of(*job.module);
  for (unsigned i = 0; i < job.launch->argument_count; ++i)
    if (const void* const start = job.launch->arguments[i].pointer)
      counting.starts.push_back(reinterpret_cast<std::uint64_t>(start));
  for (const auto& variable : job.module->variables) counting.starts.push_back(job.module->base + variable.offset);
  std::sort(counting.starts.begin(), counting.starts.end());
  if (counting.limit && counting.limit < job.blocks) {
    const std::uint64_t each = (job.blocks + counting.limit - 1) / counting.limit;
    job.chunk = std::max<std::uint64_t>(job.chunk / each, 1) * each;
  }
  const ProgramStack& stack = program_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here >= stack.low && here < stack.top) {
    counting.host_low = stack.low;
    counting.host_high = stack.top;
    return;
  }
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
  }
  counting.host_low = reinterpret_cast<std::uint64_t>(low);
  counting.host_high = counting.host_low + bytes;
}

void end_counting(Job& job) {
  const std::unique_ptr<Counting> counting(job.counting);
  job.counting = nullptr;
  const Launch& launch = *job.launch;
  // Arrays of the kernel, and of other functions where they were used: which instance of a template runs isn't always
  // known.
  std::size_t fixed = 0;
  const std::string own = base_name(launch.site.kernel);
  for (std::size_t i = 0; i < job.arrays.size(); ++i) {
    const SharedArray& array = job.arrays[i];
    const bool certain =
        array.owner == own && launch.function && array.code == reinterpret_cast<std::uintptr_t>(launch.function);
    if (certain || (i < counting->met_array.size() && counting->met_array[i])) fixed += array.bytes;
  }
  const TouchedBytes::Count read = counting->touched.read(), wrote = counting->touched.written();
  CountedLaunch counted;
  counted.kernel = launch.site.kernel ? launch.site.kernel : "";
  counted.file = launch.site.file ? launch.site.file : "";
  counted.line = launch.site.line;
  counted.defined = launch.site.defined;
  counted.module = counting->module->path;
  counted.grid = launch.config.grid;
  counted.block = launch.config.block;
  counted.dynamic_shared = launch.config.shared;
  counted.static_shared = fixed;
  counted.cooperative = launch.cooperative;
  counted.complete = !job.cancelled;
  counted.sampled = counting->sampled;
  counted.unique_full = counting->touched.full();
  counted.unique = {static_cast<double>(read.bytes),    static_cast<double>(wrote.bytes),
                    static_cast<double>(read.sectors),  static_cast<double>(wrote.sectors),
                    static_cast<double>(read.granules), static_cast<double>(wrote.granules)};
  std::vector<TouchedBytes::Part> parts;
  counting->touched.count_parts(counting->starts, counting->sampled, parts);
  for (std::size_t a = 0; a < std::min(parts.size(), counting->arrays.size()); ++a)
    if (parts[a].sectors[0] || parts[a].sectors[1]) counted.arrays.push_back({counting->arrays[a], parts[a]});
  for (unsigned i = 0; i < totals; ++i) {
    counted.sum[i] = counting->sum[i];
    counted.deviation[i] = std::sqrt(counting->variance[i]);
  }
  for (auto& [offset, found] : counting->code) counted.places.push_back(std::move(found));
  for (auto& [key, found] : counting->met) counted.places.push_back(std::move(found));
  launches.push_back(std::move(counted));
}

void begin_counts(std::uint64_t limit, bool skip) {
  sample = {limit, skip};
  launches.clear();
}

std::vector<CountedLaunch> take_counts() { return std::exchange(launches, {}); }

}  // namespace simt
