// The kernels: a few of our own, the CPU's metadata ops, and torch's CPU fallback for all others.
#pragma once

#include "device.h"
#include "faults.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <chrono>
#include <memory>

namespace softmps {

const c10::DispatchKeySet kKeys(c10::DispatchKey::MPS);

// Names end in _kernel: fill_, empty… would be ambiguous with torch's own by argument lookup.

inline at::Tensor host(const at::Tensor& t) {  // a CPU alias of the same memory, no copy
  if (!t.is_mps()) return t;
  auto alias = at::from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(c10::kCPU));
  alias._set_conj(t.is_conj());
  alias._set_neg(t.is_neg());
  return alias;
}

inline void note_graph(const char* op, at::TensorList tensors) {
  for (auto& t : tensors) check_operand(t);
  if (!settings.graph_bytes) return;
  std::string key = op;
  for (auto& t : tensors) Graphs::describe(key, t);
  graphs().note(key);
}

// Keeps buffers from going back to the system while queued work needs them. They may be reused
// meanwhile: the work that then writes them waits its turn in the same queue.
struct Retained {
  std::vector<Buffer*> buffers;

  explicit Retained(at::TensorList tensors) {
    for (auto& t : tensors)
      if (auto* b = static_cast<Buffer*>(t.storage().data_ptr().get_context()))
        buffers.push_back(b);
    for (auto* b : buffers) b->retained++;
  }
  ~Retained() {
    for (auto* b : buffers) b->retained--;
  }
  Retained(const Retained&) = delete;
};

// What every kernel of our own does to its host tensors passes through here, queued or not: the
// place where a result can be observed, or spoilt on purpose.
inline void run(const char* kernel, at::TensorList device, std::function<void()> work) {
  if (auto* fault = begin_fault(kernel, device); fault != nullptr)
    work = [fault, work = std::move(work), result = host(device.back())] {
      const auto before = result.clone();
      work();
      if (fault->kind == "unchanged") result.copy_(before);
      spoil(fault, result);
    };
  if (!settings.queue) return work();
  queue().submit([held = std::make_shared<Retained>(device), work = std::move(work)] { work(); });
}

