// Finds sleds on x86-64, which are NOPs of any length, or XRay's short jump over NOPs;
// and calls of hooks.
#include "writer_shim/functions/find_sleds.hpp"

#include "src/base/text.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

namespace {

// The beginning of a function, and its sled.
struct FunctionStart {
  uintptr_t function;  // 0: there is none
  const unsigned char* sled;
};

// The function that begins at `first` or one of the NOPs after it, by unwind tables: NOPs
// before a function are in no entry of these. `has_tables`: whether there are any for
// that.
FunctionStart start_by_tables(const unsigned char* first, const unsigned char* limit,
                              bool& has_tables) {
  has_tables = false;
  for (const unsigned char* at = first; at < limit;) {
    const uintptr_t function = find_frame_rule(reinterpret_cast<uintptr_t>(at)).function;
    has_tables = has_tables || function != 0;
    const auto* begin = reinterpret_cast<const unsigned char*>(function);
    if (begin == at) return {function, limit - at > 16 ? end_of_preamble(at) : at};
    if (function != 0 && end_of_preamble(begin) == at) return {function, at};
    const size_t length = filler_length(at, limit);
    if (length == 0 || *at == kBreakpoint) break;
    at += length;
  }
  return {};
}

// The function by symbols. The compiler notes a NOP after the function's landing pad, if
// there is one.
FunctionStart start_by_symbols(const unsigned char* first, const unsigned char* limit,
                               FunctionSymbols& symbols) {
  const auto begins_at = [&](const unsigned char* at) {
    return symbols.begins_at(reinterpret_cast<uintptr_t>(at));
  };
  const unsigned char* pad = first - sizeof kEndbr64;
  if (__builtin_memcmp(pad, kEndbr64, sizeof kEndbr64) == 0 && begins_at(pad)) {
    return {reinterpret_cast<uintptr_t>(pad), first};
  }
  for (const unsigned char* at = first; at < limit;) {
    if (begins_at(at)) {
      return {reinterpret_cast<uintptr_t>(at),
              limit - at > 16 ? end_of_preamble(at) : at};
    }
    const size_t length = filler_length(at, limit);
    if (length == 0 || *at == kBreakpoint) break;
    at += length;
  }
  return {};
}

}  // namespace

Sled find_sled(uintptr_t at, const AddressRange& code, FunctionSymbols& symbols) {
  if (!code.contains(at)) return {};
  const auto* first = reinterpret_cast<const unsigned char*>(at);
  const auto* limit = reinterpret_cast<const unsigned char*>(code.high);
  bool has_tables = false;
  FunctionStart start = start_by_tables(first, limit, has_tables);
  if (!has_tables) start = start_by_symbols(first, limit, symbols);
  if (start.function == 0) return {};
  const unsigned char* begin = start.sled;
  const unsigned char* end = begin;
  while (end < limit) {
    const size_t length = filler_length(end, limit);
    if (length == 0 || *end == kBreakpoint) break;
    end += length;
  }
  if (end - begin < static_cast<long>(kJumpSize)) return {};
  // A uprobe's breakpoint is on the first byte, so a NOP of its own is best there.
  if (*begin == kNop && end - begin > static_cast<long>(kJumpSize)) ++begin;
  return {start.function, const_cast<unsigned char*>(begin),
          reinterpret_cast<uintptr_t>(end)};
}

Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code) {
  constexpr size_t kShortJumpSize = 2;
  constexpr size_t kFiller = 9;  // size of the skipped NOPs; their form depends on -march
  constexpr size_t kSize = kShortJumpSize + kFiller;
  if (!code.contains(at) || code.high - at < kSize) return {};
  // A sled elsewhere comes after a hook of another kind.
  if (at != function && (at - function != sizeof kEndbr64 || !code.contains(function) ||
                         __builtin_memcmp(reinterpret_cast<const void*>(function),
                                          kEndbr64, sizeof kEndbr64) != 0)) {
    return {};
  }
  auto* const begin = reinterpret_cast<unsigned char*>(at);
  if (begin[0] != kShortJump || begin[1] != kFiller) return {};
  // Where XRay's own patching was undone, the rest of a call comes after the short jump.
  const unsigned char* const end = begin + kSize;
  for (const unsigned char* filler = begin + kShortJumpSize; filler < end;) {
    const size_t length = filler_length(filler, end);
    if (length == 0 || *filler == kBreakpoint) return {};
    filler += length;
  }
  return {function, begin, at + kSize};
}

