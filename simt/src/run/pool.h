// Declares the pool of operating-system threads that run a launch's blocks.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "run/worker.h"

namespace simt {

class Pool {
 public:
  std::mutex launching;  // held for one launch

  // Runs the job's blocks on as many threads as the options say, or on one for a cooperative launch, until all have
  // ended or `seconds` are over.
  void run(Job& job, bool cooperative, double seconds);
  // Those of the workers that took part in the last launch.
  std::vector<CheckObserver*> checkers() const;

 private:
  using Clock = std::chrono::steady_clock;
  void start();
  bool start_one();
  void watch(Job& job, Clock::time_point deadline, std::unique_lock<std::mutex>& lock);
  void work(int index, Worker& worker, std::uint64_t seen);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::unique_ptr<std::thread>> threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<pthread_t> handles_;
  Job* job_ = nullptr;
  bool cooperative_ = false;
  int wanted_ = 0, running_ = 0;
  std::uint64_t generation_ = 0;
};

Pool& pool();

}  // namespace simt
