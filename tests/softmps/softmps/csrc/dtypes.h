// Which dtypes the device has, by torch version, and the texts torch raises for the others.
#pragma once

#include "settings.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceCapability.h>

namespace softmps {

inline void check_new(c10::ScalarType dtype) {  // what torch refuses as soon as it is asked for
  const bool is_double = dtype == c10::kDouble ||
      (dtype == c10::kComplexDouble && settings.torch >= 212);
  TORCH_CHECK_TYPE(!is_double || settings.float64,
      "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
      "float64. Please use float32 instead.");
  TORCH_CHECK_TYPE(dtype != c10::kBFloat16 || settings.torch >= 203,
      "BFloat16 is not supported on MPS");
}

inline bool has_kernels(c10::ScalarType dtype) {
  using c10::ScalarType;
  if (dtype == ScalarType::Float8_e4m3fn) return settings.torch >= 215;
  if (dtype == ScalarType::UInt16 || dtype == ScalarType::UInt32 || dtype == ScalarType::UInt64)
    return settings.torch >= 209;
  if (dtype == c10::kComplexDouble) return settings.float64;
  return !c10::isFloat8Type(dtype);
}

inline void check_operand(const at::Tensor& t) {  // what torch refuses in the first op only
  TORCH_CHECK(t.dim() <= 16, "MPS supports tensors with dimensions <= 16, but got ", t.dim(), ".");
  TORCH_CHECK_TYPE(!t.is_mps() || has_kernels(t.scalar_type()), "Trying to convert ",
      c10::toString(t.scalar_type()),
      " to the MPS backend but it does not have support for that dtype.");
}

inline c10::DeviceCapability capability() {
  c10::DeviceCapability answer;
  uint64_t& bits = answer.capability_data.capability_bits;
  bits = 0;
  for (auto index : {c10::kIndex_Byte, c10::kIndex_Char, c10::kIndex_Short, c10::kIndex_Int,
                     c10::kIndex_Long, c10::kIndex_UInt16, c10::kIndex_UInt32, c10::kIndex_UInt64,
                     c10::kIndex_Half, c10::kIndex_BFloat16, c10::kIndex_Float,
                     c10::kIndex_ComplexHalf, c10::kIndex_ComplexFloat, c10::kIndex_Bool})
    bits |= uint64_t(1) << index;
  if (settings.torch >= 215) bits |= uint64_t(1) << c10::kIndex_Float8_e4m3fn;
  return answer;
}

}  // namespace softmps