unsigned char* find_xray_exit(uintptr_t at, const AddressRange& code) {
  constexpr size_t kSize = 11;
  constexpr size_t kTailSkip = 9;  // the NOPs' size; then a jump to another function
  if (!code.contains(at) || code.high - at < kSize) return nullptr;
  auto* const begin = reinterpret_cast<unsigned char*>(at);
  const bool is_tail = begin[0] == kShortJump && begin[1] == kTailSkip;
  if (!is_tail && begin[0] != kReturn) return nullptr;
  const unsigned char* const end = begin + kSize;
  for (const unsigned char* filler = begin + (is_tail ? 2 : 1); filler < end;) {
    const size_t length = filler_length(filler, end);
    if (length == 0 || *filler == kBreakpoint) return nullptr;
    filler += length;
  }
  return begin;
}

// Calls of __fentry__ at the entry of functions (-pg -mfentry) are found by reading the
// code: any bytes that look like one count if a function begins there by the unwind
// tables, or if there are none for them. A function that has a static chain (gcc's nested
// functions, Fortran's internal procedures) pushes r10 before the call and pops it after
// it. Then the jump replaces all three instructions, because stubs keep r10.

namespace {

constexpr unsigned char kPushChain[2] = {0x41, 0x52};  // push %r10
constexpr unsigned char kPopChain[2] = {0x41, 0x5a};   // pop %r10
constexpr unsigned char kBoundPrefix = 0xf2;           // before jumps of some PLTs
constexpr uintptr_t kInstructionMax = 16;

const unsigned char* bytes_at(uintptr_t address) {
  return reinterpret_cast<const unsigned char*>(address);
}

// The target of the instruction that ends at `end` with its distance.
uintptr_t target_of(uintptr_t end) {
  int32_t distance;
  __builtin_memcpy(&distance, bytes_at(end) - sizeof distance, sizeof distance);
  return end + static_cast<uintptr_t>(int64_t{distance});
}

bool stands_at(uintptr_t at, const unsigned char* bytes, size_t size) {
  return __builtin_memcmp(bytes_at(at), bytes, size) == 0;
}

// Whether there is a PLT entry at `at` that jumps through the slot.
bool is_entry_of(const ModuleImage& image, uintptr_t at, uintptr_t slot) {
  if (at < image.code.low || at >= image.code.high - kInstructionMax) return false;
  if (stands_at(at, kEndbr64, sizeof kEndbr64)) at += sizeof kEndbr64;
  if (*bytes_at(at) == kBoundPrefix) ++at;
  return stands_at(at, kJumpThrough, sizeof kJumpThrough) && target_of(at + 6) == slot;
}

// The end of the call at `at`; 0: there is none.
uintptr_t call_end(const ModuleImage& image, uintptr_t at, uintptr_t slot) {
  if (stands_at(at, kCallThrough, sizeof kCallThrough)) {
    return target_of(at + 6) == slot ? at + 6 : 0;
  }
  const bool is_call = *bytes_at(at) == kCall;
  return is_call && is_entry_of(image, target_of(at + 5), slot) ? at + 5 : 0;
}

// The address of the push of the static chain before a call at `at`, as gcc places it:
// before a landing pad, and before the NOPs of -fpatchable-function-entry, too. 0: there
// is none.
uintptr_t chain_push_before(uintptr_t at) {
  constexpr int kNopsMax = 256;
  for (int i = 0; i < kNopsMax && *bytes_at(at - 1) == kNop; ++i) --at;
  if (stands_at(at - sizeof kPushChain, kPushChain, sizeof kPushChain)) {
    return at - sizeof kPushChain;
  }
  const uintptr_t pad = at - sizeof kEndbr64;
  if (stands_at(pad, kEndbr64, sizeof kEndbr64) &&
      stands_at(pad - sizeof kPushChain, kPushChain, sizeof kPushChain)) {
    return pad - sizeof kPushChain;
  }
  return 0;
}

// Whether the function begins at `at`, perhaps with a landing pad before.
bool is_entry(uintptr_t function, uintptr_t at) {
  return function == at || (function + sizeof kEndbr64 == at &&
                            stands_at(function, kEndbr64, sizeof kEndbr64));
}

// The sled that consists of the call from `at` to `end`, and of the instructions around
// it that keep the static chain.
Sled sled_of_call(uintptr_t at, uintptr_t end) {
  const uintptr_t function = find_frame_rule(at).function;
  if (function != at && stands_at(end, kPopChain, sizeof kPopChain)) {
    const uintptr_t push = chain_push_before(at);
    if (push != 0 && push >= function) {
      at = push;
      end += sizeof kPopChain;
    }
  }
  if (function == 0) {
    const bool has_pad = stands_at(at - sizeof kEndbr64, kEndbr64, sizeof kEndbr64);
    return {has_pad ? at - sizeof kEndbr64 : at, reinterpret_cast<unsigned char*>(at),
            end};
  }
  if (!is_entry(function, at)) return {};
  return {function, reinterpret_cast<unsigned char*>(at), end};
}

// The slot through which the module calls the function `name`; 0: it doesn't.
uintptr_t find_slot(const ModuleImage& image, const char* name) {
  const auto find = [&image, name](const ElfW(Rela) * relocations, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (equal(image.name_of(relocations[i]), name)) {
        return reinterpret_cast<uintptr_t>(image.slot_of(relocations[i]));
      }
    }
    return uintptr_t{0};
  };
  const uintptr_t slot = find(image.jump_slots, image.jump_slot_count);
  return slot != 0 ? slot : find(image.relocations, image.relocation_count);
}

}  // namespace

