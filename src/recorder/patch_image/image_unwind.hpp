// The unwind rules of the image's code, with the index by which unwinders find them
// (.eh_frame and .eh_frame_hdr).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"
#include "src/recorder/patch_image/image_bytes.hpp"
#include "src/recorder/patch_image/trampoline.hpp"

namespace arctrace::recorder {

class ImageUnwind {
 public:
  // `code` must outlive this object.
  explicit ImageUnwind(const ModuleCode& code) : unwind_(code) {}

  // Adds the rules of a function's code, which begins at `offset` of the image's code.
  // REQUIRES: it comes after those that were added before. False: the rules of the
  // function cannot be moved.
  bool add(const FunctionPlan& plan, const TrampolineShape& shape, uint64_t offset);

  // The size in bytes of the index of all that were added.
  uint64_t index_size() const;
  uint64_t rules_size() const;

  // Offsets in the image.
  struct Places {
    uint64_t index = 0, rules = 0, code = 0;
  };
  // REQUIRES: `out` ends before the place, or there.
  void write_index(const Places& places, ImageBytes& out) const;
  void write_rules(const Places& places, ImageBytes& out) const;

 private:
  // The contents of a common entry of our own.
  struct CommonRules {
    int64_t data_alignment;
    uint64_t return_register;
    std::vector<std::byte> program;
    auto key() const { return std::tie(data_alignment, return_register, program); }
    bool operator<(const CommonRules& other) const { return key() < other.key(); }
  };
  // The rules of one function.
  struct Rules {
    uint64_t offset;  // of its code, from the beginning of the image's
    uint64_t size;    // of its code
    std::vector<std::byte> program;
    size_t common;  // the number of its common entry
  };

  bool add_rules_of_call(const UnwindTable::Entry& entry, const FunctionPlan& plan,
                         const TrampolineShape& shape, uint64_t advanced_to,
                         std::vector<std::byte>& program) const;
  static std::vector<std::byte> common_record(const CommonRules& rules);
  static uint64_t record_size(const Rules& rules);
  uint64_t common_size() const;

  const UnwindTable unwind_;
  std::vector<Rules> rules_;
  std::map<CommonRules, size_t> common_;
};

}  // namespace arctrace::recorder
