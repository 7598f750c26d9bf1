// Collects the findings of the checks, and adds the place and the memory to each.
#include "check/parts.h"
#include "run/monitor.h"
#include "run/options.h"

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
// The same for a monitor, since its newest orders: Python cannot take them.
std::map<FindingKey, Finding>& reported() {
  static auto* all = new std::map<FindingKey, Finding>;
  return *all;
}
std::map<std::uintptr_t, AtomicSite>& atomics() {
  static auto* all = new std::map<std::uintptr_t, AtomicSite>;
  return *all;
}

constexpr std::size_t most_findings = 200;  // errors, and as many warnings, which must not take their room
std::uint64_t moment = 0;     // guarded by check_mutex

FindingKey key_of(const Finding& f) {
  return {f.check, f.what + f.kernel + f.message, f.code, f.line ? f.line : f.launched, f.column, f.other_code};
}

auto place_of(const uint3& i) { return std::tuple(i.z, i.y, i.x); }

auto order_of(const Finding& f) {
  // Of several races between two blocks the one of the lowest address is reported: workers do not see them in order.
  const bool apart = f.has_other && place_of(f.block) != place_of(f.other_block);
  return std::tuple(f.warning, place_of(f.block), place_of(f.thread), place_of(f.other_block), place_of(f.other_thread),
                    apart ? f.index : 0);
}

}  // namespace

uint3 thread_at(unsigned linear, const dim3& block) {
  return {linear % block.x, linear / block.x % block.y, linear / (block.x * block.y)};
}

const char* verb(unsigned access) { return access & atomically ? "atomic" : access & writing ? "write" : "read"; }

std::uint64_t next_moment() {
  std::lock_guard lock(check_mutex);
  return ++moment;
}

namespace {
// Returns whether the finding is new.
bool add_to(std::map<FindingKey, Finding>& all, const FindingKey& key, Finding finding) {
  auto found = all.find(key);
  if (found == all.end()) {
    const auto alike = std::count_if(all.begin(), all.end(), [&](const auto& each) {
      return each.second.warning == finding.warning &&
             (each.second.check == "int_overflow") == (finding.check == "int_overflow");
    });
    if (static_cast<std::size_t>(alike) >= most_findings) return false;
    all.emplace(key, std::move(finding));
    return true;
  }
  // Which of several findings is reported must not depend on which worker came first.
  const std::uint64_t count = found->second.count + finding.count;
  finding.first = found->second.first = std::min(finding.first, found->second.first);
  if (order_of(finding) < order_of(found->second)) found->second = std::move(finding);
  found->second.count = count;
  return false;
}
}  // namespace

void add_finding(Finding finding) {
  std::lock_guard lock(check_mutex);
  const FindingKey key = key_of(finding);
  if (!finding.first) finding.first = ++moment;
  if (monitored() && add_to(reported(), key, finding) && !finding.warning) report_error();
  add_to(findings(), key, std::move(finding));
}

namespace {
// By the site of the read: races of plain reads with atomic operations. Guarded by check_mutex.
std::map<unsigned, std::map<FindingKey, Finding>>& held_back() {
  static auto* all = new std::map<unsigned, std::map<FindingKey, Finding>>;
  return *all;
}
}  // namespace

void hold_finding(Finding finding, unsigned site) {
  std::lock_guard lock(check_mutex);
  if (!finding.first) finding.first = ++moment;
  const FindingKey key = key_of(finding);
  add_to(held_back()[site], key, std::move(finding));
}

void release_findings(const std::unordered_set<unsigned>& sites) {
  std::map<unsigned, std::map<FindingKey, Finding>> all;
  {
    std::lock_guard lock(check_mutex);
    all.swap(held_back());
  }
  for (auto& [site, found] : all)
    for (auto& [key, finding] : found)
      if (!sites.contains(site)) add_finding(std::move(finding));
}

void forget_reported() {
  std::lock_guard lock(check_mutex);
  reported().clear();
}

