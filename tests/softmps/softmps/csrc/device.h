// How torch sees the device: its c10 allocators, its guard and the MPS hooks.
#pragma once

#include "allocator.h"
#include "dtypes.h"
#include "gate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace softmps {

inline const c10::Device kDevice{c10::DeviceType::MPS, 0};

inline c10::DataPtr allocate(size_t n) {
  if (n == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, kDevice};
  Buffer* b = allocator().take(n);
  auto free = [](void* context) { allocator().give(static_cast<Buffer*>(context)); };
  return {b->data(), b, free, kDevice};
}

inline void release_cache(bool graphs_too) {
  ReleaseScope scope;
  allocator().release();
  if (graphs_too) graphs().clear();
  counters.empties++;
}

// Up to torch 2.12 the MPS allocator was no c10::DeviceAllocator; torch's own check says so.
struct PlainAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override { return softmps::allocate(n); }
  void copy_data(void* to, const void* from, size_t n) const override {
    queue().drain();
    default_copy_data(to, from, n);
  }
};

struct DeviceAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t n) override { return softmps::allocate(n); }
  void copy_data(void* to, const void* from, size_t n) const override {
    queue().drain();
    default_copy_data(to, from, n);
  }
  bool initialized() override {
    counters.initialized_checks++;
    return allocator().constructed();
  }
  void emptyCache(c10::MempoolId_t = {0, 0}) override {
    counters.allocator_empty_cache++;
    release_cache(false);
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    counters.device_stats++;
    auto& a = allocator();
    std::lock_guard<std::mutex> guard(a.lock);
    c10::CachingDeviceAllocator::DeviceStats stats;  // MPS fills these only; the rest stays 0
    stats.allocated_bytes[0] = a.allocated;
    stats.reserved_bytes[0] = a.reserved;
    if (settings.torch >= 215) stats.active_bytes[0] = a.allocated;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    std::lock_guard<std::mutex> guard(allocator().lock);
    for (auto* s : {&allocator().allocated, &allocator().reserved}) s->reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex) override {
    std::lock_guard<std::mutex> guard(allocator().lock);
    for (auto* s : {&allocator().allocated, &allocator().reserved}) s->reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    allocator().construct();
    const size_t driver = allocator().driver(), all = settings.memory;
    return {all > driver ? all - driver : 0, all};
  }
};

inline c10::Allocator* torch_allocator() {
  static c10::Allocator* a = settings.torch >= 213
      ? static_cast<c10::Allocator*>(new DeviceAllocator) : new PlainAllocator;
  return a;
}

inline void synchronize() {
  counters.synchronize++;
  queue().drain();
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::MPS;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.is_mps(), "Expected a MPS device, but got ", d);
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream getDefaultStream(c10::Device d) const override { return getStream(d); }
  c10::Stream getNewStream(c10::Device d, int = 0) const override { return getStream(d); }
  c10::Stream exchangeStream(c10::Stream s) const override { return getStream(s.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::DeviceCapability getDeviceCapability(c10::Device d) const override {
    return settings.torch >= 212 ? capability() : DeviceGuardImplInterface::getDeviceCapability(d);
  }
  bool queryStream(const c10::Stream&) const override { return queue().length() == 0; }
  void synchronizeStream(const c10::Stream&) const override { synchronize(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { synchronize(); }
};

struct MPSHooks final : at::MPSHooksInterface {  // torch finds it by this very name
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }
  bool hasMPS() const override {
    counters.is_available++;
    return true;
  }
  bool isOnMacOSorNewer(unsigned major, unsigned minor) const override {
    return std::pair(major, minor) <= std::pair(15u, 1u);
  }
  // One generator for both devices, so that a seed gives the same numbers on each.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
  at::Allocator* getMPSDeviceAllocator() const override { return torch_allocator(); }
  void deviceSynchronize() const override { synchronize(); }
  void emptyCache() const override {
    counters.empty_cache++;
    release_cache(settings.torch >= 213);
  }
  size_t getCurrentAllocatedMemory() const override {
    counters.current_allocated++;
    allocator().construct();
    return allocator().allocated.current;
  }
  size_t getDriverAllocatedMemory() const override {
    counters.driver_allocated++;
    allocator().construct();
    return allocator().driver();
  }
  size_t getRecommendedMaxMemory() const override {
    counters.recommended_max++;
    allocator().construct();
    return settings.memory;
  }
  size_t getMaxBufferLength() const override { return max_buffer(); }
  void setMemoryFraction(double ratio) const override { allocator().set_high_ratio(ratio); }
};

}  // namespace softmps

C10_REGISTER_GUARD_IMPL(MPS, softmps::Guard)

namespace at {  // the macro works only here
using softmps::MPSHooks;
REGISTER_MPS_HOOKS(MPSHooks)
}  // namespace at
