// Where memory is mapped in a process, from the text of its /proc/PID/maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"

namespace arctrace {

class AddressSpace {
 public:
  // Lines that are not understood are skipped.
  explicit AddressSpace(std::string_view maps_untrusted);

  // A place for `size` bytes, whole pages, from which `module` is within reach of a jump,
  // and the reverse: below the module, or far above it, for there the heap grows.
  std::optional<uint64_t> find_room_near(CodeRange module, uint64_t size) const;

 private:
  bool is_free(CodeRange range) const;

  std::vector<CodeRange> mapped_;  // by address
};

}  // namespace arctrace
