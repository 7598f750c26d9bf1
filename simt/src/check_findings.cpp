// Keeps what the checks find, and says of each finding where it is and which memory it concerns.
#include "check_parts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>

namespace simt {

std::mutex check_mutex;

namespace {

using FindingKey = std::tuple<std::string, std::string, std::uintptr_t, int, int, std::uintptr_t>;
std::map<FindingKey, Finding>& findings() {
  static auto* all = new std::map<FindingKey, Finding>;
  return *all;
}
std::map<std::uintptr_t, AtomicSite>& atomics() {
  static auto* all = new std::map<std::uintptr_t, AtomicSite>;
  return *all;
}

constexpr std::size_t most_findings = 200;
std::uint64_t moment = 0;     // guarded by check_mutex

auto order_of(const Finding& f) {
  return std::tuple(f.block.z, f.block.y, f.block.x, f.thread.z, f.thread.y, f.thread.x, f.other_thread.z, f.other_thread.y, f.other_thread.x);
}

// The names of the kernel's parameters.
std::vector<std::string> parameters(const Launch& launch) {
  std::vector<std::string> names(1);
  for (const char* c = launch.site.parameters; c && *c; ++c) {
    if (*c == ',') names.emplace_back();
    else names.back() += *c;
  }
  return names;
}

}  // namespace

uint3 thread_at(unsigned linear, const dim3& block) { return {linear % block.x, linear / block.x % block.y, linear / (block.x * block.y)}; }

const char* verb(unsigned access) { return access & atomically ? "atomic" : access & writing ? "write" : "read"; }

std::uint64_t next_moment() {
  std::lock_guard lock(check_mutex);
  return ++moment;
}

void add_finding(Finding finding) {
  std::lock_guard lock(check_mutex);
  const FindingKey key{finding.check, finding.what + finding.kernel + finding.message, finding.code, finding.line, finding.column, finding.other_code};
  if (!finding.first) finding.first = ++moment;
  auto found = findings().find(key);
  if (found == findings().end()) {
    if (findings().size() < most_findings) findings().emplace(key, std::move(finding));
    return;
  }
  // Of many, the one that is told must not depend on which worker was first.
  const std::uint64_t count = found->second.count + finding.count;
  finding.first = found->second.first = std::min(finding.first, found->second.first);
  if (order_of(finding) < order_of(found->second)) found->second = std::move(finding);
  found->second.count = count;
}

Finding finding_of(const Fault& fault) {
  Finding finding;
  finding.check = fault.reason;
  finding.message = fault.message;
  finding.kernel = fault.kernel;
  finding.file = fault.file;
  finding.line = fault.line ? fault.line : fault.code.empty() ? fault.defined : 0;
  finding.in_thread = fault.in_thread;
  finding.block = fault.block;
  finding.thread = fault.thread;
  finding.places = fault.code;
  return finding;
}

std::vector<Finding> take_findings() {
  std::lock_guard lock(check_mutex);
  std::vector<Finding> all;
  for (auto& [key, finding] : findings()) all.push_back(std::move(finding));
  findings().clear();
  return all;
}

void note_atomic(const void* code, unsigned kind, const char* kernel) {
  std::lock_guard lock(check_mutex);
  atomics().try_emplace(reinterpret_cast<std::uintptr_t>(code), AtomicSite{kind, kernel});
}

std::map<std::uintptr_t, AtomicSite> take_atomics() {
  std::lock_guard lock(check_mutex);
  return std::exchange(atomics(), {});
}

// ---- where and which ----

void Checker::locate(Finding& finding, const void* code) const { locate(finding, code, cursor.current); }

void Checker::locate(Finding& finding, const void* code, unsigned thread) const {
  const Launch& launch = *job_->launch;
  finding.kernel = launch.site.kernel;
  finding.file = launch.site.file;
  finding.code = reinterpret_cast<std::uintptr_t>(code);
  finding.in_thread = true;
  finding.block = blockIdx;
  finding.thread = thread_at(thread, blockDim);
}

void Checker::describe_other(Finding& finding, std::uint64_t k) const {
  const dim3& grid = job_->launch->config.grid;
  const std::uint64_t block = moment(k).block;
  finding.has_other = true;
  finding.other_block = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
                         static_cast<unsigned>(block / grid.x / grid.y)};
  finding.other_thread = thread_at(key::thread(k), job_->launch->config.block);
  finding.other_code = state_.text + (std::uintptr_t(key::site(k)) << 2);
}

