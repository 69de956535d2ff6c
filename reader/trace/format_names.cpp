#include "reader/trace/format_names.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <sys/wait.h>

#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// Returns the word for `number`; words[0] is the word for `first`.
std::string word(uint32_t number, uint32_t first, const char* kind,
                 std::initializer_list<const char*> words) {
  if (number >= first && number - first < words.size()) {
    return words.begin()[number - first];
  }
  return absl::StrCat(kind, "_", number);
}

}  // namespace

std::string record_type_text(uint16_t type) {
  const std::string_view name = type_name(type);
  return name.empty() ? absl::StrCat("TYPE_", type) : std::string(name);
}

std::string loss_cause_text(uint32_t cause) {
  return word(cause, ARCTRACE_LOST_FULL, "cause",
              {"full", "too_big", "nested", "no_slot", "kernel", "file", "identity",
               "definitions", "removed"});
}

std::string mode_text(uint32_t mode) {
  return word(mode, ARCTRACE_MODE_DROP, "mode", {"drop", "overwrite", "stop"});
}

std::string scope_text(uint32_t scope) {
  return word(scope, ARCTRACE_SCOPE_THREAD, "scope", {"thread", "shared", "adaptive"});
}

std::string clock_text(uint32_t clock) {
  return word(clock, ARCTRACE_CLOCK_TSC, "clock", {"tsc", "cntvct", "monotonic"});
}

std::string stamps_name(uint32_t stamps) {
  return word(stamps, ARCTRACE_STAMPS_EXACT, "stamps", {"exact", "coarse", "order"});
}

std::string phase_text(uint32_t phase) {
  return word(phase, ARCTRACE_PHASE_FREE, "phase",
              {"free", "owned", "shared", "closed", "draining", "resetting"});
}

std::string origin_text(uint32_t origin) {
  if (origin == 0) return "not known";  // only records other than PROCESS name it
  return word(origin, ARCTRACE_ORIGIN_EXEC, "origin", {"exec", "fork"});
}

std::string process_end_text(uint32_t how) {
  return word(how, ARCTRACE_END_NONE, "end", {"exec failed", "exit", "_exit", "exec"});
}

std::string life_phase_text(uint32_t phase) {
  return word(phase, ARCTRACE_LIFE_MAIN, "phase",
              {"main", "exit", "helper", "thread_end", "traced"});
}

std::string hook_kind_text(uint32_t kind) {
  return word(kind, ARCTRACE_HOOK_LIBRARY_CALL, "kind",
              {"library_call", "function", "patched", "api", "arguments", "xray",
               "return", "buffer_mib"});
}

std::string untraced_text(uint32_t why) {
  return word(why, ARCTRACE_UNTRACED_STATIC, "reason",
              {"statically linked", "setuid", "setgid", "given capabilities",
               "of another architecture",
               "out of the session's reach: another user's, or in another root directory",
               "linked with musl", "confined by a seccomp filter",
               "linked with a glibc before 2.28"});
}

PatchVerdictText patch_verdict_text(uint32_t verdict) {
  static const std::vector<PatchVerdictText> texts = {
      {"patchable", "patchable", "can be patched"},
      {"slot_stub", "slot stub", "a jump through a slot to another function"},
      {"part", "part", "a part of another function"},
      {"no_frame_info", "no frame info", "no call frame information"},
      {"other_frame", "other frame", "not entered like a function that is called"},
      {"too_short", "too short", "shorter than a jump, 5 bytes"},
      {"not_code", "not code", "bytes in it that are no instruction"},
      {"call", "call", "a call in the first 5 bytes"},
      {"ends_early", "ends early", "a return or jump in the first 5 bytes"},
      {"not_movable", "not movable", "an instruction that cannot be moved"},
      {"loops_to_entry", "loops to entry", "jumps to its own first instruction"},
      {"entered_inside", "entered inside", "a jump leads past its first instruction"},
      {"pointed_inside", "pointed inside", "a pointer leads past its first instruction"},
      {"unknown_targets", "unknown targets", "jumps by a table that was not found"},
      {"small", "small", "small, without calls and loops, or smaller than -Z says"},
      {"unmoved_rules", "unmoved rules", "unwind rules that cannot be moved"},
      {"changed", "changed", "instructions that are not those of the file"},
      {"no_stub", "no stub", "too many functions"},
      {"flooded", "switched off", "switched off, because their calls filled the buffer"},
      {"special", "special",
       "hooked in another way, or a part of libc that must be left"},
      {"in_use", "in use",
       "a thread stood in its first bytes, or these are on two pages"},
      {"overwritten", "overwritten",
       "without their hook, over which a uprobe or the program has written"},
  };
  if (verdict < texts.size()) return texts[verdict];
  const std::string word = absl::StrCat("verdict_", verdict);
  return {word, word, word};
}

