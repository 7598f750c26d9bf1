// Answers Python's queries through ctypes (simt/runtime/library.py), without torch: sets the options of launches and
// returns what launches left. Texts are JSON, valid until the same thread's next call.
#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

#include "check/checker.h"
#include "process/json.h"
#include "run/memory.h"
#include "run/module.h"
#include "run/monitor.h"
#include "run/options.h"

namespace simt {
namespace {

const char* kept(std::string text) {
  static thread_local std::string all;
  all = std::move(text);
  return all.c_str();
}

// A place in a module's code for the source-line lookup: path and offset.
std::string place(const std::string& module, std::uintptr_t offset) {
  return "[" + quoted(module) + "," + std::to_string(offset) + "]";
}

// Of an instruction, or null where no module has it.
std::string place(std::uintptr_t code) {
  const Module* module = code ? module_of(code) : nullptr;
  return module ? place(module->path, code - module->base) : "null";
}

// The return address is one past the call; the call is what has the line.
std::string called(std::uintptr_t code) { return place(code ? code - 1 : 0); }

std::string places(const Finding& finding) {
  std::string all = array_of(finding.places, [](const CodePlace& each) { return place(each.module, each.offset); });
  const std::string own = called(finding.code);
  return own == "null" ? all : all.insert(1, finding.places.empty() ? own : own + ",");
}

std::string other(const Finding& f) {
  if (!f.has_other) return "null";
  return "[" + quoted(f.other_what) + "," + three(f.other_block) + "," + three(f.other_thread) + "," +
         called(f.other_code) + "]";
}

std::string written(const Finding& f, bool with_places = true) {
  std::string out = "{\"check\":" + quoted(f.check) + ",\"what\":" + quoted(f.what) + ",\"space\":" + quoted(f.space) +
                    ",\"array\":" + quoted(f.array) + ",\"type\":" + quoted(f.type) +
                    ",\"index\":" + std::to_string(f.index) + ",\"elements\":" + std::to_string(f.elements) +
                    ",\"element\":" + std::to_string(f.element) + ",\"kernel\":" + quoted(f.kernel) +
                    ",\"file\":" + quoted(f.file) + ",\"line\":" + std::to_string(f.line) +
                    ",\"column\":" + std::to_string(f.column) + ",\"barrier\":" + std::to_string(f.barrier_line) +
                    (with_places ? ",\"launched\":" + std::to_string(f.launched) + ",\"places\":" + places(f) : "");
  out += ",\"block\":" + (f.in_thread ? three(f.block) : "null") +
         ",\"thread\":" + (f.in_thread ? three(f.thread) : "null") + ",\"other\":" + other(f);
  return out + ",\"warning\":" + (f.warning ? "true" : "false") + ",\"message\":" + quoted(f.message) +
         ",\"count\":" + std::to_string(f.count) + ",\"first\":" + std::to_string(f.first) + "}";
}

}  // namespace

namespace {
// The judge drops such errors where something else explains them (grader/judging/facts.py).
bool may_be_dropped(const Finding& f) {
  return f.check == "int_overflow" || (f.check == "illegal_address" && (f.message == "host" || f.message == "nowhere"));
}

// The text of a finding for the monitor, in which every name has a bounded length.
std::string report_text_of(Finding f) {
  constexpr std::size_t longest_message = 2000;
  for (std::string* name : {&f.check, &f.what, &f.space, &f.array, &f.type, &f.kernel, &f.file, &f.other_what})
    *name = shorten_name(*name);
  if (f.message.size() > longest_message) f.message.resize(longest_message);
  return written(f, false);
}
}  // namespace

// Errors come before warnings, and the first of many are reported.
std::string reported_findings(std::size_t room) {
  constexpr std::size_t most = 64;
  std::vector<Finding> all = list_reported();
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.warning, may_be_dropped(a), a.first) < std::tuple(b.warning, may_be_dropped(b), b.first);
  });
  std::string found = "[";
  bool full = false;
  std::size_t listed = 0;
  for (const Finding& each : all) {
    if (full || listed == most) break;
    const std::string text = report_text_of(each);
    full = found.size() + text.size() + 2 > room;
    if (!full) found += (listed++ ? "," : "") + text;
  }
  return found + "]";
}

