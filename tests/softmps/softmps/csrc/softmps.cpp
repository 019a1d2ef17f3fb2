// torch's device "mps" on CPU-only Linux: the registrations. No Python symbols are used.
#define AT_PER_OPERATOR_HEADERS
#include "fork.h"
#include "kernels.h"

namespace softmps {

void configure(int64_t strict, int64_t torch, int64_t memory, bool heaps, int64_t graph_bytes,
               bool queue, bool float64, const std::vector<std::string>& planted) {
  for (size_t i = 0; i + 3 < planted.size(); i += 4)
    faults.push_back({planted[i], planted[i + 1], planted[i + 2], planted[i + 3]});
  settings = {strict, torch, size_t(memory), heaps, size_t(graph_bytes), queue, float64};
  c10::SetAllocator(c10::DeviceType::MPS, torch_allocator());
  survive_fork();
}

c10::Dict<std::string, int64_t> read_counters() {
  c10::Dict<std::string, int64_t> all;
#define X(name) all.insert(#name, counters.name);
  SOFTMPS_COUNTERS(X)
#undef X
  all.insert("graphs", graphs().count());
  all.insert("graph_bytes", graphs().bytes());
  all.insert("initialised", allocator().constructed());
  all.insert("in_flight", gate().in_flight());
  all.insert("pending", queue().length());
  return all;
}

void reset_counters() {
#define X(name) counters.name = 0;
  SOFTMPS_COUNTERS(X)
#undef X
}

}  // namespace softmps

using namespace softmps;
using torch::CppFunction;

TORCH_LIBRARY(softmps, m) {
  m.def("configure(int strict, int torch, int memory, bool heaps, int graph_bytes, bool queue, "
        "bool float64, str[] faults) -> ()", [](int64_t strict, int64_t torch, int64_t memory,
        bool heaps, int64_t graph_bytes, bool queue, bool float64, std::vector<std::string> faults) {
    configure(strict, torch, memory, heaps, graph_bytes, queue, float64, faults);
  });
  m.def("busy_(Tensor(a!) self, float seconds) -> Tensor(a!)");
  m.def("work_(Tensor(a!) self, float seconds) -> Tensor(a!)");
  m.def("set_limit(int bytes) -> ()", [](int64_t n) { allocator().set_limit(n); });
  m.def("set_strict(int level) -> ()", [](int64_t level) { settings.strict = level; });
  m.def("counters() -> Dict(str, int)", read_counters);
  m.def("reset_counters() -> ()", reset_counters);
}

TORCH_LIBRARY_IMPL(softmps, MPS, m) {
  m.impl("busy_", busy_kernel);
  m.impl("work_", work_kernel);
}

TORCH_LIBRARY_IMPL(softmps, CPU, m) { m.impl("busy_", host_busy_kernel); }

TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(CppFunction::makeFromBoxedFunction<&fallback_kernel>());
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("empty.memory_format", empty_kernel);
  m.impl("empty_strided", empty_strided_kernel);
  m.impl("copy_", copy_kernel);
  m.impl("_copy_from", copy_from_kernel);
  m.impl("_copy_from_and_resize", copy_and_resize_kernel);
  m.impl("fill_.Scalar", fill_kernel);
  m.impl("zero_", zero_kernel);
  m.impl("mm", mm_kernel);
  m.impl("_local_scalar_dense", item_kernel);
  m.impl("resize_", resize_kernel);
  m.impl("scaled_dot_product_attention", attention_kernel);
  // The memory is host memory: the CPU's versions of these rewrite metadata only.
  m.impl("view", at::native::view);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("set_.source_Storage", [](at::Tensor& t, at::Storage s) -> at::Tensor& {
    return at::native::set_(t, s);
  });
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_", at::native::set_cpu_);
  // Composites that would look for a vendor's kernel: the whole op goes to the CPU.
  for (auto* name : {"convolution", "convolution_backward"})
    m.impl(name, CppFunction::makeFromBoxedFunction<&fallback_kernel>());
}

TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) {
  m.impl("scaled_dot_product_attention", attention_kernel);
}
