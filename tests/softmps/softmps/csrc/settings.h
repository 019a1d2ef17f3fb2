// The switches, as softmps/settings.py read and checked them, set once before the first use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softmps {

constexpr size_t KiB = size_t(1) << 10, MiB = size_t(1) << 20, GiB = size_t(1) << 30;

struct Settings {
  int64_t strict = 1;    // 0 count overlaps, 1 abort on one, 2 abort off the main thread too
  int64_t torch = 213;   // the torch whose MPS is modelled: major * 100 + minor
  size_t memory = 4 * GiB;
  bool heaps = true;
  size_t graph_bytes = 64 * KiB;  // 0: no graph cache
  bool queue = false;
  bool float64 = false;
};

inline Settings settings;

}  // namespace softmps
