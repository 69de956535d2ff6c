// Walks through the instructions of a seccomp filter for each system call.
#include "src/os/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstddef>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kAuditedMachine = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kAuditedMachine = AUDIT_ARCH_AARCH64;
#endif

struct Value {
  uint32_t number;
  bool is_known;
};

// The word that a filter reads at `offset` of its struct seccomp_data.
Value field(const ForeseenCall& call, uint32_t offset) {
  constexpr uint32_t kArguments = offsetof(seccomp_data, args);
  if (offset == offsetof(seccomp_data, nr)) {
    return {static_cast<uint32_t>(call.number), true};
  }
  if (offset == offsetof(seccomp_data, arch)) return {kAuditedMachine, true};
  if (offset < kArguments || offset >= sizeof(seccomp_data)) return {0, false};
  const uint32_t argument = (offset - kArguments) / 8;
  const unsigned shift = (offset - kArguments) % 8 == 0 ? 0 : 32;
  return {static_cast<uint32_t>(call.arguments[argument] >> shift),
          (call.known >> argument & 1) != 0};
}

Value calculate(uint16_t operation, Value a, Value b) {
  if (!a.is_known || !b.is_known) return {0, false};
  const uint32_t x = a.number;
  const uint32_t y = b.number;
  switch (operation) {
    case BPF_ADD:
      return {x + y, true};
    case BPF_SUB:
      return {x - y, true};
    case BPF_MUL:
      return {x * y, true};
    case BPF_AND:
      return {x & y, true};
    case BPF_OR:
      return {x | y, true};
    case BPF_XOR:
      return {x ^ y, true};
    case BPF_LSH:
      return {x << (y & 31), y < 32};
    case BPF_RSH:
      return {x >> (y & 31), y < 32};
    case BPF_NEG:
      return {~x + 1, true};
    default:  // division: filters hardly use it
      return {0, false};
  }
}

FilterVerdict verdict(Value action) {
  if (!action.is_known) return FilterVerdict::kHarms;
  switch (action.number & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return FilterVerdict::kAllowed;
    case SECCOMP_RET_ERRNO:
      return FilterVerdict::kFails;
    default:  // killed, or shown to a tracer, to a supervisor or in a log, or by a signal
      return FilterVerdict::kHarms;
  }
}

class Walk {
 public:
  Walk(const sock_filter* program, uint32_t length, const ForeseenCall& call,
       FilterState* states)
      : program_(program), length_(length), call_(call), states_(states) {}

  FilterVerdict run() {
    if (length_ == 0 || length_ > BPF_MAXINSNS) return FilterVerdict::kHarms;
    fill_zero(states_, length_ * sizeof(FilterState));
    reach(0, {0, true}, {0, true});
    for (at_ = 0; at_ < length_ && worst_ != FilterVerdict::kHarms; ++at_) {
      if (states_[at_].is_reached) step();
    }
    return worst_;
  }

 private:
  // Notes that `target` is reached with these registers. A register that has another
  // value than when `target` was reached before becomes unknown.
  void reach(uint64_t target, Value accumulator, Value index) {
    if (target >= length_) {
      worst_ = FilterVerdict::kHarms;
      return;
    }
    FilterState& state = states_[target];
    const auto join = [&](uint32_t& number, bool& knows, Value value) {
      knows = value.is_known && (!state.is_reached || (knows && number == value.number));
      number = value.number;
    };
    join(state.accumulator, state.knows_accumulator, accumulator);
    join(state.index, state.knows_index, index);
    state.is_reached = true;
  }

  void branch(const sock_filter& instruction, Value a, Value x, Value operand) {
    const uint64_t next = uint64_t{at_} + 1;
    const bool is_certain = a.is_known && operand.is_known;
    bool holds = false;
    switch (BPF_OP(instruction.code)) {
      case BPF_JA:
        return reach(next + instruction.k, a, x);
      case BPF_JEQ:
        holds = a.number == operand.number;
        break;
      case BPF_JGT:
        holds = a.number > operand.number;
        break;
      case BPF_JGE:
        holds = a.number >= operand.number;
        break;
      case BPF_JSET:
        holds = (a.number & operand.number) != 0;
        break;
      default:
        worst_ = FilterVerdict::kHarms;
        return;
    }
    if (!is_certain || holds) reach(next + instruction.jt, a, x);
    if (!is_certain || !holds) reach(next + instruction.jf, a, x);
  }

  // The contents of the scratch memory count as unknown; hardly any filter uses it.
  Value load(const sock_filter& instruction) {
    switch (instruction.code & ~uint32_t{BPF_CLASS(0xff)}) {
      case BPF_W | BPF_ABS:
        return field(call_, instruction.k);
      case BPF_IMM:
        return {instruction.k, true};
      case BPF_W | BPF_LEN:
        return {sizeof(seccomp_data), true};
      default:
        return {0, false};
    }
  }