bool keeps_static_chain(uintptr_t hook_site) {
  if (!stands_at(hook_site, kPopChain, sizeof kPopChain)) return false;
  return (stands_at(hook_site - 6, kCallThrough, sizeof kCallThrough) &&
          chain_push_before(hook_site - 6) != 0) ||
         (*bytes_at(hook_site - 5) == kCall && chain_push_before(hook_site - 5) != 0);
}

uintptr_t find_entry_call_slot(const ModuleImage& image) {
  return find_slot(image, "__fentry__");
}

ReturnCalls::ReturnCalls(const ModuleImage& image)
    : image_(image), slot_(find_slot(image, "__return__")) {}

bool ReturnCalls::are_in(const Sled& sled) {
  if (slot_ == 0) return false;
  const uintptr_t high = image_.code.high - kInstructionMax;
  if (sled.end < searched_from_ || sled.end > next_) {
    searched_from_ = sled.end;
    next_ = sled.end;
    while (next_ < high && call_end(image_, next_, slot_) == 0) ++next_;
  }
  return next_ < high && find_frame_rule(next_).function == sled.function;
}

Sled next_entry_call(const ModuleImage& image, uintptr_t slot, uintptr_t from) {
  for (uintptr_t at = from; at < image.code.high - kInstructionMax; ++at) {
    const uintptr_t end = call_end(image, at, slot);
    if (end == 0) continue;
    const Sled sled = sled_of_call(at, end);
    if (sled.function != 0) return sled;
  }
  return {};
}

}  // namespace arctrace::shim
