// Small modules for tests of the analysis: functions byte by byte, data, pointers, and an
// unwind table.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace::testing {

using Code = std::vector<uint8_t>;

inline Code operator+(Code first, const Code& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

inline Code little(uint64_t value, size_t size) {
  Code bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
  return bytes;
}

// An instruction that ends in a displacement of four bytes: `opcode`, which leads from
// its own address to `target`.
inline Code relative(Code opcode, uint64_t address, uint64_t target) {
  const uint64_t end = address + opcode.size() + 4;
  return std::move(opcode) + little(target - end, 4);
}

inline constexpr uint64_t kText = 0x1000;
inline constexpr uint64_t kData = 0x10000;
inline constexpr uint64_t kFrames = 0x20000;

// Instructions.
inline const Code kEndbr = {0xF3, 0x0F, 0x1E, 0xFA};
inline const Code kPrologue = {0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xEC, 0x10};
inline const Code kRet = {0xC3};

class BuiltModule {
 public:
  BuiltModule() {
    // Version 1, "zRL": plain addresses; the return address is number 16, at -8; the CFA
    // is above the return address.
    frames_ = record(little(0, 4) + Code{1, 'z', 'R', 'L', 0, 1, 0x78, 16, 2, 0, 0} +
                     Code{0x0C, 7, 8, 0x90, 1});
  }

  uint64_t next() const { return kText + text_.size(); }

  // Appends a function, and returns its address. `frame`: its unwind instructions.
  uint64_t add(const std::string& name, const Code& code, const Code& frame = {},
               uint64_t exception_table = 0) {
    const uint64_t start = add_without_frame(name, code);
    const auto distance = static_cast<uint32_t>(frames_.size() + 4);
    frames_ =
        frames_ + record(little(distance, 4) + little(start, 8) + little(code.size(), 8) +
                         Code{8} + little(exception_table, 8) + frame);
    return start;
  }
  uint64_t add_without_frame(const std::string& name, const Code& code) {
    const uint64_t start = next();
    if (!name.empty()) {
      module_.functions.push_back({{start, start + code.size()}, name, true});
    }
    text_ = text_ + code;
    return start;
  }

  uint64_t add_data(const Code& bytes) {
    const uint64_t address = kData + data_.size();
    data_ = data_ + bytes;
    return address;
  }
  Code& frames() { return frames_; }
  recorder::ModuleCode& module() { return module_; }

  recorder::ModuleCode make() const {
    recorder::ModuleCode made = module_;
    made.segments = {segment(kText, text_, true), segment(kData, data_, false),
                     segment(kFrames, frames_, false)};
    made.eh_frame = {kFrames, kFrames + frames_.size()};
    return made;
  }
  recorder::PatchPlan plan() const { return recorder::analyse_patches_untrusted(make()); }

 private:
  static Code record(Code body) {
    while (body.size() % 8 != 4) body.push_back(0);
    const uint64_t size = body.size();
    return little(size, 4) + body;
  }
  static recorder::ModuleSegment segment(uint64_t address, const Code& bytes,
                                         bool executable) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    return {address, {begin, begin + bytes.size()}, executable};
  }

  recorder::ModuleCode module_;
  Code text_, data_, frames_;
};

// The plan of the function at `address`; the test fails if there is none.
inline recorder::FunctionPlan plan_at(const recorder::PatchPlan& plan, uint64_t address) {
  for (const recorder::FunctionPlan& function : plan.functions) {
    if (function.start == address) return function;
  }
  recorder::FunctionPlan none;
  none.name = "there is no such function";
  return none;
}

// The verdict on a module's only function, which has that code.
inline recorder::FunctionPlan plan_of(const Code& code, const Code& frame = {}) {
  BuiltModule module;
  const uint64_t start = module.add("f", code, frame);
  return plan_at(module.plan(), start);
}

}  // namespace arctrace::testing
