// Reads an environment as libc and the loader do, by the first entry of a name. The
// variables that the recorder set beside the session are saved at the start, because the
// program may change or overwrite its own copy.
#include "writer_shim/libc/session_environment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/text.hpp"
#include "src/shim_protocol/options.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/plt/own_work.hpp"

namespace arctrace::shim {
namespace {

using Preload = EnvironmentChange::Preload;

constexpr char kLauncherVariable[] = "VALGRIND_LAUNCHER";
constexpr char kShimName[] = "libarctrace-shim.so";

// A variable that the recorder sets beside the session, as the program had it at its
// start.
struct Kept {
  const char* name;
  const char* entry;  // "NAME=VALUE" in memory of our own; empty: it was not set
};
ARCTRACE_LARGE_TABLE char options_entry[kVariableBytesMax];
#if !defined(__x86_64__)
char bind_now_entry[64];
#endif
const Kept kept[] = {
    {kOptionsVariable, options_entry},
#if !defined(__x86_64__)
    {kBindNowVariable, bind_now_entry},
#endif
};
constexpr size_t kAddedMax = 4;  // entries: the session, LD_PRELOAD and these

bool was_joined;  // by a recorder, as it ran

ARCTRACE_FIRST_LARGE_TABLE char own_path[4096];  // empty: not known, or not absolute
size_t own_path_length;

size_t length_of(const char* text) { return text_length(text, SIZE_MAX); }

bool same(const char* a, const char* b, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// The value of an entry of the environment; null: it is that of another variable.
const char* value_of(const char* entry, const char* name) {
  while (*name != '\0' && *entry == *name) ++entry, ++name;
  return *name == '\0' && *entry == '=' ? entry + 1 : nullptr;
}

bool is_same_text(const char* a, const char* b) {
  const size_t length = length_of(a);
  return length == length_of(b) && same(a, b, length);
}

bool separates(char c) { return c == ':' || c == ' '; }

// Whether the entry names a shim, perhaps of another installation, which may be the one
// that records.
bool is_shim(const char* entry, size_t length) {
  constexpr size_t kNameLength = sizeof kShimName - 1;
  return length >= kNameLength &&
         same(entry + length - kNameLength, kShimName, kNameLength) &&
         (length == kNameLength || entry[length - kNameLength - 1] == '/');
}

bool is_own(const char* entry, size_t length) {
  return length == own_path_length && same(entry, own_path, length);
}

// Calls visit(entry, length) for each entry of a list such as LD_PRELOAD's.
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

bool has_own_entry(const char* list) {
  bool has_own = false;
  if (list != nullptr) {
    for_each_entry(list, [&](const char* entry, size_t length) {
      has_own = has_own || is_own(entry, length);
    });
  }
  return has_own;
}

Preload plan_preload_after_session(const char* list) {
  return has_own_entry(list) ? Preload::kRemove : Preload::kKeep;
}

// `names_launcher`: the environment is that of valgrind's tool, a static program. The
// tool would show our frames in its reports, and cannot follow their unwind rules.
Preload plan_preload(const arctrace_shim_program& program, const char* list,
                     bool names_launcher) {
  bool has_shim = false;
  if (list != nullptr) {
    for_each_entry(list, [&](const char* entry, size_t length) {
      has_shim = has_shim || is_shim(entry, length);
    });
  }
  const uint32_t why = arctrace_shim_executes(&program);
  const bool is_valgrind = names_launcher && why == ARCTRACE_UNTRACED_STATIC;
  if (why == ARCTRACE_UNTRACED_CONFINED || why == ARCTRACE_UNTRACED_ARCHITECTURE ||
      is_valgrind || !can_reach_shim()) {
    return has_own_entry(list) ? Preload::kRemove : Preload::kKeep;
  }
  return has_shim ? Preload::kKeep : Preload::kAdd;
}

bool is_kept(const char* entry) {
  for (const Kept& variable : kept) {
    if (*variable.entry != '\0' && value_of(entry, variable.name) != nullptr) return true;
  }
  return false;
}

char* put(char* to, const char* text, size_t length) {
  copy_bytes(to, text, length);
  return to + length;
}

// Writes "NAME=".
char* put_name(char* to, const char* name) {
  to = put(to, name, length_of(name));
  *to++ = '=';
  return to;
}

// Records go on in the buffer of a recorder that has died, from which they can be
// recovered; but a program that was joined gets its own environment again.
bool is_session_over() {
  const arctrace_shim_session_state state = arctrace_shim_state_of_session();
  return state == ARCTRACE_SHIM_REMOVED ||
         (state == ARCTRACE_SHIM_ABANDONED && was_joined);
}

// Whether the entry is one that the session brought: its path, or its options.
bool is_of_session(const char* entry, const char* session) {
  const char* path = value_of(entry, kSessionVariable);
  return path != nullptr ? is_same_text(path, session)
                         : *options_entry != '\0' && is_same_text(entry, options_entry);
}

// Writes the changed value of LD_PRELOAD, without a final zero, and returns its end.
char* put_preload(char* to, const EnvironmentChange& change) {
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
  // This is the path by which the loader found the shim. A relative one is not used: the
  // program may since have changed its working directory. Neither is one in /proc, of a
  // descriptor that was handed over: it is another file by then, or none.
  const char* path =
      file_of_function(reinterpret_cast<uintptr_t>(&plan_environment), "").path;
  if (path[0] != '/' || starts_with(path, "/proc/")) return;
  const size_t length = length_of(path);
  if (length >= sizeof own_path) return;
  copy_bytes(own_path, path, length + 1);
  own_path_length = length;
}

}  // namespace

void remember_environment(const char* options, bool is_joined) {
  was_joined = is_joined;
  remember_own_path();
  if (options != nullptr &&
      length_of(options) < kVariableBytesMax - sizeof kOptionsVariable) {
    char* const text = put_name(options_entry, kOptionsVariable);
    put(text, options, length_of(options) + 1);
  }
#if !defined(__x86_64__)
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (value_of(*entry, kBindNowVariable) == nullptr) continue;
    const size_t length = length_of(*entry);
    if (length < sizeof bind_now_entry) copy_bytes(bind_now_entry, *entry, length + 1);
    break;
  }
#endif
}

const char* remembered_options() { return options_entry; }

EnvironmentChange plan_environment(const arctrace_shim_program& program,
                                   char* const* environment) {
  const OwnWork examining(arctrace_shim_tells_own_work() != 0);
  EnvironmentChange change{nullptr, Preload::kKeep, true, false, 0};
  const char* session = arctrace_shim_session();
  if (session == nullptr) return change;
  if (session[0] == '\0') {
    // Neither session nor shim has a path at which a program finds it.
    arctrace_shim_executes(&program);
    return change;
  }
  if (own_path_length == 0) return change;
  // If a list cannot be read, the kernel will refuse it.
  if (arctrace_shim_can_read(environment) == 0) return change;
  const bool is_over = is_session_over();
  if (is_over) change.add_session = false;
  size_t count = 0;
  bool names_launcher = false;
  if (environment != nullptr) {
    for (; environment[count] != nullptr; ++count) {
      const char* entry = environment[count];
      if (value_of(entry, kSessionVariable) != nullptr) change.add_session = false;
      if (value_of(entry, kLauncherVariable) != nullptr) names_launcher = true;
      if (is_over && is_of_session(entry, session)) change.remove_session = true;
      if (change.preload == nullptr) change.preload = value_of(entry, kPreloadVariable);
    }
  }
  change.preload_change = is_over ? plan_preload_after_session(change.preload)
                                  : plan_preload(program, change.preload, names_launcher);
  if (!change.add_session && !change.remove_session &&
      change.preload_change == Preload::kKeep) {
    return change;
  }
  change.bytes = (count + kAddedMax + 1) * sizeof(char*);
  if (change.add_session) {
    change.bytes += sizeof kSessionVariable + 1 + length_of(session);
  }
  if (change.preload_change != Preload::kKeep) {
    change.bytes += sizeof kPreloadVariable + 1 + own_path_length + 1;
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
  const char* session = arctrace_shim_session();
  if (change.add_session) {
    entries[count++] = text;
    text = put_name(text, kSessionVariable);
    text = put(text, session, length_of(session) + 1);
    for (const Kept& variable : kept) {
      if (*variable.entry != '\0') entries[count++] = const_cast<char*>(variable.entry);
    }
  }
  const bool new_preload = change.preload_change != Preload::kKeep;
  if (new_preload) {
    char* const value = put_name(text, kPreloadVariable);
    char* const end = put_preload(value, change);
    *end = '\0';
    if (end != value) entries[count++] = text;
  }
  for (size_t i = 0; i < before; ++i) {
    if (new_preload && value_of(environment[i], kPreloadVariable) != nullptr) continue;
    if (change.add_session && is_kept(environment[i])) continue;
    if (change.remove_session && is_of_session(environment[i], session)) continue;
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
