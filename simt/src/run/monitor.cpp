// Obeys a monitor's orders and reports to it what launches did.
#include "run/monitor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "run/options.h"
#include "run/worker.h"

namespace simt {
namespace {

constexpr char magic[] = "SIMTMON1";
constexpr std::size_t most_kinds = 256;      // of launches that differ in kernel, grid or block, and of operators

constexpr std::size_t page_bytes = 4096;

// What decides how kernels run and where the report lies. Python code can write to addresses, with numpy for instance:
// while a monitor is obeyed, this page is read-only except while the runtime writes to it.
struct alignas(page_bytes) Sealed {
  const volatile Orders* page = nullptr;
  char* report = nullptr;
  std::size_t report_bytes = 0;
  Orders current{};
  std::atomic<std::uint64_t> obeyed{0};
  Options options;
};
Sealed sealed;
std::mutex unsealing;   // held while the page is writable; no other mutex is taken while it is held

void open_seal() {
  unsealing.lock();
  if (sealed.page) mprotect(&sealed, sizeof sealed, PROT_READ | PROT_WRITE);
}

void close_seal() {
  if (sealed.page) mprotect(&sealed, sizeof sealed, PROT_READ);
  unsealing.unlock();
}

struct Unsealed {
  Unsealed() { open_seal(); }
  ~Unsealed() { close_seal(); }
  Unsealed(const Unsealed&) = delete;
};

std::mutex obeying;     // held while new orders are taken over
std::mutex mutex;       // guards all that follows; innermost: no other mutex is taken while it is held
using LaunchKey = std::tuple<std::string, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned>;
std::map<LaunchKey, std::uint64_t> kinds;
std::map<std::string, std::uint64_t> operators;
bool more = false;      // kinds has no room for all
PlacedWrite placed[most_writes];
std::uint64_t launch_number = 0;

Report& head() { return *reinterpret_cast<Report*>(sealed.report); }

// Makes the report writable while it exists. The mutex must be held.
struct Writing {
  Writing() { mprotect(sealed.report, sealed.report_bytes, PROT_READ | PROT_WRITE); }
  ~Writing() { mprotect(sealed.report, sealed.report_bytes, PROT_READ); }
  Writing(const Writing&) = delete;
};

template <class T>
T* map_descriptor(int descriptor, int protection, std::size_t& bytes) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) return nullptr;
  bytes = static_cast<std::size_t>(status.st_size);
  void* map = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  return map == MAP_FAILED ? nullptr : static_cast<T*>(map);
}

// Copies the orders as a whole: their number is written last and must not change meanwhile.
Orders read_orders() {
  for (;;) {
    Orders copy;
    const std::uint64_t number = sealed.page->number;
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(&copy, const_cast<const Orders*>(sealed.page), sizeof copy);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (sealed.page->number == number && copy.number == number) return copy;
  }
}

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out + "\"";
}

std::string text_of_launches() {
  std::string out;
  for (const auto& [key, count] : kinds) {
    const auto& [kernel, gx, gy, gz, bx, by, bz] = key;
    auto three = [](unsigned x, unsigned y, unsigned z) {
      return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
    };
    out += (out.empty() ? "[" : ",[") + quote(kernel) + "," + three(gx, gy, gz) + "," + three(bx, by, bz) + "," +
           std::to_string(count) + "]";
  }
  return "[" + out + "]";
}

std::string text_of_operators() {
  std::string out;
  for (const auto& [name, elements] : operators)
    out += (out.empty() ? "[" : ",[") + quote(name) + "," + std::to_string(elements) + "]";
  return "[" + out + "]";
}

}  // namespace

bool open_monitor(int orders_descriptor, int report_descriptor, int inputs) {
  std::lock_guard lock(mutex);
  if (sealed.page) return false;
  std::size_t bytes = 0;
  const auto* orders = map_descriptor<const Orders>(orders_descriptor, PROT_READ, bytes);
  if (!orders || bytes < sizeof(Orders) || std::memcmp(orders->magic, magic, sizeof orders->magic) != 0) return false;
  sealed.report = map_descriptor<char>(report_descriptor, PROT_READ | PROT_WRITE, sealed.report_bytes);
  if (!sealed.report || sealed.report_bytes <= report_data) return false;
  mprotect(sealed.report, sealed.report_bytes, PROT_READ);
  close(orders_descriptor);
  close(report_descriptor);
  fcntl(inputs, F_SETFD, FD_CLOEXEC);
  set_inputs(inputs);
  const Unsealed closes_afterwards;
  sealed.page = orders;
  return true;
}

std::string shorten_name(const std::string& name) {
  constexpr std::size_t half = 100;  // characters: NAME / 2 in grader/worker/failures.py
  auto starts_character = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xc0) != 0x80; };
  std::size_t characters = 0;
  for (std::size_t at = 0; at < name.size(); ++at) characters += starts_character(at);
  if (characters <= 2 * half) return name.size() <= 8 * half ? name : name.substr(0, 8 * half);
  std::size_t head = 0, tail = name.size();
  for (std::size_t seen = 0; head < name.size(); ++head)
    if (starts_character(head) && ++seen > half) break;
  for (std::size_t seen = 0; seen < half;) seen += starts_character(--tail);
  return name.substr(0, head) + "\n[...]\n" + name.substr(tail);
}

