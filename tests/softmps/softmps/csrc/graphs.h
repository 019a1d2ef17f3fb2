// The graph cache: one entry per new (op, shapes, dtypes), seen in driver but not in reserved.
#pragma once

#include "settings.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>

namespace softmps {

class Graphs {
 public:
  std::mutex lock;

  void note(const std::string& key) {
    std::lock_guard<std::mutex> guard(lock);
    if (known.insert(key).second) held += settings.graph_bytes;
  }
  void clear() {
    std::lock_guard<std::mutex> guard(lock);
    known.clear();
    held = 0;
  }
  size_t bytes() const { return held; }
  size_t count() {
    std::lock_guard<std::mutex> guard(lock);
    return known.size();
  }
  static void describe(std::string& key, const at::Tensor& t) {
    key += '|';
    key += c10::toString(t.scalar_type());
    for (auto n : t.sizes()) key += ',' + std::to_string(n);
  }

 private:
  std::unordered_set<std::string> known;
  std::atomic<size_t> held{0};
};

inline Graphs& graphs() {
  static auto* g = new Graphs;
  return *g;
}

}  // namespace softmps