  void step() {
    const sock_filter& instruction = program_[at_];
    const FilterState& state = states_[at_];
    Value a{state.accumulator, state.knows_accumulator};
    Value x{state.index, state.knows_index};
    const Value operand =
        BPF_SRC(instruction.code) == BPF_X ? x : Value{instruction.k, true};
    switch (BPF_CLASS(instruction.code)) {
      case BPF_LD:
        a = load(instruction);
        break;
      case BPF_LDX:
        x = load(instruction);
        break;
      case BPF_ST:
      case BPF_STX:
        break;
      case BPF_ALU:
        a = calculate(BPF_OP(instruction.code), a, operand);
        break;
      case BPF_MISC:
        if (BPF_MISCOP(instruction.code) == BPF_TXA) {
          a = x;
        } else {
          x = a;
        }
        break;
      case BPF_JMP:
        return branch(instruction, a, x, operand);
      default: {  // BPF_RET
        const FilterVerdict found =
            verdict(BPF_RVAL(instruction.code) == BPF_A ? a : Value{instruction.k, true});
        if (found > worst_) worst_ = found;
        return;
      }
    }
    reach(uint64_t{at_} + 1, a, x);
  }

  const sock_filter* program_;
  uint32_t length_;
  const ForeseenCall& call_;
  FilterState* states_;
  uint32_t at_ = 0;
  FilterVerdict worst_ = FilterVerdict::kAllowed;
};

}  // namespace

FilterVerdict judge_call(const sock_filter* program, uint32_t length,
                         const ForeseenCall& call, FilterState* states) {
  return Walk(program, length, call, states).run();
}

namespace {

// A system call that we make, and the uses for which it must succeed. For ordinary use
// every call must at least do no harm.
struct OwnCall {
  ForeseenCall call;
  uint32_t needed_for;
};

constexpr uint32_t kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr uint64_t kReadWrite = PROT_READ | PROT_WRITE;
constexpr uint64_t kJoinFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

constexpr OwnCall kOwnCalls[] = {
    {{SYS_rt_sigprocmask, 1, {SIG_SETMASK}}, kOrdinaryUse | kThreadUse},
    {{SYS_rt_sigprocmask, 0, {}}, kMemoryProbeUse},
    {{SYS_set_robust_list, 2, {0, sizeof(robust_list_head)}}, kOrdinaryUse | kThreadUse},
    {{SYS_get_robust_list, 1, {0}}, kOrdinaryUse},
    {{SYS_gettid, 0, {}}, kOrdinaryUse},
    {{SYS_getpid, 0, {}}, kOrdinaryUse},
    {{SYS_openat, 4, {0, 0, kJoinFlags}}, kOrdinaryUse},
    {{SYS_openat, 4, {0, 0, O_RDONLY | O_CLOEXEC}}, kOrdinaryUse},
    {{SYS_fstat, 0, {}}, kOrdinaryUse},
    {{SYS_pread64, 0, {}}, kOrdinaryUse},
    {{SYS_close, 0, {}}, kOrdinaryUse},
    {{SYS_mmap, 12, {0, 0, kReadWrite, MAP_SHARED}}, kOrdinaryUse},
    {{SYS_mmap, 12, {0, 0, kReadWrite, kPrivate}}, kOrdinaryUse},
    {{SYS_madvise, 4, {0, 0, MADV_WIPEONFORK}}, kOrdinaryUse},
    {{SYS_faccessat, 0, {}}, kFileCheckUse},
    {{SYS_openat, 0, {}}, 0},
    {{SYS_mmap, 0, {}}, 0},
    {{SYS_munmap, 0, {}}, 0},
    {{SYS_mprotect, 0, {}}, 0},
    {{SYS_read, 0, {}}, 0},
    {{SYS_fcntl, 0, {}}, 0},
    {{SYS_newfstatat, 0, {}}, 0},
    {{SYS_statfs, 0, {}}, 0},
    {{SYS_fstatfs, 0, {}}, 0},
    {{SYS_readlinkat, 0, {}}, 0},
    {{SYS_getcwd, 0, {}}, 0},
    {{SYS_fgetxattr, 0, {}}, 0},
    {{SYS_getuid, 0, {}}, 0},
    {{SYS_geteuid, 0, {}}, 0},
    {{SYS_getgid, 0, {}}, 0},
    {{SYS_getegid, 0, {}}, 0},
    {{SYS_getgroups, 0, {}}, 0},
    {{SYS_getppid, 0, {}}, 0},
    {{SYS_sigaltstack, 1, {0}}, 0},
    {{SYS_prctl, 1, {PR_GET_NAME}}, 0},
    {{SYS_prctl, 1, {PR_GET_NO_NEW_PRIVS}}, 0},
    {{SYS_futex, 2, {0, FUTEX_WAKE}}, 0},
    {{SYS_prlimit64, 0, {}}, 0},
    {{SYS_process_vm_readv, 0, {}}, 0},
    {{SYS_bpf, 0, {}}, 0},
};

}  // namespace

uint32_t forbidden_uses(const sock_filter* program, uint32_t length, bool is_map,
                        FilterState* states) {
  uint32_t forbidden = 0;
  for (const OwnCall& made : kOwnCalls) {
    if (made.call.number == SYS_bpf && !is_map) continue;
    const FilterVerdict verdict = judge_call(program, length, made.call, states);
    if (verdict != FilterVerdict::kAllowed) forbidden |= made.needed_for;
    if (verdict == FilterVerdict::kHarms) forbidden |= kOrdinaryUse;
  }
  return forbidden;
}

}  // namespace arctrace
