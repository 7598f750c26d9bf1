// Declares the runtime's side of a monitor: another process that gives orders for launches and reads what they did.
//
// The monitor makes both pages (simt/runtime/monitor.py has the same layout). It alone writes the page of orders, and
// the runtime obeys it whatever the options say that Python sets. The runtime alone writes the page of the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "run/memory.h"

namespace simt {

struct Job;
struct Launch;

// A command of the monitor has one number. The fields are those of Options.
struct Orders {
  char magic[8];
  std::uint64_t number;
  std::int64_t mode, schedule;
  std::uint64_t seed;
  double seconds;
  std::int64_t guard, idle;
  std::int64_t record;  // not 0: report the bytes that the host and that kernels write; the size of an element
  std::int64_t least;  // the smallest block, in bytes, whose bytes written by the host are reported
  std::int64_t watch;  // report operators on tensors of at least so many elements; 0: none
};

// The beginning of the report.
struct Report {
  std::uint64_t number;  // of the orders that the rest belongs to
  std::uint64_t launches, idle, checked;
  std::uint64_t unprobed;  // calls of functions without probes while checks were ordered
  std::uint64_t writes;  // records at report_writes
  std::uint64_t overflow;  // not 0: not all of the recorded bytes found room
  std::uint64_t leaks;  // allocations of this command that a program has not freed
  std::uint64_t text;  // bytes at report_text: JSON
  std::uint64_t data;  // bytes at report_data: records of RecordedBytes, each followed by its bytes
  std::uint64_t watching;  // not 0: operators are watched
  std::uint64_t errors;  // that the checks found, also those that the text does not list
};

// A write to an input. There is one record per input.
struct InputWrite {
  std::uint64_t offset;  // of the input in the monitor's memory
  std::uint32_t in_kernel, block[3], thread[3];
  char kernel[220];
};
static_assert(sizeof(InputWrite) == 256);

// Who wrote bytes. "Meanwhile" is while a kernel ran, and not by one of its threads: a function of the host that it calls
// or a system call, another thread or process. Only a launch with the checks on can tell that from the kernel.
enum class Writer : std::uint64_t { host, kernel, meanwhile };

struct RecordedBytes {
  Writer writer;
  std::uint64_t launch, bytes, reserved;
};

inline constexpr std::size_t report_writes = 4096, report_text = 512 << 10, report_data = 1 << 20;
inline constexpr std::size_t most_writes = (report_text - report_writes) / sizeof(InputWrite);

// Maps the pages from descriptors and closes those two. inputs: of the memory that map_input maps, which stays open.
// Returns false if it fails or a monitor is already there.
bool open_monitor(int orders, int report, int inputs);

SIMT_API bool monitored();
// Takes over new orders. Returns whether there is a monitor. Costs a few instructions where there are no new ones.
SIMT_API bool obey();
SIMT_API const Orders& orders();

void report_launch(const Launch& launch, bool checked, bool idle);
SIMT_API void report_unprobed();
SIMT_API void report_operator(const char* name, std::uint64_t elements);
SIMT_API void report_watching();
void publish();                       // writes the text of the report, if it has changed
void report_leaks(std::int64_t change);
void report_error();                  // that a check has found

// Called by the handler of a fault, which holds no lock and may have interrupted malloc.
void report_write(const InputWrite& write, std::uintptr_t code);
struct PlacedWrite {
  InputWrite write;
  std::uintptr_t code;
};
std::vector<PlacedWrite> writes();      // of this command

// Which bytes the host has written since the last launch, and which ones this launch writes (provenance.cpp).
// probed: what the kernel's threads have written by the checks' account, in order; null where nothing was checked.
void record_before(const Job& job);
void record_after(const Job& job, const std::vector<Extent>* probed);
void forget_records();
void append_record(Writer writer, const char* bytes, std::size_t count);
void report_overflow();      // not all of it is recorded

// Defined in check/ and process/.
std::vector<Extent> noted_arguments();
void forget_reported();
std::string reported_findings(std::size_t room);      // JSON: the errors, then the warnings, as many as find room

// Returns both ends of a long name, cut where grader/worker/failures.py cuts the same name.
std::string shorten_name(const std::string& name);

}  // namespace simt
