#include "reader/analysis/function_kinds.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "src/base/function_names.hpp"

namespace arctrace::reader {
namespace {

constexpr std::array<std::string_view, kFunctionKinds> kNames = {
    "allocation", "condition", "file",    "futex", "io",      "loader",
    "lock",       "memory",    "network", "poll",  "process", "semaphore",
    "signal",     "sleep",     "thread",  "time"};

// Functions of only these libraries have a kind by their names.
constexpr std::array<std::string_view, 8> kModules = {
    "ld-linux",   "libc-2", "libc.so",   "libjemalloc",
    "libpthread", "librt",  "libstdc++", "libtcmalloc"};

bool is_system_library(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return path.empty() ||
         std::any_of(kModules.begin(), kModules.end(),
                     [&](std::string_view m) { return file.starts_with(m); });
}

std::optional<FunctionKind> find(std::string_view name) {
  const LibcFunction* row = find_libc_function(name);
  if (row == nullptr || row->kind == FunctionKind::kOther) return std::nullopt;
  return row->kind;
}

bool strip_front(std::string_view& name, std::string_view what) {
  if (!name.starts_with(what)) return false;
  name.remove_prefix(what.size());
  return true;
}

void strip_back(std::string_view& name, std::string_view what) {
  if (name.ends_with(what)) name.remove_suffix(what.size());
}

// The name without the additions of libc for fortified, large-file, standard and internal
// variants.
std::string_view plain_name(std::string_view name) {
  if (strip_front(name, "__")) {
    for (const std::string_view prefix : {"isoc99_", "isoc23_", "libc_", "GI_"}) {
      strip_front(name, prefix);
    }
    strip_back(name, "_chk");
    strip_back(name, "_2");  // __open_2
  }
  strip_back(name, "64");
  return name;
}

}  // namespace

std::string_view kind_name(FunctionKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<FunctionKind> function_kind(const Function& function) {
  if (!is_system_library(function.module)) return std::nullopt;
  const std::string_view name = without_parameters(function.name);
  const auto found = find(name);
  return found ? found : find(plain_name(name));
}

bool may_wait(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::kAllocation:
    case FunctionKind::kFile:
    case FunctionKind::kLoader:
    case FunctionKind::kMemory:
    case FunctionKind::kTime:
    case FunctionKind::kOther:
      return false;
    case FunctionKind::kCondition:
    case FunctionKind::kFutex:
    case FunctionKind::kIo:
    case FunctionKind::kLock:
    case FunctionKind::kNetwork:
    case FunctionKind::kPoll:
    case FunctionKind::kProcess:
    case FunctionKind::kSemaphore:
    case FunctionKind::kSignal:
    case FunctionKind::kSleep:
    case FunctionKind::kThread:
      break;
  }
  return true;
}

const char* lock_kind_name(LockKind kind) {
  switch (kind) {
    case LockKind::kMutex:
      return "mutex";
    case LockKind::kRwlock:
      return "rwlock";
    case LockKind::kSpinlock:
      return "spinlock";
    case LockKind::kCondition:
      return "condition";
    case LockKind::kSemaphore:
      break;
  }
  return "semaphore";
}

std::optional<LockUse> lock_use(const Function& function) {
  // A program's own function of such a name has no kind.
  if (!function_kind(function).has_value()) return std::nullopt;
  const LibcFunction* row = find_libc_function(function.name);
  if (row == nullptr || row->lock.action == LockAction::kNone) return std::nullopt;
  return row->lock;
}

}  // namespace arctrace::reader
