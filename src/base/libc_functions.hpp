// The functions of libc and of the C++ runtime that arctrace knows by name, one row for
// each. The tables of the shim, the command and the reader are made of these rows when
// they are compiled. A program may define another function under such a name, so a caller
// has to check first that the function in question is the library's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace arctrace {

// What a function waits for, or asks the system for.
enum class FunctionKind : uint8_t {
  kAllocation,  // malloc, operator new
  kCondition,   // condition variables and barriers
  kFile,        // names and attributes of files, directories
  kFutex,       // the waits of locks, if calls within libc are recorded
  kIo,          // descriptors and streams: open, read, write, printf
  kLoader,      // dlopen, dlsym
  kLock,        // mutexes, read-write locks, file locks, "once"
  kMemory,      // mappings
  kNetwork,     // sockets and names of hosts
  kPoll,        // waits until a descriptor is ready: poll, epoll_wait
  kProcess,     // fork, exec, wait, exit
  kSemaphore,   // semaphores and message queues
  kSignal,      // sending and handling of signals
  kSleep,       // waits until a time or for a signal
  kThread,      // creation and end of threads
  kTime,        // queries of clocks and formats of dates
  kOther        // none of these
};
inline constexpr size_t kFunctionKinds = static_cast<size_t>(FunctionKind::kOther);

// How a function has to be called, because of what it does with its caller or its stack.
// A function that has the wrong rule breaks the programs that call it.
enum class CallRule : uint8_t {
  kOrdinary,
  // The function looks up its caller by its return address, or returns to it more than
  // once or from another stack.
  kEntryOnly,
  kLast,          // it does not return
  kLongJump,      // does not return: abandons frames below the target's stack pointer
  kCatch,         // frames have been abandoned when it is called
  kStacks,        // it switches between stacks, or makes one
  kLastSwitch,    // it switches to another stack and does not return
  kFrameAddress,  // _Unwind_GetCFA, which the shim has a function in place of
  // Compiled code calls the function under rules other than the ABI's, or it is another
  // tracer's hook.
  kSkipped
};

enum class LockKind : uint8_t { kMutex, kRwlock, kSpinlock, kCondition, kSemaphore };

enum class LockAction : uint8_t {
  kNone,           // the function has nothing to do with locks
  kAcquire,        // waits until the caller has the lock; fails with a result not 0
  kAcquireShared,  // acquires a lock that other readers may have, too
  kRelease,
  kWait,  // waits for a condition (argument 1), without its mutex (2), or a semaphore
  kWake,  // ends waits of others
};

// How long a function that acquires a lock waits for it.
enum class LockWait : uint8_t {
  kForever,
  kTimed,  // up to a time: it may return without the lock
  kTries   // not at all: it may return without the lock
};

struct LockUse {
  LockKind kind = LockKind::kMutex;
  LockAction action = LockAction::kNone;
  LockWait wait = LockWait::kForever;
};

// How a return value shows that the call has failed and set errno.
enum class CallFailure : uint8_t { kNever, kMinus1, kNull };

struct LibcFunction {
  const char* name;
  FunctionKind kind;
  const char* prototype = "";  // as libc_functions.inc describes; empty: not known
  CallRule rule = CallRule::kOrdinary;
  LockUse lock{};

  consteval LibcFunction(const char* its_name, FunctionKind its_kind,
                         const char* its_prototype, CallRule its_rule)
      : name(its_name), kind(its_kind), prototype(its_prototype), rule(its_rule) {}
  consteval LibcFunction(const char* its_name, FunctionKind its_kind,
                         const char* its_prototype, LockUse its_lock)
      : name(its_name), kind(its_kind), prototype(its_prototype), lock(its_lock) {}
  consteval LibcFunction(const char* its_name, FunctionKind its_kind,
                         const char* its_prototype)
      : name(its_name), kind(its_kind), prototype(its_prototype) {}
  consteval LibcFunction(const char* its_name, FunctionKind its_kind, CallRule its_rule)
      : name(its_name), kind(its_kind), rule(its_rule) {}
  consteval LibcFunction(const char* its_name, FunctionKind its_kind)
      : name(its_name), kind(its_kind) {}
};

namespace libc_rows {

using enum FunctionKind;
using enum CallRule;
using enum LockAction;
using enum LockWait;

inline constexpr LibcFunction kRows[] = {
#include "src/base/libc_functions.inc"
};

}  // namespace libc_rows

inline constexpr auto& kLibcFunctions = libc_rows::kRows;

static_assert([] {
  for (size_t i = 1; i < std::size(kLibcFunctions); ++i) {
    if (std::string_view(kLibcFunctions[i - 1].name) >= kLibcFunctions[i].name) {
      return false;
    }
  }
  return true;
}());

// A function's name as a part of a table. A pointer to it would have to be relocated
// whenever the shim is loaded, which copies the page of the table.
struct LibcFunctionName {
  char text[40];

  // REQUIRES: it fits.
  static constexpr LibcFunctionName of(const LibcFunction& function) {
    LibcFunctionName name{};
    std::copy_n(function.name, std::string_view(function.name).size(), name.text);
    return name;
  }
};

static_assert(std::all_of(std::begin(kLibcFunctions), std::end(kLibcFunctions),
                          [](const LibcFunction& function) {
                            return std::string_view(function.name).size() <
                                   sizeof LibcFunctionName::text;
                          }));

// The row of the function with this linker's or C++ name; null: there is none.
constexpr const LibcFunction* find_libc_function(std::string_view name) {
  const auto* const found = std::lower_bound(
      std::begin(kLibcFunctions), std::end(kLibcFunctions), name,
      [](const LibcFunction& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kLibcFunctions) && found->name == name ? found : nullptr;
}

// The words of a prototype, one after another: those of the arguments, then that of the
// return value with its failure.
class PrototypeWords {
 public:
  // REQUIRES: the prototype is of the form that libc_functions.inc describes.
  constexpr explicit PrototypeWords(std::string_view prototype) {
    const size_t end = prototype.find(')');
    arguments_ = prototype.empty() ? prototype : prototype.substr(1, end - 1);
    const size_t result = prototype.find(kArrow);
    if (result != std::string_view::npos) {
      result_ = prototype.substr(result + kArrow.size());
    }
  }

  // The next argument's word; empty: there are no more.
  constexpr std::string_view next_argument() {
    const size_t end = std::min(arguments_.find(','), arguments_.size());
    const std::string_view word = arguments_.substr(0, end);
    arguments_.remove_prefix(std::min(end + 2, arguments_.size()));
    return word;
  }

  // The return value's word; empty: it has none.
  constexpr std::string_view result() const {
    return result_.substr(0, result_.find(' '));
  }

  constexpr CallFailure failure() const {
    if (result_.ends_with(" or -1")) return CallFailure::kMinus1;
    return result_.ends_with(" or null") ? CallFailure::kNull : CallFailure::kNever;
  }

 private:
  static constexpr std::string_view kArrow = " -> ";

  std::string_view arguments_, result_;
};

}  // namespace arctrace
