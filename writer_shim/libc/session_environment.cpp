#include "writer_shim/libc/session_environment.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/hook.hpp"

namespace arctrace::shim {
namespace {

using Preload = EnvironmentChange::Preload;

constexpr char kSession[] = "ARCTRACE_SESSION=";
constexpr char kPreload[] = "LD_PRELOAD=";
constexpr char kLauncher[] = "VALGRIND_LAUNCHER=";
constexpr char kShimName[] = "libarctrace-shim.so";
constexpr size_t kSessionLength = sizeof kSession - 1;
constexpr size_t kPreloadLength = sizeof kPreload - 1;

// What the recorder sets beside the session, where the program had it at its start.
struct Kept {
  const char* name;  // with its "="
  char value[4096];
  bool is_set;
};
constexpr size_t kAddedMax = 4;  // entries: the session, LD_PRELOAD and these
Kept kept[] = {
    {"ARCTRACE_OPTIONS=", "", false},
#if !defined(__x86_64__)
    {"LD_BIND_NOW=", "", false},
#endif
};

char own_path[4096];  // empty: not known, or not absolute
size_t own_path_length;

size_t length_of(const char* text) { return text_length(text, SIZE_MAX); }

bool same(const char* a, const char* b, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool starts_with(const char* text, const char* prefix, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    if (text[i] != prefix[i]) return false;  // also where text ends
  }
  return true;
}

bool separates(char c) { return c == ':' || c == ' '; }

// A shim of ours, wherever it stands: another installation's may be in charge.
bool is_shim(const char* entry, size_t length) {
  constexpr size_t kNameLength = sizeof kShimName - 1;
  return length >= kNameLength &&
         same(entry + length - kNameLength, kShimName, kNameLength) &&
         (length == kNameLength || entry[length - kNameLength - 1] == '/');
}

bool is_own(const char* entry, size_t length) {
  return length == own_path_length && same(entry, own_path, length);
}

// Calls visit(entry, length) for each entry of a list as LD_PRELOAD has them.
template <class Visit>
void for_each_entry(const char* list, const Visit& visit) {
  while (*list != '\0') {
    size_t n = 0;
    while (list[n] != '\0' && !separates(list[n])) ++n;
    if (n != 0) visit(list, n);
    list += n;
    if (*list != '\0') ++list;
  }
}

bool can_reach_shim() {
  return raw_syscall(SYS_faccessat, AT_FDCWD, sys::pointer_argument(own_path), F_OK) == 0;
}

// `names_launcher`: valgrind tells its tool, a static program, who started it. What the
// tool runs would show our frames in its reports, and their unwind rules are beyond it.
Preload plan_preload(const arctrace_shim_program& program, const char* list,
                     bool names_launcher) {
  bool has_shim = false;
  bool has_own = false;
  if (list != nullptr) {
    for_each_entry(list, [&](const char* entry, size_t length) {
      has_shim = has_shim || is_shim(entry, length);
      has_own = has_own || is_own(entry, length);
    });
  }
  const uint32_t why = arctrace_shim_executes(&program);
  const bool is_valgrind = names_launcher && why == ARCTRACE_UNTRACED_STATIC;
  if (why == ARCTRACE_UNTRACED_CONFINED || why == ARCTRACE_UNTRACED_ARCHITECTURE ||
      is_valgrind || !can_reach_shim()) {
    return has_own ? Preload::kRemove : Preload::kKeep;
  }
  return has_shim ? Preload::kKeep : Preload::kAdd;
}

bool is_kept(const char* entry) {
  for (const Kept& variable : kept) {
    if (variable.is_set && starts_with(entry, variable.name, length_of(variable.name))) {
      return true;
    }
  }
  return false;
}

char* put(char* to, const char* text, size_t length) {
  copy_bytes(to, text, length);
  return to + length;
}

// "LD_PRELOAD=..." as it shall be, without a zero behind it; returns its end.
char* put_preload(char* to, const EnvironmentChange& change) {
  to = put(to, kPreload, kPreloadLength);
  const char* list = change.preload == nullptr ? "" : change.preload;
  if (change.preload_change == Preload::kAdd) {
    to = put(to, own_path, own_path_length);
    if (*list == '\0') return to;
    *to++ = ':';
    return put(to, list, length_of(list));
  }
  const char* first = to;
  for_each_entry(list, [&](const char* entry, size_t length) {
    if (is_own(entry, length)) return;
    if (to != first) *to++ = ':';
    to = put(to, entry, length);
  });
  return to;
}

void remember_own_path() {
  Dl_info info{};
  // As the loader was told to find us, unless that was relative to a folder of then.
  if (dladdr(reinterpret_cast<const void*>(&plan_environment), &info) == 0 ||
      info.dli_fname[0] != '/') {
    return;
  }
  const size_t length = length_of(info.dli_fname);
  if (length >= sizeof own_path) return;
  copy_bytes(own_path, info.dli_fname, length + 1);
  own_path_length = length;
}

}  // namespace

void remember_environment() {
  remember_own_path();
  for (Kept& variable : kept) {
    const size_t name_length = length_of(variable.name);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      if (!starts_with(*entry, variable.name, name_length)) continue;
      const size_t length = length_of(*entry + name_length);
      if (length >= sizeof variable.value) break;
      copy_bytes(variable.value, *entry + name_length, length + 1);
      variable.is_set = true;
      break;
    }
  }
}
EnvironmentChange plan_environment(const arctrace_shim_program& program,
                                   char* const* environment) {
  EnvironmentChange change{nullptr, Preload::kKeep, true, 0};
  const char* session = arctrace_shim_session();
  if (session == nullptr || own_path_length == 0) return change;
  // What is wild is the kernel's to refuse.
  if (arctrace_shim_can_read(environment) == 0) return change;
  size_t count = 0;
  bool names_launcher = false;
  if (environment != nullptr) {
    for (; environment[count] != nullptr; ++count) {
      const char* entry = environment[count];
      if (starts_with(entry, kSession, kSessionLength)) change.add_session = false;
      if (starts_with(entry, kLauncher, sizeof kLauncher - 1)) names_launcher = true;
      if (change.preload == nullptr && starts_with(entry, kPreload, kPreloadLength)) {
        change.preload = entry + kPreloadLength;
      }
    }
  }
  change.preload_change = plan_preload(program, change.preload, names_launcher);
  if (!change.add_session && change.preload_change == Preload::kKeep) return change;
  change.bytes = (count + kAddedMax + 1) * sizeof(char*);
  if (change.add_session) {
    change.bytes += kSessionLength + length_of(session) + 1;
    for (const Kept& variable : kept) {
      change.bytes += length_of(variable.name) + length_of(variable.value) + 1;
    }
  }
  if (change.preload_change != Preload::kKeep) {
    change.bytes += kPreloadLength + own_path_length + 2;
    if (change.preload != nullptr) change.bytes += length_of(change.preload);
  }
  return change;
}

