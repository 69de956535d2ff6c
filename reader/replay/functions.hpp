// The functions that a trace calls, each with one id however many processes call it.
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
// Frames of which only the number is known; those on top of each other are one call.
inline constexpr FunctionId kUnknownFunction = 1;

// Where a function was first met; module is nullptr if its address is in none, or it is
// a name that the program gave.
struct CodePlace {
  const Module* module = nullptr;
  uint64_t address = 0;  // run-time address
};

// Names are raw bytes of the trace or of symbol tables: escape them before they reach a
// terminal or JSON.
struct Function {
  std::string_view module;  // path; empty if there is none
  std::string name;
  CodePlace place;
};

// Interns functions by (module path, name), so that reports over several processes
// agree. References stay valid.
class Functions {
 public:
  Functions();
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  FunctionId intern(std::string_view module, std::string_view name, CodePlace place);
  const Function& operator[](FunctionId id) const { return functions_[id]; }
  size_t size() const { return functions_.size(); }

 private:
  std::string_view intern_module(std::string_view path);

  std::deque<Function> functions_;
  std::deque<std::string> modules_;
  absl::flat_hash_map<std::string_view, std::string_view> module_by_path_;
  // The keys point into functions_.
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, FunctionId> ids_;
};

}  // namespace arctrace::reader
