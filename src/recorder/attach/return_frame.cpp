// The frame is as the kernel makes it for a handler (arch/x86/kernel/signal_64.c), after
// a word that leads to it.
#include "src/recorder/attach/return_frame.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace arctrace {
namespace {

// The kernel's struct ucontext.
struct SignalContext {
  uint64_t flags;
  uint64_t link;
  uint64_t stack;
  uint32_t stack_flags;
  uint32_t pad;
  uint64_t stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
  uint64_t eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, fault;
  uint64_t vectors;  // address, a multiple of 64; 0: none
  uint64_t reserved[8];
  uint64_t signal_mask;
};
static_assert(offsetof(SignalContext, signal_mask) == 296);

constexpr uint64_t kHasVectors = 1;
constexpr uint64_t kHasStackSegment = 2;
constexpr uint64_t kStrictStackSegment = 4;
// No kind of signal stack, so that the thread's own stays as it is.
constexpr uint32_t kNoStack = 0x40;

// What stands in bytes of the vector state that hardware leaves alone.
struct VectorsMark {
  uint32_t magic;
  uint32_t extended_size;
  uint64_t features;
  uint32_t size;
  uint32_t pad[7];
};
constexpr size_t kMarkAt = 464;
constexpr uint32_t kMagic = 0x46505853;
constexpr uint32_t kEndMagic = 0x46505845;

// Of a call that a stop has interrupted: it is made again.
bool is_interrupted(const user_regs_struct& registers) {
  constexpr int64_t kRestartMin = -516;
  constexpr int64_t kRestartMax = -512;
  const auto result = static_cast<int64_t>(registers.rax);
  return static_cast<int64_t>(registers.orig_rax) >= 0 &&
         ((result >= kRestartMin && result <= kRestartMax) || result == -EINTR);
}

SignalContext context_of(const StoppedState& state) {
  constexpr uint64_t kSystemCallSize = 2;
  const user_regs_struct& r = state.registers;
  SignalContext context{};
  context.flags = kHasVectors | kHasStackSegment | kStrictStackSegment;
  context.stack_flags = kNoStack;
  context.r8 = r.r8, context.r9 = r.r9, context.r10 = r.r10, context.r11 = r.r11;
  context.r12 = r.r12, context.r13 = r.r13, context.r14 = r.r14, context.r15 = r.r15;
  context.rdi = r.rdi, context.rsi = r.rsi, context.rbp = r.rbp, context.rbx = r.rbx;
  context.rdx = r.rdx, context.rax = r.rax, context.rcx = r.rcx, context.rsp = r.rsp;
  context.rip = r.rip, context.eflags = r.eflags;
  context.cs = static_cast<uint16_t>(r.cs), context.ss = static_cast<uint16_t>(r.ss);
  context.signal_mask = state.signal_mask;
  if (is_interrupted(r)) {
    context.rax = r.orig_rax;
    context.rip -= kSystemCallSize;
  }
  return context;
}

template <class T>
void put(std::string& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

ReturnFrame make_return_frame(const StoppedState& state, const ReturnCode& code,
                              uint64_t end) {
  constexpr uint64_t kVectorsAlign = 64;
  constexpr uint64_t kStackAlign = 16;
  const uint64_t vectors_size = state.vectors.size() + sizeof kEndMagic;
  const uint64_t vectors = (end - vectors_size) & ~(kVectorsAlign - 1);
  // Two return addresses stand before the context.
  const uint64_t slot =
      ((vectors - sizeof(SignalContext) - 2 * sizeof(uint64_t)) & ~(kStackAlign - 1)) -
      sizeof(uint64_t);
  ReturnFrame frame{slot, std::string(vectors + vectors_size - slot, '\0')};
  SignalContext context = context_of(state);
  context.vectors = vectors;
  put(frame.bytes, 0, code.system_call);
  put(frame.bytes, sizeof(uint64_t), code.signal_return);
  put(frame.bytes, 2 * sizeof(uint64_t), context);
  const size_t at = vectors - slot;
  std::copy(state.vectors.begin(), state.vectors.end(),
            frame.bytes.begin() + static_cast<ptrdiff_t>(at));
  VectorsMark mark{};
  std::memcpy(&mark.features, state.vectors.data() + kMarkAt, sizeof mark.features);
  mark.magic = kMagic;
  mark.size = static_cast<uint32_t>(state.vectors.size());
  mark.extended_size = static_cast<uint32_t>(vectors_size);
  put(frame.bytes, at + kMarkAt, mark);
  put(frame.bytes, at + state.vectors.size(), kEndMagic);
  return frame;
}

}  // namespace arctrace
