// Compares conclusions about a system call under a seccomp filter with what the kernel
// does.
#include "src/os/seccomp_filter.hpp"

#include <doctest/doctest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "src/os/kernel_use.hpp"
#include "src/process/confinement.hpp"

namespace arctrace::testing {
namespace {

using Program = std::vector<sock_filter>;

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kArguments = offsetof(seccomp_data, args);
constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kFail = SECCOMP_RET_ERRNO | ENOTUNIQ;
constexpr ForeseenCall kAny{SYS_getppid, 0, {}};

sock_filter statement(int code, uint32_t k) {
  return BPF_STMT(static_cast<uint16_t>(code), k);
}
sock_filter jump(int code, uint32_t k, int jt, int jf) {
  return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | code), k, static_cast<uint8_t>(jt),
                  static_cast<uint8_t>(jf));
}
sock_filter load(uint32_t offset) { return statement(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter give(uint32_t action) { return statement(BPF_RET | BPF_K, action); }

FilterVerdict judge(const Program& program, const ForeseenCall& call) {
  std::vector<FilterState> states(program.size());
  return judge_call(program.data(), static_cast<uint32_t>(program.size()), call,
                    states.data());
}

TEST_CASE("seccomp filter: what it does with a number") {
  const Program program = {load(kNumber), jump(BPF_JEQ, SYS_getppid, 0, 1),
                           give(kFail),   jump(BPF_JGE, SYS_getpid, 0, 1),
                           give(kAllow),  give(SECCOMP_RET_TRAP)};
  CHECK(judge(program, {SYS_getppid, 0, {}}) == FilterVerdict::kFails);
  CHECK(judge(program, {SYS_getpid, 0, {}}) == FilterVerdict::kAllowed);
  CHECK(judge(program, {0, 0, {}}) == FilterVerdict::kHarms);
}

TEST_CASE("seccomp filter: only what lets a call pass unseen is no harm") {
  for (const uint32_t action :
       {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
        SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_LOG, 0x7ff10000U}) {
    CAPTURE(action);
    CHECK(judge({give(action)}, kAny) == FilterVerdict::kHarms);
  }
  CHECK(judge({give(kFail)}, kAny) == FilterVerdict::kFails);
  CHECK(judge({give(kAllow)}, kAny) == FilterVerdict::kAllowed);
}

TEST_CASE("seccomp filter: the worst of what an argument may be") {
  const Program program = {load(kArguments + 8), jump(BPF_JSET, 4, 1, 0), give(kAllow),
                           give(kFail)};
  CHECK(judge(program, kAny) == FilterVerdict::kFails);
  CHECK(judge(program, {SYS_getppid, 2, {0, 4}}) == FilterVerdict::kFails);
  CHECK(judge(program, {SYS_getppid, 2, {0, 3}}) == FilterVerdict::kAllowed);
  CHECK(judge(program, {SYS_getppid, 1, {4, 3}}) == FilterVerdict::kFails);
}

TEST_CASE("seccomp filter: where paths meet with different values, none is known") {
  const Program program = {load(kArguments),
                           jump(BPF_JEQ, 1, 0, 2),
                           statement(BPF_LD | BPF_IMM, 5),
                           jump(BPF_JA, 1, 0, 0),
                           statement(BPF_LD | BPF_IMM, 6),
                           jump(BPF_JEQ, 5, 0, 1),
                           give(kAllow),
                           give(SECCOMP_RET_KILL_PROCESS)};
  CHECK(judge(program, kAny) == FilterVerdict::kHarms);
  CHECK(judge(program, {SYS_getppid, 1, {1}}) == FilterVerdict::kAllowed);
  Program reversed = program;
  std::swap(reversed[6], reversed[7]);
  CHECK(judge(reversed, kAny) == FilterVerdict::kHarms);
}

TEST_CASE("seccomp filter: what is no program harms") {
  CHECK(judge({}, kAny) == FilterVerdict::kHarms);
  CHECK(judge({load(kNumber)}, kAny) == FilterVerdict::kHarms);
  CHECK(judge({jump(BPF_JA, 0xffffffff, 0, 0), give(kAllow)}, kAny) ==
        FilterVerdict::kHarms);
  CHECK(judge({jump(BPF_JEQ, 1, 0, 7), give(kAllow)}, kAny) == FilterVerdict::kHarms);
  CHECK(judge({statement(BPF_RET | BPF_A, 0)}, kAny) == FilterVerdict::kHarms);
}

// A random program about the arguments of getppid, which has none. It allows all other
// calls.
Program any_program(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Program program = {load(kNumber), jump(BPF_JEQ, SYS_getppid, 1, 0), give(kAllow)};
  const uint32_t length = 4 + below(24);
  while (program.size() < length) {
    const int room = static_cast<int>(length - program.size());
    switch (below(6)) {
      case 0:
        program.push_back(load(kArguments + 4 * below(12)));
        break;
      case 1: {
        constexpr int kOperations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_AND,
                                       BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH};
        const int operation = kOperations[below(8)];
        const bool by_index = operation < BPF_LSH && below(2) == 0;
        program.push_back(
            statement(BPF_ALU | operation | (by_index ? BPF_X : BPF_K), below(8)));
        break;
      }
      case 2:
        program.push_back(statement(BPF_MISC | (below(2) == 0 ? BPF_TAX : BPF_TXA), 0));
        break;
      case 3:
        program.push_back(statement(BPF_LDX | BPF_IMM, below(8)));
        break;
      default: {
        constexpr int kJumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
        // A third of the jumps lead to the other end.
        const auto to = [&] {
          return below(3) == 0 ? room
                               : static_cast<int>(below(static_cast<uint32_t>(room)));
        };
        program.push_back(jump(kJumps[below(4)] | (below(2) == 0 ? BPF_X : BPF_K),
                               below(8), to(), to()));
      }
    }
  }
  const uint32_t first = below(2);
  program.push_back(give(first == 0 ? kAllow : kFail));
  program.push_back(give(first == 0 ? kFail : kAllow));
  return program;
}

// Whether the call fails under the filter in the kernel; -1: the kernel refuses the
// filter.
int kernel_fails(const Program& program, const ForeseenCall& call) {
  const pid_t child = fork();
  if (child == 0) {
    auto instructions = program;
    const sock_fprog filter = {static_cast<unsigned short>(instructions.size()),
                               instructions.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
      _exit(2);
    }
    const uint64_t* a = call.arguments;
    _exit(syscall(SYS_getppid, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 2 ? -1 : WEXITSTATUS(status);
}

TEST_CASE("seccomp filter: any program, as the kernel runs it") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int failing = 0;
  int accepted = 0;
  for (int i = 0; i < 300; ++i) {
    const Program program = any_program(random);
    ForeseenCall call{SYS_getppid, 63, {}};
    for (uint64_t& argument : call.arguments) {
      argument = uint64_t{random() % 4} << 32 | random() % 4;
    }
    const int fails = kernel_fails(program, call);
    if (fails < 0) continue;
    ++accepted;
    failing += fails;
    const auto expected = fails != 0 ? FilterVerdict::kFails : FilterVerdict::kAllowed;
    CHECK(judge(program, call) == expected);
    // Unknown arguments get other values.
    call.known = static_cast<uint32_t>(random() % 64);
    for (uint32_t argument = 0; argument < 6; ++argument) {
      if ((call.known >> argument & 1) == 0) call.arguments[argument] = random() % 4;
    }
    CHECK(judge(program, call) >= expected);
  }
  CHECK(accepted > 200);
  CHECK(failing > 20);
}

TEST_CASE("confinement: what a filter forbids us") {
  const auto forbidden = [](Program program) {
    const sock_fprog filter = {static_cast<unsigned short>(program.size()),
                               program.data()};
    return writer::uses_forbidden_by(&filter);
  };
  const auto but = [](long number, uint32_t action) {
    return Program{load(kNumber), jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 1),
                   give(action), give(kAllow)};
  };
  CHECK(forbidden({give(kAllow)}) == 0);
  CHECK(forbidden({give(kFail)}) == kAllUses);
  CHECK(forbidden(but(SYS_ptrace, SECCOMP_RET_KILL_PROCESS)) == 0);
  CHECK(forbidden(but(SYS_get_robust_list, kFail)) == kOrdinaryUse);
  CHECK(forbidden(but(SYS_process_vm_readv, kFail)) == 0);
  CHECK(forbidden(but(SYS_process_vm_readv, SECCOMP_RET_TRAP)) == kOrdinaryUse);
  CHECK(forbidden(but(SYS_set_robust_list, kFail)) == (kOrdinaryUse | kThreadUse));
  CHECK(forbidden(but(SYS_rt_sigprocmask, kFail)) ==
        (kOrdinaryUse | kThreadUse | kMemoryProbeUse));
  Program masks = but(SYS_rt_sigprocmask, SECCOMP_RET_TRAP);
  masks.insert(masks.begin() + 2, {load(kArguments), jump(BPF_JEQ, SIG_SETMASK, 1, 0)});
  masks[1].jf = 3;
  CHECK(forbidden(masks) == (kOrdinaryUse | kMemoryProbeUse));
  CHECK(forbidden(but(SYS_bpf, SECCOMP_RET_TRAP)) == 0);
  CHECK(forbidden(but(SYS_faccessat, kFail)) == kFileCheckUse);
  CHECK(writer::uses_forbidden_by(nullptr) == kAllUses);
}

TEST_CASE("confinement: a filter that can't be read is the kernel's to refuse") {
  CHECK(writer::uses_forbidden_by(reinterpret_cast<const sock_fprog*>(16)) == 0);
  const sock_fprog wild = {3, reinterpret_cast<sock_filter*>(16)};
  CHECK(writer::uses_forbidden_by(&wild) == 0);
}

}  // namespace
}  // namespace arctrace::testing
