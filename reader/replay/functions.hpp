// The functions that a trace calls, those that stand for other time, and the filter of
// those that a report shows.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/symbols/name_patterns.hpp"
#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

// The id of a function that a trace calls. A function has one id, however many processes
// call it.
using FunctionId = uint32_t;

// The top of a call tree: a thread, a process, or all.
inline constexpr FunctionId kRootFunction = 0;
// Stands for frames of which only the number is known; nested ones are one call.
inline constexpr FunctionId kUnknownFunction = 1;

// The place where a function was first met. The module is nullptr if the address is in
// none, or if the program gave the function a name.
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
  // `[arctrace]`, what the tracer does in the program's threads, as while these wait for
  // functions to be patched (SPEC.md READ-8). Its time is in no sum. kRootFunction: there
  // was none so far.
  FunctionId own_work() const { return own_work_; }
  size_t size() const { return functions_.size(); }

 private:
  std::string_view intern_module(std::string_view path);

  FunctionId own_work_ = kRootFunction;
  std::deque<Function> functions_;
  std::deque<std::string> modules_;
  absl::flat_hash_map<std::string_view, std::string_view> module_by_path_;
  // The keys are views of strings in functions_.
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, FunctionId> ids_;
};

// The module of the functions that stand for what the kernel does for a thread.
inline constexpr std::string_view kKernelModule = "[kernel]";

// The module of functions that were generated as the program ran.
inline constexpr std::string_view kGeneratedModule = "[jit]";

// Returns "read"; "syscall 999" if the number is not known. Numbers are those of the
// machine for which this reader was built.
std::string syscall_name(uint32_t number);

// The event for which a function of the kernel's stands (enum arctrace_kernel_event); 0
// for all other functions.
uint32_t kernel_event_of(const Function& function);

// The functions that stand for events of the kernel. Interns each when it is first asked
// for.
class KernelFunctions {
 public:
  // `functions` must outlive this object.
  explicit KernelFunctions(Functions& functions) : functions_(functions) {}

  FunctionId syscall(uint32_t number);  // K:read
  FunctionId signal(uint32_t number);   // K:signal 11
  FunctionId page_fault();
  FunctionId contention();
  // "K:softirq net-rx", "K:irq 36 virtio1-req.0". `kind`: enum arctrace_interrupt_kind;
  // `name`: raw bytes of the trace, or empty.
  FunctionId interrupt(uint32_t kind, uint32_t number, std::string_view name);

 private:
  FunctionId intern(std::string_view what);

  Functions& functions_;
  absl::flat_hash_map<uint32_t, FunctionId> syscalls_;
  absl::flat_hash_map<uint64_t, FunctionId> interrupts_;  // those without a name
};

// Functions that stand for time that is no function's: parts of a process' lifetime
// (SPEC.md READ-8), time of which records are missing (READ-9) or that interrupts took
// (READ-12), and coroutines (READ-10). Interns each function when it is first asked for.
class MadeUpFunctions {
 public:
  // `functions` must outlive this object.
  explicit MadeUpFunctions(Functions& functions) : functions_(functions) {}

  FunctionId before() { return functions_.intern({}, "[before recording]", {}); }
  FunctionId loader() { return functions_.intern({}, "[loader]", {}); }
  FunctionId constructors() { return functions_.intern({}, "[constructors]", {}); }
  FunctionId exit() { return functions_.intern({}, "[exit]", {}); }
  FunctionId own_work() { return functions_.intern({}, "[arctrace]", {}); }
  FunctionId off() { return functions_.intern({}, kOff, {}); }
  FunctionId filtered() { return functions_.intern({}, kFiltered, {}); }
  FunctionId lost() { return functions_.intern({}, kLost, {}); }
  FunctionId overwritten() { return functions_.intern({}, kOverwritten, {}); }
  FunctionId coroutine(uint32_t number) {
    return functions_.intern({}, absl::StrCat("coroutine ", number), {});
  }
  FunctionId not_unwound() {
    return functions_.intern({}, "[frames that could not be unwound]", {});
  }
  FunctionId interrupts() { return functions_.intern({}, kInterrupts, {}); }
  FunctionId missing() { return functions_.intern({}, kMissing, {}); }

