// Collects from blocks of definitions the facts for the summary of a recording: events of
// the API and names, functions that were to be patched, and programs that could not be
// traced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace arctrace::recorder {

// Collects from blocks of definitions the events that traced processes define by the API,
// and the names that they use. At the end of a recording these show whether its filter of
// events, instants and counters matched any.
class DefinedEvents {
 public:
  using Names = std::set<std::string, std::less<>>;

  // Notes the events and names in a copy of a block of definitions. The same block may be
  // noted again.
  void note_untrusted(std::span<const std::byte> block);

  // The lowest level with which an event of each name was defined. Names are untrusted
  // bytes.
  const std::map<std::string, uint32_t>& levels() const { return levels_; }
  // The types of their fields, by the fields' names, which are untrusted, too.
  const std::map<std::string, std::set<uint32_t>>& fields() const { return fields_; }
  // The names that were defined: of instants, counters, scopes, and functions whose
  // frames have names. They are untrusted bytes, too.
  const Names& names() const { return names_; }
  // False: there were more than are retained.
  bool has_all_events() const { return has_all_events_; }
  bool has_all_names() const { return has_all_names_; }

 private:
  void note_event(std::span<const std::byte> body);
  void note_field(std::string name, uint32_t type);
  void note_name(std::span<const std::byte> body);

  std::map<std::string, uint32_t> levels_;
  std::map<std::string, std::set<uint32_t>> fields_;
  Names names_;
  bool has_all_events_ = true, has_all_names_ = true;
};

// Collects from blocks of definitions the facts for the summary of a recording about
// functions that were to be patched.
class PatchNotes {
 public:
  // Notes the facts in a copy of a block of definitions. The same block may be noted
  // again.
  void note_untrusted(std::span<const std::byte> block);

  // The addresses of functions that were switched off because their calls filled the
  // buffer: at most 65,536.
  const std::set<uint64_t>& switched_off() const { return switched_off_; }
  // The addresses of compiled-in hooks that were written over: as many at most.
  const std::set<uint64_t>& overwritten() const { return overwritten_; }

  // The reasons (enum arctrace_patch_verdict) why no function of the program was patched
  // in some processes (PATCH_SMALL: not in all), and none of some library.
  const std::set<uint32_t>& refusals() const { return refusals_; }
  const std::set<uint32_t>& library_refusals() const { return library_refusals_; }

 private:
  std::set<uint64_t> switched_off_, overwritten_;
  std::set<uint32_t> refusals_;
  std::set<uint32_t> library_refusals_;
};

// Collects from blocks of definitions which identities are one process of the kernel's,
// because it executed one program after the other: a child that executes a program has
// two. The reader joins them by the same rule (reader/trace/process_identities.hpp).
class ProgramChanges {
 public:
  struct Counts {
    uint64_t processes = 0;  // identities that go on with the process of another one
    uint64_t threads = 0;    // those of them whose first thread does so, too
  };

  // Notes the identities in a copy of a block of definitions. The same block may be noted
  // again. Of more than 65,536 the others are not joined.
  void note_untrusted(std::span<const std::byte> block);

  Counts count() const;

 private:
  struct Identity {
    uint32_t pid = 0, pid_namespace = 0;
    bool was_executed = false;  // it began by exec
    bool has_exited = false;
    bool has_first_thread = false;
    uint64_t start_ticks = 0, end_ticks = 0;
  };
  Identity* identity(uint32_t process);

  std::map<uint32_t, Identity> identities_;
};

// Collects from blocks of definitions the programs that traced processes executed and
// that could not be traced. The summary of a recording lists them.
struct UntracedProgram {
  std::string path;  // as it was executed; untrusted bytes
  uint32_t why;      // enum arctrace_untraced
  bool operator<(const UntracedProgram& other) const {
    return std::tie(path, why) < std::tie(other.path, other.why);
  }
};

class UntracedPrograms {
 public:
  // Notes the programs in a copy of a block of definitions. The same block may be noted
  // again.
  void note_untrusted(std::span<const std::byte> block);

  // The programs, each once, 256 at most.
  const std::set<UntracedProgram>& programs() const { return programs_; }

 private:
  std::set<UntracedProgram> programs_;
};

}  // namespace arctrace::recorder