inline at::Tensor empty_kernel(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                               std::optional<c10::Layout>, std::optional<c10::Device>,
                               std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  check_new(c10::dtype_or_default(dtype));
  begin_fault("empty", {}, c10::toString(c10::dtype_or_default(dtype)));
  return at::detail::empty_generic(size, torch_allocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

inline at::Tensor empty_strided_kernel(c10::IntArrayRef size, c10::IntArrayRef stride,
                                       std::optional<c10::ScalarType> dtype,
                                       std::optional<c10::Layout>, std::optional<c10::Device>,
                                       std::optional<bool>) {
  check_new(c10::dtype_or_default(dtype));
  begin_fault("empty", {}, c10::toString(c10::dtype_or_default(dtype)));
  return at::detail::empty_strided_generic(size, stride, torch_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

inline at::Tensor copy_from_kernel(const at::Tensor& src, const at::Tensor& dst, bool) {
  OpScope op("aten::copy_");
  if (src.is_mps() && dst.is_mps()) {
    if (src.scalar_type() != dst.scalar_type()) check_operand(src), check_operand(dst);
    run("copy_", {src, dst}, [to = host(dst), from = host(src)] { to.copy_(from); });
  } else {
    queue().drain();
    auto* fault = begin_fault("copy_", {src, dst});
    host(dst).copy_(host(src));
    spoil(fault, host(dst));
  }
  return dst;
}

inline at::Tensor& copy_kernel(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  if (self.sizes() == src.sizes()) {
    copy_from_kernel(src, self, non_blocking);
  } else {
    copy_from_kernel(src.expand_as(self), self, non_blocking);
  }
  return self;
}

inline at::Tensor copy_and_resize_kernel(const at::Tensor& src, const at::Tensor& dst) {
  if (dst.sizes() != src.sizes()) dst.resize_(src.sizes());
  return copy_from_kernel(src, dst, false);
}

inline at::Tensor& fill_kernel(at::Tensor& self, const at::Scalar& value) {
  OpScope op("aten::fill_");
  note_graph("aten::fill_", {self});
  run("fill_", {self}, [to = host(self), value] { to.fill_(value); });
  return self;
}

inline at::Tensor& zero_kernel(at::Tensor& self) { return fill_kernel(self, 0); }

inline void check_mm(const at::Tensor& a, const at::Tensor& b) {  // torch's own words
  TORCH_CHECK(a.device() == b.device(), "Expected all tensors to be on the same device, but found "
      "at least two devices, ", a.device(), " and ", b.device(), "!");
  TORCH_CHECK(a.dim() == 2, "self must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x",
      a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, "
      "but got: ", a.dtype(), " != ", b.dtype());
}

inline at::Tensor mm_kernel(const at::Tensor& a, const at::Tensor& b) {
  check_mm(a, b);
  OpScope op("aten::mm");
  note_graph("aten::mm", {a, b});
  auto out = empty_kernel({a.size(0), b.size(1)}, a.scalar_type(), {}, {}, {}, {});
  run("mm", {a, b, out}, [to = host(out), x = host(a), y = host(b)]() mutable {
    at::mm_out(to, x, y);
  });
  return out;
}

inline at::Scalar item_kernel(const at::Tensor& t) {
  OpScope op("aten::_local_scalar_dense");
  queue().drain();
  return at::native::_local_scalar_dense_cpu(host(t));
}

inline const at::Tensor& resize_kernel(const at::Tensor& t, c10::IntArrayRef size,
                                       std::optional<c10::MemoryFormat> format) {
  queue().drain();  // a storage that grows is copied by the host
  return at::native::resize_(t, size, format);
}

inline std::vector<at::Tensor> tensors_of(const torch::jit::Stack& stack, size_t arguments) {
  std::vector<at::Tensor> found;
  for (auto& value : torch::jit::last(stack, arguments)) {
    if (value.isTensor() && value.toTensor().defined()) found.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& t : value.toTensorList()) found.push_back(t);
  }
  return found;
}

inline void fallback_kernel(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const char* name = handle.schema().name().c_str();
  // Held past the scope: to let go of a tensor that Python knows takes the GIL, which a thread
  // that waits for the stream may hold.
  const auto tensors = tensors_of(*stack, handle.schema().arguments().size());
  OpScope op(name);
  queue().drain();
  note_graph(name, tensors);
  auto* fault = begin_fault(handle.schema().name().substr(sizeof("aten::") - 1), tensors);
  if (fault == nullptr) return at::native::cpu_fallback(handle, stack);
  const auto before = host(tensors.at(0)).clone();
  at::native::cpu_fallback(handle, stack);
  if (fault->kind == "unchanged") host(tensors[0]).copy_(before);
  const auto returned = handle.schema().returns().size();
  if (returned == 0) spoil(fault, host(tensors[0]));
  for (auto& result : tensors_of(*stack, returned)) spoil(fault, host(result));
}

// The stub of the fused kernel has no slot for MPS in a Linux build.
inline at::Tensor attention_kernel(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const std::optional<at::Tensor>& mask, double dropout,
                                   bool causal, std::optional<double> scale, bool gqa) {
  auto* fault = begin_fault("scaled_dot_product_attention", {q, k, v});
  if (fault != nullptr && fault->kind == "unchanged") dropout = 0;
  auto out = std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, mask, dropout, causal, {},
                                                              scale, gqa));
  if (!out.requires_grad()) spoil(fault, host(out));
  return out;
}

inline void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

inline at::Tensor& busy_kernel(at::Tensor& self, double seconds) {
  OpScope op("softmps::busy_");
  sleep_for(seconds);
  return self;
}

// On a host tensor: a thread that is busy outside any op of the device.
inline at::Tensor& host_busy_kernel(at::Tensor& self, double seconds) {
  counters.host_busy++;
  sleep_for(seconds);
  return self;
}

inline at::Tensor& work_kernel(at::Tensor& self, double seconds) {
  OpScope op("softmps::work_");
  run("work_", {self}, [seconds] { sleep_for(seconds); });
  return self;
}

}  // namespace softmps