  // Whether the function stands for a time without records, or one that interrupts took.
  // In a tree such time stands below whatever call was shown.
  static bool is_gap(const Function& function);

 private:
  static constexpr std::string_view kOff = "[functions off]",
                                    kFiltered = "[filtered out]", kLost = "[lost]",
                                    kOverwritten = "[overwritten]",
                                    kInterrupts = "[interrupts]", kMissing = "[missing]";

  Functions& functions_;
};

// Tells functions that make a child with a copy of the caller's stack from those that do
// not.
class ForkFunctions {
 public:
  // `functions` must outlive this object.
  explicit ForkFunctions(const Functions& functions) : functions_(functions) {}

  // Decides by the name. Each function is checked once.
  bool contains(FunctionId function) {
    for (FunctionId next = static_cast<FunctionId>(is_fork_.size()); next <= function;
         ++next) {
      is_fork_.push_back(is_name(functions_[next].name));
    }
    return is_fork_[function];
  }

  // Whether no child begins in the function: it is libc's, and not one of these. Its
  // callbacks may fork, by a call of their own.
  bool is_other_of_libc(FunctionId function) {
    return functions_[function].module.ends_with("/libc.so.6") && !contains(function);
  }

 private:
  static bool is_name(std::string_view name) {
    constexpr std::array<std::string_view, 5> kForkNames = {"fork", "_Fork", "__fork",
                                                            "forkpty", "daemon"};
    return std::find(kForkNames.begin(), kForkNames.end(), name) != kForkNames.end();
  }

  const Functions& functions_;
  std::vector<bool> is_fork_;  // by FunctionId
};

// Which calls a report shows. The time of a call that is not shown counts for the nearest
// shown frame around it.
struct ReplayFilter {
  // Patterns of functions (reader/symbols/name_patterns.hpp). If there are any in `only`,
  // the functions that match one, and what they call, are shown; of these, the functions
  // that match one of `except`, and what they call, are not.
  std::vector<std::string> only, except;
  uint32_t max_depth = UINT32_MAX;  // shown frames within one another
  // Only time in [from_ns, until_ns) counts. Calls that overlap this range are shown.
  int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
  uint64_t min_duration_ns = 0;  // completed calls that were shorter are not shown

  bool has_range() const { return from_ns != INT64_MIN || until_ns != INT64_MAX; }
  // The time range that has to be read of the trace. The whole duration of a call decides
  // whether it reaches the least duration.
  TimeRange read_range() const {
    return min_duration_ns == 0 ? TimeRange{from_ns, until_ns} : TimeRange{};
  }
  bool has_functions() const { return !only.empty() || !except.empty(); }
  // Whether calls may be hidden for another reason than their time.
  bool has_calls() const {
    return has_functions() || max_depth != UINT32_MAX || min_duration_ns != 0;
  }
};

// Patterns of functions (reader/symbols/name_patterns.hpp), which match each function
// once and store the result.
class FunctionPatterns {
 public:
  explicit FunctionPatterns(const std::vector<std::string>& patterns)
      : patterns_(patterns) {}

  // REQUIRES: `functions` are the same each time.
  bool match(FunctionId function, const Functions& functions);

 private:
  NamePatterns patterns_;
  std::vector<std::optional<bool>> known_;  // by FunctionId
};

// The patterns of a filter. `functions` must outlive this object.
class FunctionMatcher {
 public:
  FunctionMatcher(const ReplayFilter& filter, const Functions& functions)
      : only_(filter.only), except_(filter.except), functions_(functions) {}

  struct Verdict {
    bool only;    // matches one of filter.only
    bool except;  // matches one of filter.except
  };
  Verdict match(FunctionId function) {
    return {only_.match(function, functions_), except_.match(function, functions_)};
  }

 private:
  FunctionPatterns only_, except_;
  const Functions& functions_;
};

}  // namespace arctrace::reader
