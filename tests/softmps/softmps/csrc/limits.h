// The watermarks, and the texts torch raises when an allocation cannot be had.
#pragma once

#include "settings.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>

namespace softmps {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

inline std::string human(size_t n) {
  const std::string i = settings.torch >= 208 ? "i" : "";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2);
  if (n <= KiB) text << n << " bytes";
  else if (n <= MiB) text << float(n) / KiB << " K" << i << "B";
  else if (n <= GiB) text << float(n) / MiB << " M" << i << "B";
  else text << float(n) / GiB << " G" << i << "B";
  return text.str();
}

class Limits {
 public:
  size_t high = kUnlimited, low = kUnlimited;

  // Read when the allocator is constructed; a later change of the environment is not seen.
  void read_environment() {
    set_high_ratio(ratio("PYTORCH_MPS_HIGH_WATERMARK_RATIO", 1.7));
    set_low_ratio(ratio("PYTORCH_MPS_LOW_WATERMARK_RATIO", 1.4));
  }
  void set_high_ratio(double r) {
    TORCH_CHECK(r >= 0.0 && r <= kMostRatio, "invalid high watermark ratio ", r);
    high_ratio = r;
    high = bytes(r);
  }

 private:
  static constexpr double kMostRatio = 2.0;
  double high_ratio = 0;

  void set_low_ratio(double r) {
    const double most = high_ratio == 0.0 ? kMostRatio : high_ratio;
    TORCH_CHECK(r >= 0.0 && r <= most, "invalid low watermark ratio ", r);
    low = bytes(r);
  }
  static size_t bytes(double r) {
    return r == 0.0 ? kUnlimited : size_t(r * double(settings.memory));
  }
  static double ratio(const char* name, double otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtod(text, nullptr) : otherwise;
  }
};

// Metal's maxBufferLength is about three quarters of the working set on the Macs we know of.
inline size_t max_buffer() { return settings.memory / 4 * 3; }

[[noreturn]] inline void out_of_memory(size_t reserved, size_t other, size_t limit, size_t asked) {
  const bool limited = limit != kUnlimited;
  TORCH_CHECK(false, "MPS backend out of memory (MPS allocated: ", human(reserved),
      ", other allocations: ", human(other),
      limited ? ", max allowed: " + human(limit) : std::string(), "). Tried to allocate ",
      human(asked), " on ", settings.torch >= 212 ? "shared" : "private", " pool.",
      limited ? " Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory "
                "allocations (may cause system failure)." : "");
  std::abort();  // TORCH_CHECK(false) does not return, but is not marked so
}

}  // namespace softmps
