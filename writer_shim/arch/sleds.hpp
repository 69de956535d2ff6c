// Functions that begin with room for a jump, called a sled, or with a call of a hook that
// a jump may replace; and the jumps that are put there. Each machine knows its
// instructions (x86_64/sleds.cpp, aarch64/sleds.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/arch/machine.hpp"
#include "writer_shim/arch/reported_entry.h"
#include "writer_shim/elf/function_symbols.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

struct Sled {
  uintptr_t function;  // 0: there is none, or too little room
  unsigned char* begin;
  uintptr_t end;  // where the function goes on
};

// How a function's exits are seen.
enum class Exits : uint8_t {
  kThrough,  // the stub calls the function through
  kReported  // the function calls arctrace_shim_function_return before it returns
};

// The code to which a sled is made to jump. It tests the gate itself, so that a function
// costs next to nothing while functions are switched off, and then goes on to the stub.
struct GatedJump {
  alignas(8) unsigned char code[machine::kGatedJumpBytes];
  uint64_t stub;     // or, if kSledsLoadCalls, what goes on with `call`
  uint64_t address;  // of the code
  uint64_t call;     // address of the function's LibraryCall
};

// The code that sleds at the exits of a module's functions call.
struct ReturnJump {
  alignas(8) unsigned char code[8];
  uint64_t hook;
};

// The sled of the function whose first NOP the compiler noted at `at`. Some NOPs may be
// before the function; which, its module's unwind tables say, or else its symbols.
Sled find_sled(uintptr_t at, const AddressRange& code, FunctionSymbols& symbols);

// The sled that clang noted at `at` for the entry of `function`, if its bytes are still
// as clang made them.
Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code);

// The sled that clang noted at `at` for an exit of a function, if its bytes are still as
// clang made them; null: they aren't, or such sleds are left alone on this machine.
unsigned char* find_xray_exit(uintptr_t at, const AddressRange& code);

// The slot through which the module's functions call __fentry__ at their entry; 0: none
// do.
uintptr_t find_entry_call_slot(const ModuleImage& image);

// Finds the functions of a module that call __return__ before they return, which they do
// at each of their returns.
class ReturnCalls {
 public:
  explicit ReturnCalls(const ModuleImage& image);
  // Whether the function of this sled does. Takes long if asked about one that comes
  // before the last one.
  bool are_in(const Sled& sled);

 private:
  const ModuleImage& image_;
  uintptr_t slot_;             // 0: none do
  uintptr_t looked_from_ = 0;  // no call is between this and `next_`
  uintptr_t next_ = 0;
};

// The first such call at `from` or after it, as a sled.
Sled next_entry_call(const ModuleImage& image, uintptr_t slot, uintptr_t from);

// Writes the code of the jump for a sled; `gate`: the address of the word that holds the
// gate's address. False: something is too far away.
bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled);

// The address at which the stub calls the function.
uintptr_t continue_address(const GatedJump& jump, const Sled& sled);

// The kernel puts a breakpoint on the first byte of a function to which a uprobe is
// attached, executes in its place the instruction that the file has there, and later
// writes back the file's byte. So a sled's bytes must also be right without its jump:
// with the file's first byte, and from the end of the file's first instruction on. Where
// that takes a jump over a certain distance, the sled jumps to a landing, which jumps on.
//
// Sets the i-th of the distances that are of use for `sled`, from its begin to its
// landing. False: there are no more.
bool find_landing_distance(const Sled& sled, size_t i, intptr_t& distance);
inline constexpr size_t kLandingSize = 8;

// Makes the sled jump to `jump`, by a landing at this distance if it is not 0 and is of
// use for the sled. False: it is too far away.
bool lead_to_jump(const Sled& sled, const GatedJump& jump, intptr_t landing_distance);

// Makes a jump to `hook`, and has the sled at an exit call it. The latter is false if
// that is too far away.
void make_return_jump(ReturnJump& jump, uintptr_t hook);
bool lead_to_return_jump(unsigned char* exit, const ReturnJump& jump);

// Which stub, or code for patched functions, the jump leads to that was put at the
// beginning of the function; 0: there is none.
uintptr_t stub_of_jump(uintptr_t function);
// Whether there is one.
inline bool has_jump(uintptr_t function) { return stub_of_jump(function) != 0; }
// Whether it leads to the stub of functions that report their exits.
inline bool reports_exit(uintptr_t function) {
  if constexpr (machine::kHasReportedExits) {
    return stub_of_jump(function) == reinterpret_cast<uintptr_t>(arctrace_reported_entry);
  } else {
    return false;
  }
}

// To be called after writing code: what is there is executed from now on.
void finish_code(uintptr_t address, size_t size);

}  // namespace arctrace::shim
