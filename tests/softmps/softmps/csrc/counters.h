// What happened so far, for tests that assert a call was or was not made.
#pragma once

#include <atomic>
#include <cstdint>

namespace softmps {

using Counter = std::atomic<int64_t>;

#define SOFTMPS_COUNTERS(X)                                                     \
  X(ops) X(empties) X(overlaps) X(off_main) X(queued) X(host_busy)              \
  X(synchronize) X(is_available) X(empty_cache) X(allocator_empty_cache)        \
  X(current_allocated) X(driver_allocated) X(recommended_max) X(device_stats)   \
  X(initialized_checks)

struct Counters {
#define X(name) Counter name{0};
  SOFTMPS_COUNTERS(X)
#undef X
};

inline Counters counters;

}  // namespace softmps
