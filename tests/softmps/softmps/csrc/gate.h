// Which threads are inside an op or a release, and the abort when the two overlap.
#pragma once

#include "counters.h"
#include "settings.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace softmps {

inline thread_local char thread_mark;  // its address names the thread, and survives fork

inline bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

[[noreturn]] inline void die(const std::string& why) {
  const std::string line = "softmps: " + why + "\n";
  [[maybe_unused]] auto written = write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

class Gate {
 public:
  std::mutex lock;

  // Before the op waits for the stream: an op that waits behind a release overlaps it too.
  void enter_op(const char* name) {
    std::lock_guard<std::mutex> guard(lock);
    counters.ops++;
    if (std::any_of(releases.begin(), releases.end(), is_other))
      clash(std::string("the op ") + name + " began on another thread while a release ran");
    ops.push_back({&thread_mark, name});
  }
  void leave_op() {
    std::lock_guard<std::mutex> guard(lock);
    erase_mine(ops);
  }
  void enter_release() {
    const bool main = on_main_thread();
    std::lock_guard<std::mutex> guard(lock);
    if (!main) counters.off_main++;
    if (!main && settings.strict > 1) die("a release was called off the main thread");
    auto other = std::find_if(ops.begin(), ops.end(), is_other);
    if (other != ops.end())
      clash(std::string("a release began while another thread was in the op ") + other->what);
    releases.push_back({&thread_mark, "release"});
  }
  void leave_release() {
    std::lock_guard<std::mutex> guard(lock);
    erase_mine(releases);
  }
  size_t in_flight() {
    std::lock_guard<std::mutex> guard(lock);
    return ops.size();
  }
  void keep_only_this_thread() {  // a forked child has no other
    for (auto* list : {&ops, &releases})
      list->erase(std::remove_if(list->begin(), list->end(), is_other), list->end());
  }

 private:
  struct Running {
    const char* thread;
    const char* what;
  };
  std::vector<Running> ops, releases;

  static bool is_other(const Running& r) { return r.thread != &thread_mark; }
  static void erase_mine(std::vector<Running>& list) {
    auto mine = std::find_if_not(list.begin(), list.end(), is_other);
    if (mine != list.end()) list.erase(mine);
  }
  static void clash(const std::string& what) {
    counters.overlaps++;
    if (settings.strict) die(what + "; on real MPS this can crash (SOFTMPS_STRICT)");
  }
};

inline Gate& gate() {
  static auto* g = new Gate;  // never destroyed: threads may outlive static destruction
  return *g;
}

// One serial command queue, as MPS has.
inline std::recursive_mutex& stream() {
  static auto* s = new std::recursive_mutex;
  return *s;
}

inline thread_local int op_depth = 0;

class OpScope {  // held by every kernel; an op within an op counts once
 public:
  explicit OpScope(const char* name) {
    if (op_depth == 0) gate().enter_op(name);
    op_depth++;
    stream().lock();
  }
  ~OpScope() {
    stream().unlock();
    if (--op_depth == 0) gate().leave_op();
  }
  OpScope(const OpScope&) = delete;
};

class ReleaseScope {
 public:
  ReleaseScope() {
    gate().enter_release();
    stream().lock();
  }
  ~ReleaseScope() {
    stream().unlock();
    gate().leave_release();
  }
  ReleaseScope(const ReleaseScope&) = delete;
};

}  // namespace softmps