char* const* change_environment(char* const* environment, const EnvironmentChange& change,
                                void* memory) {
  auto** entries = static_cast<char**>(memory);
  size_t count = 0;
  size_t before = 0;
  while (environment != nullptr && environment[before] != nullptr) ++before;
  char* text = reinterpret_cast<char*>(entries + before + kAddedMax + 1);
  if (change.add_session) {
    entries[count++] = text;
    const char* session = arctrace_shim_session();
    text = put(text, kSession, kSessionLength);
    text = put(text, session, length_of(session) + 1);
    for (const Kept& variable : kept) {
      if (!variable.is_set) continue;
      entries[count++] = text;
      text = put(text, variable.name, length_of(variable.name));
      text = put(text, variable.value, length_of(variable.value) + 1);
    }
  }
  const bool new_preload = change.preload_change != Preload::kKeep;
  if (new_preload) {
    char* end = put_preload(text, change);
    *end = '\0';
    const bool is_empty = end == text + kPreloadLength;
    if (!is_empty) entries[count++] = text;
  }
  for (size_t i = 0; i < before; ++i) {
    if (new_preload && starts_with(environment[i], kPreload, kPreloadLength)) continue;
    if (change.add_session && is_kept(environment[i])) continue;
    entries[count++] = environment[i];
  }
  entries[count] = nullptr;
  return entries;
}

void* map_environment(size_t bytes) {
  return sys::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

void unmap_environment(void* memory, size_t bytes) {
  raw_syscall(SYS_munmap, sys::pointer_argument(memory), static_cast<long>(bytes));
}

}  // namespace arctrace::shim
