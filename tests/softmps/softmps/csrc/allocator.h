// The caching allocator: buffers are reused, kept when freed, and pin the heap they lie in.
#pragma once

#include "graphs.h"
#include "heap.h"
#include "limits.h"
#include "queue.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <mutex>
#include <set>
#include <vector>

namespace softmps {

constexpr size_t kSmall = MiB, kMiddle = 10 * MiB, kRound = 2 * MiB;
constexpr size_t kSmallHeap = 8 * MiB, kMiddleHeap = 32 * MiB, kLargeHeap = GiB;
constexpr size_t kOversize = 32 * MiB;    // a cached buffer this much too big is not handed out
constexpr size_t kOtherMetal = 3 * MiB;   // what Metal itself holds as soon as it is in use

inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Our choice: Metal's own answer (heapBufferSizeAndAlign) is not documented.
inline size_t aligned(size_t n) { return round_up(n, n <= 16 * KiB ? 256 : 16 * KiB); }

struct BySize {
  bool operator()(const Buffer* a, const Buffer* b) const {
    return a->size != b->size ? a->size < b->size : a->id < b->id;
  }
};

struct Pool {
  std::vector<Heap*> heaps;
  std::set<Buffer*, BySize> idle;

  std::set<Buffer*, BySize>::iterator fit(size_t size) const {
    Buffer key{nullptr, 0, size, 0};
    return idle.lower_bound(&key);
  }
  Heap* heap_for(size_t size) const {  // the one whose largest gap fits best
    Heap* best = nullptr;
    for (auto* heap : heaps)
      if (heap->largest_gap() >= size && (!best || heap->largest_gap() < best->largest_gap()))
        best = heap;
    return best;
  }
};

using Stat = c10::CachingAllocator::Stat;

class Allocator {
 public:
  std::mutex lock;
  Stat allocated, reserved;

  // Real MPS constructs its allocator on the first allocation or the first question about memory.
  void construct() {
    std::lock_guard<std::mutex> guard(lock);
    construct_locked();
  }
  bool constructed() const { return ready; }

  Buffer* take(size_t asked) {
    std::unique_lock<std::mutex> guard(lock);
    construct_locked();
    TORCH_CHECK(asked < max_buffer(), "Invalid buffer size: ", human(asked));
    const size_t size = aligned(asked);
    Pool& pool = size <= kSmall ? small : large;
    bool pressure = &pool == &large && driver() >= limits.low;
    Buffer* b = reuse(pool, size, pressure);
    if (!b && pressure) collect_garbage(pool);
    if (!b) b = carve(pool, size, pressure);
    if (!b) {
      drain_unlocked(guard);
      b = drop_enough(pool, size) ? carve(pool, size, pressure) : nullptr;
    }
    if (!b) drop_idle();
    if (!b) b = carve(pool, size, pressure);
    if (!b) out_of_memory(reserved.current, other(), limits.high, size);
    b->last_use = ++clock;
    allocated.increase(b->size);
    return b;
  }
  void give(Buffer* b) {
    std::lock_guard<std::mutex> guard(lock);
    allocated.decrease(b->size);
    pool_of(b).idle.insert(b);
  }
  void release() {
    std::unique_lock<std::mutex> guard(lock);
    construct_locked();
    drain_unlocked(guard);
    drop_idle();
  }
  size_t driver() const { return reserved.current + other(); }
  void set_high_ratio(double ratio) {
    construct();
    std::lock_guard<std::mutex> guard(lock);
    limits.set_high_ratio(ratio);
  }
  void set_limit(size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    limit_given = true;
    limits.high = bytes ? bytes : kUnlimited;
  }

 private:
  Pool small, large;
  Limits limits;
  std::atomic<bool> ready{false};
  bool limit_given = false;
  uint64_t heap_ids = 0, buffer_ids = 0, clock = 0;

  size_t other() const { return (ready ? kOtherMetal : 0) + graphs().bytes(); }
  Pool& pool_of(const Buffer* b) { return b->size <= kSmall ? small : large; }
  bool fits(size_t size) const { return limits.high == kUnlimited || driver() + size <= limits.high; }

  void construct_locked() {
    if (ready) return;
    const size_t given = limits.high;
    limits.read_environment();
    if (limit_given) limits.high = given;
    ready = true;
  }
  static void drain_unlocked(std::unique_lock<std::mutex>& guard) {
    guard.unlock();  // queued work is not to wait for an allocator that waits for it
    queue().drain();
    guard.lock();
  }
  // A cached buffer, unless it is far too big: then room is made for a smaller one in its place,
  // which also ends the pressure.
  Buffer* reuse(Pool& pool, size_t size, bool& pressure) {
    if (!fits(size)) return nullptr;
    auto found = pool.fit(size);
    if (found == pool.idle.end()) return nullptr;
    Buffer* b = *found;
    if (b->size > size + kOversize && !b->retained) {
      if (!settings.heaps || pool.heap_for(size)) return nullptr;
      drop(pool, b, false);
      pressure = false;
      return nullptr;
    }
    pool.idle.erase(found);
    return b;
  }
  Buffer* carve(Pool& pool, size_t size, bool pressure) {
    if (!fits(size)) return nullptr;
    Heap* heap = pool.heap_for(size);
    if (!heap) heap = add_heap(pool, size, pressure);
    return heap ? heap->place(size, ++buffer_ids) : nullptr;
  }
  Heap* add_heap(Pool& pool, size_t size, bool pressure) {
    const bool whole = !settings.heaps || size >= kLargeHeap / 2 || (size >= kMiddle && pressure);
    const size_t n = !settings.heaps ? size
        : whole ? round_up(size, kRound)
        : size <= kSmall ? kSmallHeap
        : size < kMiddle ? kMiddleHeap : kLargeHeap;
    Heap* heap = Heap::create(n, ++heap_ids, !whole);
    if (!heap) return nullptr;
    pool.heaps.push_back(heap);
    reserved.increase(n);
    return heap;
  }
  void drop(Pool& pool, Buffer* b, bool and_empty_heap = true) {
    Heap* heap = b->heap;
    pool.idle.erase(b);
    heap->remove(b);
    if (heap->buffers || !and_empty_heap) return;
    pool.heaps.erase(std::find(pool.heaps.begin(), pool.heaps.end(), heap));
    reserved.decrease(heap->size);
    delete heap;
  }
  // The smallest cached buffer that is big enough, or the biggest ones that together are.
  bool drop_enough(Pool& pool, size_t size) {
    auto found = pool.fit(size);
    if (found != pool.idle.end()) return drop(pool, *found), true;
    size_t freed = 0;
    while (freed < size && !pool.idle.empty()) {
      freed += (*pool.idle.rbegin())->size;
      drop(pool, *pool.idle.rbegin());
    }
    return freed >= size;
  }
  void drop_idle() {
    for (auto* pool : {&small, &large})
      while (!pool->idle.empty()) drop(*pool, *pool->idle.begin());
  }
  void collect_garbage(Pool& pool) {  // the longest unused first, down to the low watermark
    while (driver() >= limits.low) {
      Buffer* oldest = nullptr;
      for (auto* b : pool.idle)
        if (!b->retained && (!oldest || b->last_use < oldest->last_use)) oldest = b;
      if (!oldest) return;
      drop(pool, oldest);
    }
  }
};

inline Allocator& allocator() {
  static auto* a = new Allocator;  // never destroyed: tensors may outlive static destruction
  return *a;
}

}  // namespace softmps
