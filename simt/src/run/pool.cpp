// Runs a launch's blocks on operating-system threads, which are reused for the next launch.
#include "run/pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "run/options.h"

namespace simt {

void Pool::run(Job& job, bool cooperative, double seconds) {
  start();
  std::unique_lock lock(mutex_);
  job_ = &job;
  cooperative_ = cooperative;
  const auto most =
      static_cast<std::uint64_t>(std::max(1, options().threads));  // an earlier launch may have started more
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
  while (threads_.size() < wanted) {
    const int index = static_cast<int>(threads_.size());
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    threads_.push_back(
        std::make_unique<std::thread>([this, index, &worker, seen = generation_] { work(index, worker, seen); }));
    threads_.back()->detach();
  }
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
  // Dynamic shared memory ends at a page that traps.
  constexpr std::size_t room = 256 * 1024;
  char* map =
      static_cast<char*>(mmap(nullptr, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(map + room, 4096, PROT_NONE);
  worker.dynamic_shared = map + room;
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