std::string patch_refusal_text(uint32_t verdict) {
  if (verdict < ARCTRACE_PATCH_NO_ROOM) return "";
  return word(
      verdict, ARCTRACE_PATCH_NO_ROOM, "refusal",
      {"no addresses are free near the program",
       "its runtime looks up return addresses or moves stacks",
       "its file could not be analysed", "it had other threads before its own code ran",
       "it is under a seccomp filter", "its functions have compiled-in hooks",
       "the arctrace command could not be run in it", "its code could not be changed"});
}

std::string writer_end_text(uint32_t how) {
  return word(how, ARCTRACE_WRITER_DIED, "end", {"died"});
}

std::string session_event_text(uint32_t what) {
  return word(what, ARCTRACE_SESSION_STARTED, "event",
              {"started", "finished", "disk_full", "dump_begin", "dump_end"});
}

std::string files_event_text(uint32_t what) {
  return word(what, ARCTRACE_FILES_BEGIN, "event", {"begin", "end", "removed"});
}

std::string gate_text(uint32_t gate) {
  constexpr const char* kNames[] = {"functions", "events",      "marks",   "kernel",
                                    "syscalls",  "page-faults", "signals", "contention",
                                    "block-io",  "irq"};
  std::string text;
  size_t first = 0;
  if ((gate & ARCTRACE_GATE_ALL) == ARCTRACE_GATE_ALL) {
    text = "all";
    first = ARCTRACE_KERNEL_EVENT_SHIFT;
  }
  for (size_t i = first; i < std::size(kNames); ++i) {
    if ((gate >> i & 1) == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", kNames[i]);
  }
  return text.empty() ? "nothing" : text;
}

std::string code_file_kind_text(uint32_t kind) {
  return word(kind, ARCTRACE_CODE_PERF_MAP, "kind", {"perf_map", "jitdump"});
}

std::string softirq_text(uint32_t vector) {
  return word(vector, 0, "softirq",
              {"hi", "timer", "net-tx", "net-rx", "block", "irq-poll", "tasklet", "sched",
               "hrtimer", "rcu"});
}

std::string interrupt_kind_text(uint32_t kind) {
  return word(kind, ARCTRACE_INTERRUPT_DEVICE, "kind", {"device", "softirq", "cpu"});
}

std::string interrupt_text(uint32_t kind, uint32_t number) {
  switch (kind) {
    case ARCTRACE_INTERRUPT_DEVICE:
      return absl::StrCat("irq ", number);
    case ARCTRACE_INTERRUPT_SOFT:
      return absl::StrCat("softirq ", softirq_text(number));
    case ARCTRACE_INTERRUPT_CPU:
      return absl::StrCat(word(number, ARCTRACE_CPU_TIMER, "cpu",
                               {"timer", "reschedule", "call", "work"}),
                          " interrupt");
    default:
      return absl::StrCat(interrupt_kind_text(kind), " interrupt ", number);
  }
}

std::string field_type_text(uint32_t type) {
  return word(type, ARCTRACE_FIELD_U8, "type",
              {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "bool",
               "x64", "string"});
}

std::string wait_status_text(int32_t wait_status) {
  if (WIFEXITED(wait_status)) return absl::StrCat("exit ", WEXITSTATUS(wait_status));
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("signal ", signal, " (", ::strsignal(signal), ")");
  }
  return absl::StrCat("wait status ", wait_status);
}

}  // namespace arctrace::reader
