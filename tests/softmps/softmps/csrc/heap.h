// One heap: a piece of memory from the system, in which buffers are placed and which goes back whole.
#pragma once

#include "settings.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>

namespace softmps {

struct Heap;

struct Buffer {
  Heap* heap;
  size_t offset, size;
  uint64_t id;
  uint64_t last_use = 0;
  std::atomic<int> retained{0};  // by queued work, as a command buffer retains an MTLBuffer

  void* data() const;
};

struct Heap {
  char* base;
  size_t size;
  uint64_t id;
  bool split;  // may hold several buffers
  size_t buffers = 0;
  std::map<size_t, size_t> gaps;  // offset -> length, never touching each other

  Heap(char* at, size_t n, uint64_t number, bool may_split)
      : base(at), size(n), id(number), split(may_split), gaps{{0, n}} {}
  ~Heap() { munmap(base, size); }

  // Untouched pages cost nothing, so a 1 GiB heap for a 10 MiB tensor is cheap here too.
  static Heap* create(size_t size, uint64_t id, bool split) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : new Heap(static_cast<char*>(at), size, id, split);
  }
  size_t largest_gap() const {
    size_t best = 0;
    for (auto& gap : gaps) best = std::max(best, gap.second);
    return best;
  }
  Buffer* place(size_t n, uint64_t buffer_id) {  // in the first gap that is long enough
    auto gap = std::find_if(gaps.begin(), gaps.end(), [n](auto& g) { return g.second >= n; });
    const auto [at, length] = *gap;
    gaps.erase(gap);
    if (length > n) gaps[at + n] = length - n;
    buffers++;
    return new Buffer{this, at, n, buffer_id};
  }
  void remove(Buffer* b) {
    auto gap = gaps.emplace(b->offset, b->size).first;
    join_next(gap);
    if (gap != gaps.begin()) join_next(std::prev(gap));
    buffers--;
    delete b;
  }

 private:
  void join_next(std::map<size_t, size_t>::iterator gap) {
    auto next = std::next(gap);
    if (next == gaps.end() || gap->first + gap->second != next->first) return;
    gap->second += next->second;
    gaps.erase(next);
  }
};

inline void* Buffer::data() const { return heap->base + offset; }

}  // namespace softmps