std::vector<Finding> list_reported() {
  std::lock_guard lock(check_mutex);
  std::vector<Finding> all;
  for (const auto& [key, finding] : reported()) all.push_back(finding);
  return all;
}

void report_finding(const Fault& fault) {
  Finding finding;
  finding.check = fault.reason;
  finding.message = fault.message;
  finding.kernel = fault.kernel;
  finding.file = fault.file;
  finding.line = fault.line ? fault.line : fault.code.empty() ? fault.defined : 0;
  finding.launched = fault.defined;
  finding.in_thread = fault.in_thread;
  finding.block = fault.block;
  finding.thread = fault.thread;
  finding.places = fault.code;
  add_finding(std::move(finding));
}

std::vector<Finding> take_findings() {
  std::lock_guard lock(check_mutex);
  std::vector<Finding> all;
  if (options().crashed) {
    for (const auto& [key, finding] : findings()) all.push_back(finding);
    return all;
  }
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

// ---- place and memory ----

void Checker::locate(Finding& finding, const void* code) const { locate(finding, code, cursor.current); }

void Checker::locate_caller(Finding& finding, const void* code) {
  locate(finding, code);
  const auto [known, is_new] = callers_.try_emplace(code);
  if (is_new) known->second = places_of_calls();
  finding.places = known->second;
}

void Checker::locate(Finding& finding, const void* code, unsigned thread) const {
  const Launch& launch = *job_->launch;
  finding.kernel = launch.site.kernel;
  finding.file = launch.site.file;
  if (launch.site.is_library) finding.launched = launch.site.line;
  finding.code = reinterpret_cast<std::uintptr_t>(code);
  if (!code) finding.places = places_on_stack(thread);
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
  if (region.array >= 0)
    finding.array = job_->arrays[static_cast<std::size_t>(region.array)].name;
  else if (region.variable >= 0)
    finding.array = job_->module->variables[static_cast<std::size_t>(region.variable)].name;
  else if (region.array == -3)
    finding.space = "heap";
  else if (region.array == -2) {
    finding.array = dynamic_.name;
    finding.element = dynamic_.element ? std::min(dynamic_.element, bytes) : bytes;
  } else {
    if (called_from) finding.space = "texture";
    for (unsigned i = 0; i < launch.argument_count; ++i) {
      const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
      if (!pointer || pointer < region.base || pointer > region.base + region.bytes) continue;
      finding.element = std::max<std::size_t>(1, std::min(launch.arguments[i].element, bytes));
      finding.array = parameter_name(launch, i);
      break;
    }
  }
  finding.index = (static_cast<std::int64_t>(address) - static_cast<std::int64_t>(region.base)) /
                  static_cast<std::int64_t>(finding.element);
  if (address < region.base)
    finding.index = -static_cast<std::int64_t>((region.base - address + finding.element - 1) / finding.element);
  finding.elements = region.bytes / finding.element;
}

// ---- what warp exchanges report ----

// Lanes in the mask have returned. Reports those that made the same call as often, but with another mask.
void Checker::lanes_missing(const Meeting& meeting, unsigned warp, const WarpCall& call) {
  const unsigned here = static_cast<unsigned>(__builtin_ctz(meeting.arrived));
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!((meeting.mask & ~meeting.arrived) >> lane & 1) || call.times[lane] != call.times[here] ||
        call.mask[lane] == meeting.mask)
      continue;
    char masks[2][16];
    std::snprintf(masks[0], sizeof masks[0], "0x%08x", meeting.mask);
    std::snprintf(masks[1], sizeof masks[1], "0x%08x", call.mask[lane]);
    Finding finding;
    finding.check = "warp_divergence";
    locate(finding, nullptr, warp * 32 + here);
    finding.line = meeting.line;
    finding.message = "Thread " + coordinates(warp * 32 + here, blockDim) + " (lane " + std::to_string(here) +
                      ") calls " + meeting.what + " with mask " + masks[0] + ", but lane " + std::to_string(lane) +
                      ", which is in that mask, makes the same call with mask " + masks[1] +
                      ". All lanes in a mask must pass the same mask.";
    return add_finding(std::move(finding));
  }
}