void Checker::name(Finding& finding, const Region& region, std::uintptr_t address, std::size_t bytes) const {
  const Launch& launch = *job_->launch;
  finding.space = region.kind == Slot::shared ? "shared" : region.kind == Slot::local ? "local" : "global";
  finding.element = bytes;
  if (region.array >= 0) finding.array = job_->arrays[static_cast<std::size_t>(region.array)].name;
  else if (region.variable >= 0) finding.array = job_->module->variables[static_cast<std::size_t>(region.variable)].name;
  else if (region.array == -2) {
    finding.array = dynamic_.name;
    finding.element = dynamic_.element ? std::min(dynamic_.element, bytes) : bytes;
  } else {
    const auto names = parameters(launch);
    for (unsigned i = 0; i < launch.argument_count; ++i) {
      const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
      if (!pointer || pointer < region.base || pointer > region.base + region.bytes) continue;
      finding.element = std::max<std::size_t>(1, std::min(launch.arguments[i].element, bytes));
      finding.array = i < names.size() ? names[i] : "";
      break;
    }
  }
  finding.index = (static_cast<std::int64_t>(address) - static_cast<std::int64_t>(region.base)) / static_cast<std::int64_t>(finding.element);
  if (address < region.base) finding.index = -static_cast<std::int64_t>((region.base - address + finding.element - 1) / finding.element);
  finding.elements = region.bytes / finding.element;
}

// ---- what others tell ----

void read_of_absent(unsigned mask, unsigned source, const char* what, int line) {
  Worker& worker = *this_worker;
  if (!worker.checker) return;
  const Critical critical(worker);
  Finding finding;
  finding.check = "warp_divergence";
  worker.checker->locate(finding, nullptr);
  finding.line = line;
  const unsigned lane = cursor.current % 32;
  const bool named = mask >> source & 1;
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  // At the end of a mask a reduction's lanes read beyond it by nature, and the result does not depend on theirs.
  finding.warning = !named && (std::strstr(what, "_down_") || std::strstr(what, "_up_"));
  finding.message = "Lane " + std::to_string(lane) + " reads lane " + std::to_string(source) + " by " + what + ", " +
                    (named ? "which has returned or never existed, although the mask " + std::string(text) + " names it"
                           : "which the mask " + std::string(text) + " does not name") +
                    ": the value is undefined" + (finding.warning ? ", which is harmless only where nobody uses it." : ".");
  add_finding(std::move(finding));
}

void read_of_unwritten(unsigned source, const char* what, int line) {
  Worker& worker = *this_worker;
  if (!worker.checker) return;
  const Critical critical(worker);
  Finding finding;
  finding.check = "uninitialized";
  finding.what = "read";
  worker.checker->locate(finding, nullptr);
  finding.line = line;
  finding.message = "Lane " + std::to_string(cursor.current % 32) + " reads a variable of lane " + std::to_string(source) + " by " + what +
                    ", which that lane has not written.";
  add_finding(std::move(finding));
}

void check_index(const char* file, int line, int column, const char* type, std::int64_t index, const void* code) {
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "out_of_bounds";
  finding.what = "index";
  finding.type = type;
  finding.index = index;
  finding.column = column;
  this_worker->checker->locate(finding, code);
  finding.file = file;
  finding.line = line;
  add_finding(std::move(finding));
}

void check_overflow(const char* file, int line, const char* what, const char* type, const void* code) {
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "int_overflow";
  finding.what = what;
  finding.type = type;
  this_worker->checker->locate(finding, code);
  finding.file = file;
  finding.line = line;
  add_finding(std::move(finding));
}

}  // namespace simt
