// Runs a launch's blocks on operating-system threads, which are reused for the next launch.
#include "run/pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "run/options.h"

namespace simt {

void Pool::run(Job& job, bool cooperative, double seconds) {
  start();
  std::unique_lock lock(mutex_);
  job_ = &job;
  cooperative_ = cooperative;
  if (threads_.empty()) {
    Fault fault;
    fault.reason = "launch_error";
    fault.message = "There is not enough memory for a thread that runs the kernel's blocks.";
    fault.kernel = job.launch->site.kernel;
    fault.file = job.launch->site.file;
    fault.line = job.launch->site.line;
    return record(std::move(fault));
  }
  // An earlier launch may have started more than the options say, and a limit may have allowed fewer.
  const auto most =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max(1, options().threads)), threads_.size());
  wanted_ = cooperative ? 1 : static_cast<int>(std::min(most, job.blocks));
  running_ = wanted_;
  ++generation_;
  wake_.notify_all();
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (running_ > 0) {
    if (done_.wait_for(lock, std::chrono::milliseconds(job.cancelled ? 5 : 50)) == std::cv_status::timeout &&
        running_ > 0)
      watch(job, deadline, lock);
  }
  job_ = nullptr;
}

std::vector<CheckObserver*> Pool::checkers() const {
  std::vector<CheckObserver*> all;
  for (const auto& worker : workers_)
    if (worker->checker) all.push_back(std::exchange(worker->checker, nullptr));
  return all;
}

void Pool::start() {
  const auto wanted = static_cast<std::size_t>(std::max(1, options().threads));
  while (threads_.size() < wanted && start_one()) {}
}

// Starts one more thread. Returns false where a limit of memory or of threads allows no more: those there run all blocks.
bool Pool::start_one() {
  // Dynamic shared memory ends at a page that traps.
  constexpr std::size_t room = 256 * 1024, fence = 4096;
  void* map = mmap(nullptr, room + fence, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return false;
  const int index = static_cast<int>(threads_.size());
  auto worker = std::make_unique<Worker>();
  worker->dynamic_shared = static_cast<char*>(map) + room;
  mprotect(worker->dynamic_shared, fence, PROT_NONE);
  try {
    threads_.push_back(std::make_unique<std::thread>(
        [this, index, started = worker.get(), seen = generation_] { work(index, *started, seen); }));
  } catch (const std::system_error&) {
    munmap(map, room + fence);
    return false;
  }
  threads_.back()->detach();
  workers_.push_back(std::move(worker));
  return true;
}

void Pool::watch(Job& job, Clock::time_point deadline, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const bool stop = options().interrupted && options().interrupted();
  lock.lock();
  if (running_ == 0) return;
  if (Clock::now() > deadline && !job.cancelled) {
    job.timed_out = true;
    job.cancelled = true;
  }
  if (stop) job.cancelled = true;
  if (job.cancelled)
    for (auto& handle : handles_) pthread_kill(handle, abort_signal());
}

void Pool::work(int index, Worker& worker, std::uint64_t seen) {
  this_worker = &worker;
  use_alternate_stack();
  std::unique_lock lock(mutex_);
  handles_.push_back(pthread_self());
  for (;;) {
    wake_.wait(lock, [&] { return generation_ != seen; });
    seen = generation_;
    if (index >= wanted_) continue;
    Job& job = *job_;
    lock.unlock();
    if (cooperative_)
      run_cooperative(worker, job);
    else
      run_blocks(worker, job);
    lock.lock();
    if (--running_ == 0) done_.notify_all();
  }
}
Pool& pool() {
  // Its threads outlive main; a forked process has none of them and starts new ones.
  static Pool* instance = nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    instance = new Pool;
    pthread_atfork(nullptr, nullptr, [] { instance = new Pool; });
  });
  return *instance;
}

}  // namespace simt