extern "C" {

// Has this process obey a monitor; see run/monitor.h. Works once.
SIMT_API int simt_open_monitor(int orders, int report, int inputs) {
  if (!open_monitor(orders, report, inputs)) return 0;
  install_handlers();
  return obey();
}

// The first write to each input in this command: [[offset, kernel, block, thread, place]].
SIMT_API const char* simt_input_writes() {
  return kept(array_of(writes(), [](const PlacedWrite& each) {
    const InputWrite& w = each.write;
    const dim3 block(w.block[0], w.block[1], w.block[2]), thread(w.thread[0], w.thread[1], w.thread[2]);
    return "[" + std::to_string(w.offset) + "," + quoted(w.kernel) + "," + (w.in_kernel ? three(block) : "null") + "," +
           (w.in_kernel ? three(thread) : "null") + "," + (w.in_kernel ? place(each.code) : "null") + "]";
  }));
}

// A monitor's orders come before these, except for the number of threads.
SIMT_API void simt_set_options(int schedule, unsigned long long seed, double seconds, int threads, int mode, int idle) {
  const bool obeys = obey();
  const ChangedOptions now;
  now->threads = threads;
  if (obeys) return;
  now->mode = static_cast<Mode>(mode);
  now->schedule = schedule;
  now->seed = seed;
  now->seconds = seconds;
  now->idle = idle != 0;
}

SIMT_API void simt_set_guard(int guard) {
  if (!obey()) set_guard(static_cast<Guard>(guard));
}

// f: the figures of simt.Device, in its order.
SIMT_API void simt_set_device(const char* name, const long long* f) {
  Device device{};
  std::snprintf(device.name, sizeof device.name, "%s", name);
  device.major = static_cast<int>(f[0]);
  device.minor = static_cast<int>(f[1]);
  device.multiprocessors = static_cast<int>(f[2]);
  device.threads_per_multiprocessor = static_cast<int>(f[3]);
  device.blocks_per_multiprocessor = static_cast<int>(f[4]);
  device.registers_per_multiprocessor = static_cast<int>(f[5]);
  device.clock_khz = static_cast<int>(f[6]);
  device.l2_bytes = f[7];
  device.global_bytes = f[8];
  device.shared_per_block = f[9];
  device.shared_per_block_optin = f[10];
  device.shared_per_multiprocessor = f[11];
  device.memory_khz = static_cast<int>(f[12]);
  device.memory_bus_bits = static_cast<int>(f[13]);
  device.copy_engines = static_cast<int>(f[14]);
  device.has_ecc = f[15] != 0;
  set_device(device);
}

// What checked launches found, and forgets it.
SIMT_API const char* simt_take_findings() {
  return kept(array_of(take_findings(), [](const Finding& f) { return written(f); }));
}

// Where checked kernels used atomic operations, and forgets it: [[kernel, kind, place]].
SIMT_API const char* simt_take_atomics() {
  return kept(array_of(take_atomics(), [](const auto& site) {
    return "[" + quoted(site.second.kernel) + "," + std::to_string(site.second.kind) + "," + called(site.first) + "]";
  }));
}

// A moment for simt_leaks().
SIMT_API unsigned long long simt_now() { return now(); }

// What programs have allocated since a moment and not freed: [[bytes, place]].
SIMT_API const char* simt_leaks(unsigned long long since) {
  return kept(array_of(
      leaks(since), [](const Leak& leak) { return "[" + std::to_string(leak.bytes) + "," + called(leak.code) + "]"; }));
}

// Frees what a program has left allocated when it ended.
SIMT_API void simt_free_memory() { release_all(); }

// The newest launches, at most 16, oldest first, and forgets them: [[kernel, grid, block]].
SIMT_API const char* simt_take_launches() {
  return kept(array_of(take_launches(), [](const Launched& launch) {
    return "[" + quoted(launch.kernel) + "," + three(launch.grid) + "," + three(launch.block) + "]";
  }));
}

}  // extern "C"

}  // namespace simt
