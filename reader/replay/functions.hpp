// The functions that a trace calls. Each has one id, however many processes call it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

using FunctionId = uint32_t;

// The top of a call tree: a thread, a process, or all.
inline constexpr FunctionId kRootFunction = 0;
// Frames of which only the number is known; those within one another are one call.
inline constexpr FunctionId kUnknownFunction = 1;

// Where a function was first met. The module is nullptr if its address is in none, or if
// the program gave it a name.
struct CodeLocation {
  const Module* module = nullptr;
  uint64_t address = 0;  // run-time address
};

// Names are raw bytes of the trace or of symbol tables: escape them before they reach a
// terminal or JSON.
struct Function {
  std::string_view module;  // path; empty if there is none
  std::string name;
  CodeLocation location;
  uint32_t hook_kind = 0;  // of the module in which it was first met
};

// Interns functions by module path and name, so that reports over several processes
// agree. References to functions stay valid.
class Functions {
 public:
  Functions();
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  FunctionId intern(std::string_view module, std::string_view name,
                    CodeLocation location);
  const Function& operator[](FunctionId id) const { return functions_[id]; }
  // `[patching]`, the time in which a program waits for its functions to be patched
  // (SPEC.md READ-8), which is recording's own. kRootFunction: there was none so far.
  FunctionId patching() const { return patching_; }
  size_t size() const { return functions_.size(); }

 private:
  std::string_view intern_module(std::string_view path);

  FunctionId patching_ = kRootFunction;
  std::deque<Function> functions_;
  std::deque<std::string> modules_;
  absl::flat_hash_map<std::string_view, std::string_view> module_by_path_;
  // The keys are views of strings in functions_.
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, FunctionId> ids_;
};

}  // namespace arctrace::reader