void read_of_absent(unsigned mask, unsigned source, const char* what, int line) {
  Worker& worker = *this_worker;
  if (!worker.checker) return;
  const Critical critical(worker);
  Finding finding;
  finding.check = "warp_divergence";
  checker_of(&worker)->locate(finding, nullptr);
  finding.line = line;
  const unsigned lane = cursor.current % 32;
  const bool named = mask >> source & 1;
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const std::string gone = cursor.current / 32 * 32 + source < threads
                               ? " but has returned from the kernel without this call"
                               : " but does not exist: the block has only " + std::to_string(threads) + " threads";
  // The last lanes of a reduction read past the end of the mask, and the result does not depend on them.
  finding.warning = !named && (std::strstr(what, "_down_") || std::strstr(what, "_up_"));
  finding.message =
      "Lane " + std::to_string(lane) + " reads lane " + std::to_string(source) + " by " + what + ", " +
      (named ? "which is in the mask " + std::string(text) + gone : "which is not in the mask " + std::string(text)) +
      (finding.warning ? ". The value is undefined, which is harmless only if it is not used."
                       : ". The value is undefined. Read only from lanes in the mask that make this call.");
  add_finding(std::move(finding));
}

void read_of_unwritten(unsigned source, const char* what, int line) {
  Worker& worker = *this_worker;
  if (!worker.checker) return;
  const Critical critical(worker);
  Finding finding;
  finding.check = "uninitialized";
  finding.what = "read";
  checker_of(&worker)->locate(finding, nullptr);
  finding.line = line;
  finding.message = "Lane " + std::to_string(cursor.current % 32) + " reads a variable of lane " +
                    std::to_string(source) + " by " + what + ", which was never written. Initialize it in every lane.";
  add_finding(std::move(finding));
}

// Returns the name in what the compiler makes of __PRETTY_FUNCTION__, or nothing for a constructor, and for a function
// without a result, or with one that the compiler deduces.
static std::string name_with_result(std::string_view function) {
  std::size_t space = 0, i = 0;
  for (int depth = 0; i < function.size() && (function[i] != '(' || depth); ++i) {
    depth += (function[i] == '<') - (function[i] == '>');
    if (function[i] == ' ' && !depth) space = i;
  }
  if (function.substr(0, i).ends_with("operator") && function.substr(i).starts_with("()")) i += 2;
  if (function.substr(0, space).ends_with("operator")) return std::string(function.substr(0, i));  // a conversion
  const std::string_view before = function.substr(0, space);
  const std::string_view last = before.substr(before.rfind(' ') + 1);  // npos + 1 is 0
  for (const char* word : {"", "void", "auto", "constexpr", "static", "virtual", "inline"})
    if (last == word) return {};
  return std::string(function.substr(space + 1, i - space - 1));
}

void no_result(const char* function) {
  if (!this_worker || !this_worker->checker) return;
  const std::string name = name_with_result(function);
  if (name.empty()) return;
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "uninitialized";
  finding.what = "result";
  finding.type = name;
  checker_of(this_worker)->locate(finding, __builtin_return_address(0));
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
  if (file[0] == '/') {  // in a header: the program's files have no full path
    checker_of(this_worker)->locate_caller(finding, code);
  } else {
    checker_of(this_worker)->locate(finding, code);
    finding.file = file;
    finding.line = line;
  }
  add_finding(std::move(finding));
}

void check_overflow(const char* file, int line, const char* what, const char* type, const void* code) {
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "int_overflow";
  finding.what = what;
  finding.type = type;
  if (file[0] == '/') {  // in a header, as of a library function's sum: the program's files have no full path
    checker_of(this_worker)->locate_caller(finding, code);
    finding.line = finding.launched;
  } else {
    checker_of(this_worker)->locate(finding, code);
    finding.file = file;
    finding.line = line;
  }
  add_finding(std::move(finding));
}

}  // namespace simt
