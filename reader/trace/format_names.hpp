// The words for the enumerations of format.h, as reports show them.
#pragma once

#include <cstdint>
#include <string>

namespace arctrace::reader {

// A number that has no word gives "TYPE_13", "cause_5", "phase_9" and so on.
std::string record_type_text(uint16_t type);    // "ENTER"
std::string loss_cause_text(uint32_t cause);    // "full", "too_big", "nested", "no_slot"
std::string mode_text(uint32_t mode);           // "drop", "overwrite", "stop"
std::string scope_text(uint32_t scope);         // "thread", "shared"
std::string clock_text(uint32_t clock);         // "tsc", "cntvct", "monotonic"
std::string stamps_name(uint32_t stamps);       // "exact", "coarse", "order"
std::string phase_text(uint32_t phase);         // "free", "owned", ...
std::string origin_text(uint32_t origin);       // "exec", "fork"
std::string process_end_text(uint32_t how);     // "exit", "_exit", "exec"
std::string life_phase_text(uint32_t phase);    // "main", "exit"
std::string hook_kind_text(uint32_t kind);      // "library_call", "function", ...
std::string untraced_text(uint32_t why);        // "setuid", ...: follows "it is "
std::string writer_end_text(uint32_t how);      // "died"
std::string session_event_text(uint32_t what);  // "started", "finished", "disk_full"
std::string files_event_text(uint32_t what);    // "begin", "end", "removed"
std::string gate_text(uint32_t gate);           // "all", "events, marks", "nothing"
std::string code_file_kind_text(uint32_t kind);
std::string softirq_text(uint32_t vector);       // "timer", "net-rx", ...: the kernel's
std::string interrupt_kind_text(uint32_t kind);  // "device", "softirq", "cpu"
// Returns "irq 36", "softirq net-rx", "timer interrupt" for a number of that kind.
std::string interrupt_text(uint32_t kind, uint32_t number);
std::string field_type_text(uint32_t type);         // "u8", ..., "string"
std::string wait_status_text(int32_t wait_status);  // "exit 3", "signal 9 (Killed)"

// A verdict on a function that was to be patched (enum arctrace_patch_verdict): as a
// JSON value, as a word, and as a line about so many functions.
struct PatchVerdictText {
  std::string key, word, reason;
};
PatchVerdictText patch_verdict_text(uint32_t verdict);

// Returns why no function of a program was patched, to follow "no function was patched:
// "; empty: the verdict is one on single functions.
std::string patch_refusal_text(uint32_t verdict);

}  // namespace arctrace::reader
