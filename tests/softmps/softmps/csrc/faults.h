// Faults planted by SOFTMPS_FAULTS: a kernel that refuses, falls back, is wrong, aborts or hangs.
#pragma once

#include "limits.h"

#include <cmath>
#include <ATen/core/Tensor.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace softmps {

struct Fault {
  std::string kind, kernel, dtype, when;  // dtype in c10's words
  int64_t calls = 0;
};

inline std::vector<Fault> faults;

// torch's sentences, word for word, as the modelled version has them.
[[noreturn]] inline void refuse(const std::string& text, const std::string& op,
                                const std::string& dtype) {
  const auto v = settings.torch;
  if (text == "unimplemented" && v <= 205)
    TORCH_CHECK_NOT_IMPLEMENTED(false, "The operator 'aten::", op, "' is not currently implemented "
        "for the MPS device. If you want this op to be added in priority during the prototype phase "
        "of this feature, please comment on https://github.com/pytorch/pytorch/issues/77764. As a "
        "temporary fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use "
        "the CPU as a fallback for this op. WARNING: this will be slower than running natively on "
        "MPS.");
  if (text == "unimplemented")
    TORCH_CHECK_NOT_IMPLEMENTED(false, "The operator 'aten::", op, "' is not currently implemented "
        "for the MPS device. If you want this op to be considered for addition please comment on "
        "https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in "
        "missing op as well as commit hash 0123456789abcdef0123456789abcdef01234567. As a temporary "
        "fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as "
        "a fallback for this op. WARNING: this will be slower than running natively on MPS.");
  if (text == "float64")
    TORCH_CHECK_TYPE(false, "Cannot convert a MPS Tensor to float64 dtype as the MPS framework "
        "doesn't support float64. Please use float32 instead.");
  if (text == "float64_tensor")
    TORCH_CHECK_TYPE(false, "Cannot convert a float64 Tensor to MPS as the MPS framework doesn't "
        "support float64. Please use float32 instead.");
  if (text == "dtype")
    TORCH_CHECK_TYPE(false, "Trying to convert ", dtype,
        " to the MPS backend but it does not have support for that dtype.");
  if (text == "undefined") TORCH_CHECK_TYPE(false, "Undefined type ", dtype);
  if (text == "bfloat16")
    TORCH_CHECK_TYPE(false, v <= 202 ? "BFloat16 is not supported on MPS"
                                     : "MPS BFloat16 is only supported on MacOS 14 or newer");
  if (text == "out_of_memory") out_of_memory(3 * GiB, 512 * MiB, 4 * GiB, GiB + 1);
  if (text == "macos")
    TORCH_CHECK(false, "The MPS backend is supported on ",
        v <= 205 ? "MacOS 12.3+" : v <= 210 ? "MacOS 13.0+" : v == 211 ? "MacOS 14.0+"
                 : v <= 214 ? "macOS 14.0+" : "macOS 15.0+",
        ". Current OS version can be queried using `sw_vers`");
  const std::vector<std::pair<std::string, std::string>> others = {
      {"float64_kernel", "float64 is not supported on MPS"},
      {"buffer", "Invalid buffer size: " + human(5 * GiB)},
      {"linear", "MPS device does not support linear for non-float inputs"},
      {"softmax", "softmax only supported for floating types"},
      {"conv_transpose", "ConvTranspose 3D with BF16 or FP16 types is not supported on MPS"},
      {"dropout", "scaled_dot_product_attention for MPS does not support dropout."},
      {"index_reduce", "index_reduce for MPS does not support torch.long dtype"},
      {"batch_norm", "Long batch norm is not supported with MPS"},
      {"exponent", "MPS doesn't know how to do exponent_i64"},
  };
  for (auto& [name, words] : others) TORCH_CHECK(name != text, words);
  TORCH_CHECK(false, "softmps: no such text: ", text);
  std::abort();  // TORCH_CHECK(false) does not return, but is not marked so
}

inline bool applies(Fault& f, at::TensorList tensors) {
  bool has_dtype = f.dtype == "*", is_long = false, is_strided = false;
  for (auto& t : tensors) {
    if (!t.is_mps()) continue;
    has_dtype |= f.dtype == c10::toString(t.scalar_type());
    is_strided |= !t.is_contiguous();
    for (auto size : t.sizes()) is_long |= size > 32768;
  }
  if (!has_dtype || (f.when == "noncontiguous" && !is_strided) || (f.when == "long" && !is_long))
    return false;
  return f.when != "seldom" || ++f.calls % 100 == 0;
}

// What happens before the kernel; afterwards `spoil` does what is left. nullptr: all is well.
inline const Fault* begin_fault(const std::string& kernel, at::TensorList tensors,
                                const char* dtype = nullptr) {
  for (auto& f : faults) {
    if (f.kernel != "*" && f.kernel != kernel) continue;
    if (dtype ? f.dtype != "*" && f.dtype != dtype : !applies(f, tensors)) continue;
    if (f.kind == "abort") std::abort();
    while (f.kind == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
    if (f.kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (f.kind == "fallback:qr")
      TORCH_WARN_ONCE("linalg_qr: MPS implementation is currently limited to min(m,n) <= 512, "
          "falling back to CPU.");
    if (f.kind == "fallback:pool")
      TORCH_WARN_ONCE("MPS: passing divisor to Average Pooling op with int64 input is not supported "
          "on MPS backend. Falling back on CPU. This may have performance implications.");
    if (f.kind == "fallback")  // one place for all ops: torch tells it once in a process
      TORCH_WARN_ONCE("The operator 'aten::", kernel, "' is not currently supported on the MPS "
          "backend and will fall back to run on the CPU. This may have performance implications.");
    if (f.kind.rfind("refuse:", 0) == 0)
      refuse(f.kind.substr(7), kernel,
             f.dtype != "*" ? f.dtype : dtype ? dtype : c10::toString(tensors[0].scalar_type()));
    return &f;
  }
  return nullptr;
}

inline void make_wrong(at::Tensor one) {
  if (one.scalar_type() == c10::kBool) return void(one.logical_not_());
  if (c10::isIntegralType(one.scalar_type(), false))
    return void(one.copy_(one.to(c10::kLong).add(1)));
  auto wide = one.to(one.is_complex() ? c10::kComplexDouble : c10::kDouble);
  one.copy_(wide.add(wide.abs()).add(1));
}

// The host alias of a result: its first and last number, or all of it.
inline void spoil(const Fault* f, at::Tensor result) {
  if (f == nullptr || !result.defined() || result.numel() == 0) return;
  if (f->kind == "zero") result.zero_();
  if (f->kind == "nan") result.fill_(std::nan(""));
  if (f->kind != "wrong") return;
  int64_t last = 0;
  for (int64_t d = 0; d < result.dim(); d++) last += (result.size(d) - 1) * result.stride(d);
  make_wrong(result.as_strided({1}, {1}));
  if (last) make_wrong(result.as_strided({1}, {1}, last));
}

}  // namespace softmps