bool monitored() { return sealed.page != nullptr; }

const Orders& orders() { return sealed.current; }

const Options& options() { return sealed.options; }
ChangedOptions::ChangedOptions() { open_seal(); }
ChangedOptions::~ChangedOptions() { close_seal(); }
Options* ChangedOptions::operator->() const { return &sealed.options; }

bool obey() {
  if (!sealed.page) return false;
  if (sealed.page->number == sealed.obeyed.load(std::memory_order_acquire)) return true;
  std::lock_guard one(obeying);
  if (sealed.page->number == sealed.obeyed.load(std::memory_order_acquire)) return true;
  const Orders current = read_orders();
  {
    const Unsealed open;
    sealed.current = current;
    Options& now = sealed.options;
    now.mode = current.mode == 1 ? Mode::check : current.mode == 2 ? Mode::count : Mode::plain;
    now.schedule = static_cast<int>(current.schedule);
    now.seed = current.seed;
    now.seconds = current.seconds;
    now.idle = current.idle != 0;
  }
  set_guard(static_cast<Guard>(current.guard));
  begin_command();
  forget_reported();
  forget_records();
  std::lock_guard lock(mutex);
  kinds.clear();
  operators.clear();
  more = false;
  launch_number = 0;
  const Writing writing;
  const bool watching = head().watching != 0;
  head() = Report{};
  head().number = current.number;
  head().watching = watching;
  const Unsealed open;
  sealed.obeyed.store(current.number, std::memory_order_release);
  return true;
}

void report_launch(const Launch& launch, bool checked, bool idle) {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const Config& c = launch.config;
  const LaunchKey key{shorten_name(launch.site.kernel), c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z};
  ++launch_number;
  if (const auto found = kinds.find(key); found != kinds.end())
    ++found->second;
  else if (kinds.size() < most_kinds)
    kinds.emplace(key, 1);
  else
    more = true;
  const Writing writing;
  ++head().launches;
  head().checked += checked;
  head().idle += idle;
}

void report_unprobed() {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const Writing writing;
  ++head().unprobed;
}

void report_leaks(std::int64_t change) {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const Writing writing;
  head().leaks += static_cast<std::uint64_t>(change);
}

void report_error() {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const Writing writing;
  ++head().errors;
}

void report_watching() {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const Writing writing;
  head().watching = 1;
}

void report_operator(const char* name, std::uint64_t elements) {
  if (!sealed.page) return;
  {
    std::lock_guard lock(mutex);
    const std::string short_name = shorten_name(name);
    const auto found = operators.find(short_name);
    if (found != operators.end()) return;
    if (operators.size() >= most_kinds) return;
    operators.emplace(short_name, elements);
  }
  publish();
}

void publish() {
  if (!sealed.page) return;
  const std::string findings = reported_findings((report_data - report_text) / 2);
  std::lock_guard lock(mutex);
  std::string text = "{\"launches\":" + text_of_launches() + ",\"more\":" + (more ? "true" : "false") +
                     ",\"operators\":" + text_of_operators() + ",\"findings\":" + findings + "}";
  if (text.size() > report_data - report_text) text = "null";  // which the monitor takes for an error
  if (text.size() == head().text && std::memcmp(sealed.report + report_text, text.data(), text.size()) == 0) return;
  const Writing writing;
  std::memcpy(sealed.report + report_text, text.data(), text.size());
  head().text = text.size();
}

void report_write(const InputWrite& write, std::uintptr_t code) {
  if (!sealed.page) return;
  std::lock_guard lock(mutex);
  const std::uint64_t at = head().writes;
  if (at >= most_writes) return;
  placed[at] = {write, code};
  const Writing writing;
  std::memcpy(sealed.report + report_writes + at * sizeof write, &write, sizeof write);
  head().writes = at + 1;
}

std::vector<PlacedWrite> writes() {
  if (!sealed.page) return {};
  std::lock_guard lock(mutex);
  return {placed, placed + head().writes};
}

void report_overflow() {
  std::lock_guard lock(mutex);
  const Writing writing;
  head().overflow = 1;
}

void append_record(Writer writer, const char* bytes, std::size_t count) {
  std::lock_guard lock(mutex);
  const Writing writing;
  const std::size_t room = sealed.report_bytes - report_data, needed = sizeof(RecordedBytes) + (count + 7) / 8 * 8;
  if (head().data + needed > room) {
    head().overflow = 1;
    return;
  }
  char* at = sealed.report + report_data + head().data;
  const RecordedBytes record{writer, launch_number, count, 0};
  std::memcpy(at, &record, sizeof record);
  std::memcpy(at + sizeof record, bytes, count);
  head().data += needed;
}

}  // namespace simt
