// Functions that stand for what the kernel does for a thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

// The module of these functions.
inline constexpr std::string_view kKernelModule = "[kernel]";

// "read"; "syscall 999" if the number is not known. Numbers are those of the machine for
// which this reader was built.
std::string syscall_name(uint32_t number);

// The event that such a function stands for (enum arctrace_kernel_event); 0 for all other
// functions.
uint32_t kernel_event_of(const Function& function);

// Interns each function when it is first asked for.
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

}  // namespace arctrace::reader
