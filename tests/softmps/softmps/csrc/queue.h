// The device's own thread: runs queued kernels one after the other, long after the call returned.
#pragma once

#include "counters.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <thread>

namespace softmps {

class Queue {
 public:
  std::mutex lock;

  void submit(std::function<void()> work) {
    std::lock_guard<std::mutex> guard(lock);
    start();
    pending.push_back(std::move(work));
    unfinished++;
    counters.queued++;
    arrived.notify_one();
  }
  // Returns once all that was queued is done; raises what a queued kernel raised.
  void drain() {
    if (!unfinished && !failed) return;
    std::unique_lock<std::mutex> guard(lock);
    emptied.wait(guard, [this] { return unfinished == 0; });
    failed = false;
    if (auto error = std::exchange(failure, nullptr)) std::rethrow_exception(error);
  }
  int64_t length() const { return unfinished; }
  // The child of a fork has no device thread; what was queued is the parent's to finish.
  void forget_after_fork() {
    pending.clear();
    unfinished = 0;
    failed = false;
    failure = nullptr;
    started = false;
    new (&arrived) std::condition_variable;
    new (&emptied) std::condition_variable;
  }

 private:
  std::deque<std::function<void()>> pending;
  std::condition_variable arrived, emptied;
  std::atomic<int64_t> unfinished{0};
  std::exception_ptr failure;
  std::atomic<bool> failed{false};  // also once all work is done: the next drain raises it
  bool started = false;

  void start() {  // with lock held
    if (std::exchange(started, true)) return;
    std::thread([this] { run(); }).detach();
    static const int once = std::atexit([] { drain_at_exit(); });  // torch dies after us
    (void)once;
  }
  static void drain_at_exit();
  void run() {
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
      arrived.wait(guard, [this] { return !pending.empty(); });
      auto work = std::move(pending.front());
      pending.pop_front();
      guard.unlock();
      std::exception_ptr error;
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      work = nullptr;
      guard.lock();
      if (error && !failure) failure = error;
      if (error) failed = true;
      if (--unfinished == 0) emptied.notify_all();
    }
  }
};

inline Queue& queue() {
  static auto* q = new Queue;
  return *q;
}

inline void Queue::drain_at_exit() {
  try {
    queue().drain();
  } catch (...) {  // nobody is left to tell
  }
}

}  // namespace softmps
