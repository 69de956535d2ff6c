// The rules by which the entry of a function may be patched, each on functions that break
// no other rule.
#include <doctest/doctest.h>

#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "tests/unit/recorder/patch_analysis/built_module.hpp"

namespace arctrace::testing {
namespace {

using Verdict = recorder::PatchVerdict;

const Code kArgumentFirst = {0x89, 0xF7};               // mov %esi,%edi
const Code kLongMove = {0x48, 0xC7, 0xC0, 1, 0, 0, 0};  // mov $1,%rax

TEST_CASE("patch: whole instructions are moved until they cover the jump") {
  const recorder::FunctionPlan plan = plan_of(kArgumentFirst + kPrologue + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 0);
  CHECK(plan.kept_as == recorder::KeptAs::kNothing);
  CHECK(plan.displaced == 6);
  REQUIRE(plan.instruction_count == 3);
  CHECK(plan.instructions[1] ==
        recorder::DisplacedInstruction{2, 1, recorder::MovedAs::kCopy, 0, 0});
  CHECK(plan.instructions[2].length == 3);
  CHECK(plan.original[0] == std::byte{0x89});
  CHECK(plan.original[5] == std::byte{0xE5});
  CHECK(plan.original[6] == std::byte{0});
  CHECK_FALSE(plan.entry_only);
}

TEST_CASE("patch: functions without a name and unwind table are those that are called") {
  constexpr uint64_t kCallBytes = 5;
  BuiltModule module;
  // The first calls the third, which calls the fourth; the second and fifth are reached
  // by nothing, and what they call is not known to be code.
  const uint64_t first = module.next();
  const uint64_t second = first + kCallBytes + kRet.size();
  const uint64_t third = second + kCallBytes + kRet.size();
  const uint64_t fourth = third + kCallBytes + kRet.size();
  const uint64_t fifth = fourth + 16;
  const auto call = [](uint64_t from, uint64_t to) { return relative({0xE8}, from, to); };
  module.add("", call(first, third) + kRet);
  module.add_without_frame("", call(second, fourth + 8) + kRet);
  module.add_without_frame("", call(third, fourth) + kRet);
  module.add_without_frame("", Code(15, 0x90) + kRet);
  module.add("", call(fifth, first) + call(fifth + kCallBytes, fourth) + kRet);
  const recorder::PatchPlan plan = module.plan();
  std::vector<uint64_t> starts;
  for (const recorder::FunctionPlan& function : plan.functions) {
    starts.push_back(function.start);
    CHECK(function.name.empty());
    if (function.start == third || function.start == fourth) {
      CHECK(function.verdict == Verdict::kNoFrameInfo);
    }
  }
  CHECK(starts == std::vector<uint64_t>{first, third, fourth, fifth});
  CHECK(plan_at(plan, third).size == fourth - third);
  CHECK(plan_at(plan, fourth).size == fifth - fourth);
}

TEST_CASE("patch: the first instruction stays if it can be taken back") {
  const recorder::FunctionPlan plan = plan_of(kPrologue + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 1);
  CHECK(plan.kept_as == recorder::KeptAs::kUndone);
  CHECK(plan.undone[0] == std::byte{0x55});
  CHECK(plan.displaced == 7);
  CHECK(plan.instruction_count == 2);
  CHECK(plan.original[0] == std::byte{0x48});
  for (const Code& first :
       {Code{0x41, 0x57}, Code{0x48, 0x83, 0xEC, 0x18},
        Code{0x48, 0x81, 0xEC, 0, 0x10, 0, 0}}) {  // push %r15; sub $24 and $4096,%rsp
    const recorder::FunctionPlan other = plan_of(first + Code(8, 0x90) + kRet);
    CHECK(other.kept_as == recorder::KeptAs::kUndone);
    CHECK(other.kept == first.size());
  }
  // sub $-8,%rsp; push %rsp
  CHECK(plan_of(Code{0x48, 0x83, 0xEC, 0xF8} + Code(8, 0x90) + kRet).kept == 0);
  CHECK(plan_of(Code{0x54} + Code(8, 0x90) + kRet).kept == 0);
}

TEST_CASE("patch: the first instruction stays if it is no matter to who records") {
  const auto kept = [](const Code& first) {
    const recorder::FunctionPlan plan = plan_of(first + Code(8, 0x90) + kRet);
    CHECK(plan.verdict == Verdict::kPatchable);
    CHECK(plan.kept_as ==
          (plan.kept == 0 ? recorder::KeptAs::kNothing : recorder::KeptAs::kStays));
    return plan.kept;
  };
  CHECK(kept({0x90}) == 1);
  CHECK(kept({0x85, 0xFF}) == 2);                    // test %edi,%edi
  CHECK(kept({0x48, 0x89, 0xF8}) == 3);              // mov %rdi,%rax
  CHECK(kept({0x8B, 0x05, 0, 1, 0, 0}) == 6);        // mov 256(%rip),%eax
  CHECK(kept({0x4C, 0x8D, 0x54, 0x24, 0x08}) == 5);  // lea 8(%rsp),%r10
  CHECK(kept({0x89, 0xF7}) == 0);                    // mov %esi,%edi
  CHECK(kept({0x89, 0x07}) == 0);                    // mov %eax,(%rdi)
  CHECK(kept({0x89, 0x7C, 0x24, 0xEC}) == 0);        // mov %edi,-20(%rsp)
  CHECK(kept({0x48, 0x83, 0xE4, 0xF0}) == 0);        // and $-16,%rsp
  CHECK(kept({0x66, 0x0F, 0xEF, 0xC0}) == 0);        // pxor %xmm0,%xmm0
  CHECK(kept({0xFD}) == 0);                          // std
  CHECK(kept({0xAA}) == 0);                          // stos %al,(%rdi)
}

TEST_CASE(
    "patch: the first instruction stays where there is room for the jump after it") {
  // push %rbx; mov %rdi,%rbx; nop, and then what may not be moved: a call whose return
  // address is not behind the bytes, or the target of a jump.
  const Code begin = {0x53, 0x48, 0x89, 0xFB, 0x90};
  recorder::FunctionPlan plan = plan_of(begin + Code{0xFF, 0xD0} + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 0);
  CHECK(plan.displaced == 5);
  plan = plan_of(begin + Code(8, 0x90) + Code{0xEB, 0xF6} + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 0);
  plan = plan_of(begin + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.displaced == 5);
}

TEST_CASE("patch: endbr64 stays in its place") {
  const recorder::FunctionPlan plan = plan_of(kEndbr + kPrologue + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 4);
  CHECK(plan.displaced == 8);
  CHECK(plan.original[0] == std::byte{0x55});
  CHECK(plan_of(kEndbr + Code{0x31, 0xC0} + kRet).verdict == Verdict::kTooShort);
  CHECK(plan_of(kEndbr).verdict == Verdict::kTooShort);
}

TEST_CASE("patch: what is relative is written anew") {
  // mov data(%rip),%rax
  recorder::FunctionPlan plan =
      plan_of(relative({0x48, 0x8B, 0x05}, kText, kData) + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.instructions[0] ==
        recorder::DisplacedInstruction{0, 7, recorder::MovedAs::kRipRelative, 3, kData});
  // movl $1,data(%rip): the displacement is not at the end
  plan = plan_of(Code{0xC7, 0x05} + little(0x100, 4) + little(1, 4) + kRet);
  CHECK(plan.instructions[0] ==
        recorder::DisplacedInstruction{0, 10, recorder::MovedAs::kRipRelative, 2,
                                       kText + 10 + 0x100});
  // mov %esi,%edi; je to the end; nop
  plan = plan_of(kArgumentFirst + Code{0x74, 0x05} + Code(7, 0x90) + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.instructions[1] ==
        recorder::DisplacedInstruction{2, 2, recorder::MovedAs::kBranch, 0, kText + 9});
  // jmp to an address outside, with no other byte
  plan = plan_of(relative({0xE9}, kText, 0x5000));
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.instructions[0] ==
        recorder::DisplacedInstruction{0, 5, recorder::MovedAs::kJump, 0, 0x5000});
  // EVEX, whose short displacements are scaled: vmovdqu64 data(%rip),%zmm0
  plan = plan_of(relative({0x62, 0xF1, 0xFE, 0x48, 0x6F, 0x05}, kText, kData) + kRet);
  CHECK(plan.instructions[0] ==
        recorder::DisplacedInstruction{0, 10, recorder::MovedAs::kRipRelative, 6, kData});
}

TEST_CASE("patch: a function that ends with the covered bytes") {
  CHECK(plan_of(Code{0xB8, 1, 0, 0} + Code{0} + kRet).verdict == Verdict::kPatchable);
  CHECK(plan_of(Code{0x48, 0x8B, 0x47, 0x08} + kRet).verdict == Verdict::kPatchable);
  CHECK(plan_of(Code{0x8B, 0x47, 0x08} + kRet).verdict == Verdict::kTooShort);
  CHECK(plan_of(kRet + Code(8, 0x90)).verdict == Verdict::kEndsEarly);
  CHECK(plan_of(Code{0xEB, 0x02} + Code(8, 0x90) + kRet).verdict == Verdict::kEndsEarly);
  CHECK(plan_of(Code{0xFF, 0xE0} + Code(8, 0x90)).verdict == Verdict::kEndsEarly);
  CHECK(plan_of(Code{0x31, 0xC0, 0x0F, 0x0B} + Code(8, 0x90)).verdict ==
        Verdict::kEndsEarly);  // ud2
  CHECK(plan_of(Code{0x90, 0xCC} + Code(8, 0x90)).verdict == Verdict::kEndsEarly);
}

TEST_CASE("patch: a call must return to the code behind the covered bytes") {
  // push %rax; call: the push stays, and the call is all that is covered
  recorder::FunctionPlan plan =
      plan_of(Code{0x50} + relative({0xE8}, kText + 1, 0x5000) + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 1);
  CHECK(plan.displaced == 5);
  CHECK(plan.instructions[0] ==
        recorder::DisplacedInstruction{0, 5, recorder::MovedAs::kCall, 0, 0x5000});
  // mov %esi,%edi, which passes an argument; call
  plan = plan_of(kArgumentFirst + relative({0xE8}, kText + 2, 0x5000) + kRet);
  CHECK(plan.verdict == Verdict::kPatchable);
  CHECK(plan.kept == 0);
  CHECK(plan.displaced == 7);
  CHECK(plan.instructions[1] ==
        recorder::DisplacedInstruction{2, 5, recorder::MovedAs::kCall, 0, 0x5000});
  // Indirect ones are shorter, or read what the push may have changed.
  CHECK(plan_of(Code{0xFF, 0xD0} + Code(8, 0x90) + kRet).verdict == Verdict::kCall);
  CHECK(plan_of(relative({0xFF, 0x15}, kText, kData) + kRet).verdict == Verdict::kCall);
  CHECK(plan_of(kPrologue + relative({0xE8}, kText + 8, 0x5000) + kRet).verdict ==
        Verdict::kPatchable);
}

TEST_CASE("patch: instructions without a form of 32 bits") {
  CHECK(plan_of(Code{0xE3, 0x08} + Code(16, 0x90) + kRet).verdict ==
        Verdict::kNotMovable);  // jrcxz
  CHECK(plan_of(Code{0xE2, 0x08} + Code(16, 0x90) + kRet).verdict ==
        Verdict::kNotMovable);  // loop
  CHECK(plan_of(Code{0xC7, 0xF8, 8, 0, 0, 0} + Code(16, 0x90) + kRet).verdict ==
        Verdict::kNotMovable);  // xbegin
  CHECK(
      plan_of(Code{0x90, 0x67, 0x8B, 0x05, 8, 0, 0, 0} + Code(16, 0x90) + kRet).verdict ==
      Verdict::kNotMovable);  // mov 8(%eip),%eax
}

TEST_CASE("patch: bytes that are no instruction, at the entry or after it") {
  CHECK(plan_of(Code{0x06} + Code(8, 0x90)).verdict == Verdict::kNotCode);
  CHECK(plan_of(kPrologue + kRet + Code{0x06}).verdict == Verdict::kNotCode);
  // The last instruction lacks its end.
  CHECK(plan_of(kPrologue + Code{0xE8, 0, 0}).verdict == Verdict::kNotCode);
}

TEST_CASE("patch: the return address must be at the top of the stack") {
  const Code code = kPrologue + kRet;
  CHECK(plan_of(code).verdict == Verdict::kPatchable);
  CHECK(plan_of(code, {0x07, 16}).verdict == Verdict::kOtherFrame);  // undefined
  CHECK(plan_of(code, {0x0E, 16}).verdict == Verdict::kOtherFrame);
  CHECK(plan_of(code, {0x0C, 6, 8}).verdict == Verdict::kOtherFrame);
  CHECK(plan_of(code, {0x0F, 2, 0x77, 8}).verdict == Verdict::kOtherFrame);
  CHECK(plan_of(code, {0x90, 2}).verdict == Verdict::kOtherFrame);
  CHECK(plan_of(code, {0x3F}).verdict == Verdict::kNoFrameInfo);  // unknown
  CHECK(plan_of(code, {0x0A, 0x41, 0x0E, 16, 0x0B}).verdict == Verdict::kPatchable);
  BuiltModule module;
  const uint64_t start = module.add_without_frame("f", code);
  CHECK(plan_at(module.plan(), start).verdict == Verdict::kNoFrameInfo);
}

TEST_CASE("patch: who uses its return address may only be seen to begin") {
  const Code reads_top = Code{0x48, 0x8B, 0x04, 0x24, 0x90} + kRet;  // mov (%rsp),%rax
  CHECK(plan_of(reads_top).entry_only);
  CHECK(plan_of(reads_top).verdict == Verdict::kPatchable);
  // push %rbx; mov 8(%rsp),%rax; nop; add $8,%rsp: by the row after the push
  const Code pushed = {0x53, 0x48, 0x8B, 0x44, 0x24, 0x08,
                       0x90, 0x48, 0x83, 0xC4, 0x08, 0xC3};
  CHECK(plan_of(pushed, {0x41, 0x0E, 16}).entry_only);
  CHECK_FALSE(plan_of(pushed).entry_only);
  // 8(%rbp) with the frame pointer
  const Code framed = Code{0x55, 0x48, 0x89, 0xE5, 0x48, 0x8B, 0x45, 0x08, 0x5D} + kRet;
  CHECK(plan_of(framed, {0x41, 0x0E, 16, 0x43, 0x0D, 6}).entry_only);
  CHECK_FALSE(plan_of(framed, {0x41, 0x0E, 16}).entry_only);
  // An argument on the stack, and a word with an index, are not the return address.
  CHECK_FALSE(plan_of(Code{0x48, 0x8B, 0x44, 0x24, 0x08} + kRet).entry_only);
  CHECK_FALSE(plan_of(Code{0x48, 0x8B, 0x04, 0xC4, 0x90} + kRet).entry_only);
  // mov (%r12),%rax has the same bits as one with the stack pointer.
  CHECK_FALSE(plan_of(Code{0x49, 0x8B, 0x04, 0x24, 0x90} + kRet).entry_only);
  CHECK(plan_of(Code{0x59} + Code(8, 0x90)).entry_only);  // pop %rcx
}

TEST_CASE("patch: jumps to the first instruction, or between the covered bytes") {
  // A jump comes from the function's own end.
  for (const auto& [target, verdict] : {std::pair{0, Verdict::kLoopsToEntry},
                                        {1, Verdict::kEnteredInside},
                                        {7, Verdict::kEnteredInside},
                                        {8, Verdict::kPatchable}}) {
    const auto address = kText + static_cast<uint64_t>(target);
    CAPTURE(address);
    CHECK(plan_of(kPrologue + relative({0xE9}, kText + 8, address)).verdict == verdict);
    CHECK(
        plan_of(kPrologue + relative({0x0F, 0x85}, kText + 8, address) + kRet).verdict ==
        verdict);
  }
  // A jump comes from another function: a tail call, and a jump past the entry.
  for (const auto& [target, verdict] : {std::pair{0, Verdict::kPatchable},
                                        {1, Verdict::kEnteredInside},
                                        {8, Verdict::kPatchable}}) {
    BuiltModule module;
    const uint64_t start = module.add("f", kPrologue + kRet);
    module.add("g", kPrologue + relative({0xE9}, module.next() + 8,
                                         start + static_cast<uint64_t>(target)));
    CHECK(plan_at(module.plan(), start).verdict == verdict);
  }
  // A jump comes from code that has no name.
  BuiltModule module;
  const uint64_t start = module.add("f", kPrologue + kRet);
  module.add_without_frame("", relative({0xE9}, module.next(), start + 4));
  CHECK(plan_at(module.plan(), start).verdict == Verdict::kEnteredInside);
}

TEST_CASE("patch: time can be spent where something is called or repeated") {
  const auto may_last = [](const Code& code) {
    const recorder::FunctionPlan plan = plan_of(kPrologue + code + kRet);
    CHECK(plan.verdict == Verdict::kPatchable);
    return plan.may_last;
  };
  constexpr uint64_t kHere = kText + 8;
  CHECK(may_last(relative({0xE8}, kHere, kText + 0x100)));  // call
  CHECK(may_last({0xFF, 0xD0}));                            // call *%rax
  CHECK(may_last(relative({0xE9}, kHere, kText - 0x100)));  // a tail call
  CHECK(may_last(relative({0xE9}, kHere, kText + 0x100)));
  CHECK(may_last(relative({0x0F, 0x84}, kHere, kText + 0x100)));  // a conditional one
  CHECK(may_last({0xFF, 0xE0}));                                  // jmp *%rax
  CHECK(may_last(relative({0xFF, 0x25}, kHere, kData)));          // jmp *slot(%rip)
  CHECK(may_last({0x90, 0x75, 0xFD}));                            // jne back
  CHECK(may_last({0xEB, 0xFE}));                                  // jmp to itself
  CHECK(may_last({0x0F, 0x05}));                                  // syscall
  CHECK(may_last({0xF3, 0xAA}));                                  // rep stos

  CHECK_FALSE(may_last({}));
  CHECK_FALSE(may_last({0x75, 0x01, 0x90}));                          // jne forward
  CHECK_FALSE(may_last({0xEB, 0x01, 0x90}));                          // jmp forward
  CHECK_FALSE(may_last(relative({0x48, 0x8D, 0x05}, kHere, kText)));  // lea
  CHECK_FALSE(may_last({0xAA}));                                      // stos
}

TEST_CASE("patch: a jump past endbr64 would meet the patch") {
  for (const uint64_t target : {uint64_t{0}, uint64_t{4}}) {
    const Code code = kEndbr + kPrologue;
    CHECK(plan_of(code + relative({0xE9}, kText + 12, kText + target)).verdict ==
          Verdict::kLoopsToEntry);
  }
  BuiltModule module;
  const uint64_t start = module.add("f", kEndbr + kPrologue + kRet);
  module.add("g", kPrologue + relative({0xE9}, module.next() + 8, start + 4));
  CHECK(plan_at(module.plan(), start).verdict == Verdict::kEnteredInside);
}

TEST_CASE("patch: pointers between the covered bytes") {
  for (const auto& [offset, verdict] : {std::pair{0, Verdict::kPatchable},
                                        {3, Verdict::kPointedInside},
                                        {8, Verdict::kPatchable}}) {
    const auto address = kText + static_cast<uint64_t>(offset);
    BuiltModule by_relocation;
    by_relocation.add("f", kPrologue + kRet);
    by_relocation.module().pointers.push_back(address);
    CHECK(plan_at(by_relocation.plan(), kText).verdict == verdict);
    BuiltModule by_lea;
    by_lea.add("f", kPrologue + kRet);
    by_lea.add("g", relative({0x48, 0x8D, 0x05}, by_lea.next(), address) + kRet);
    CHECK(plan_at(by_lea.plan(), kText).verdict == verdict);
    BuiltModule by_data;  // a mere number where modules are moved
    by_data.add("f", kPrologue + kRet);
    by_data.add_data(little(address, 8));
    CHECK(plan_at(by_data.plan(), kText).verdict == Verdict::kPatchable);
    by_data.module().has_fixed_addresses = true;
    CHECK(plan_at(by_data.plan(), kText).verdict == verdict);
    BuiltModule by_immediate;  // mov $address,%edi
    by_immediate.module().has_fixed_addresses = true;
    by_immediate.add("f", kPrologue + kRet);
    by_immediate.add("g", Code{0xBF} + little(address, 4) + kRet);
    CHECK(plan_at(by_immediate.plan(), kText).verdict == verdict);
  }
}

// lea table(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; notrack jmp *%rax
Code dispatch(uint64_t address, uint64_t table) {
  return relative({0x48, 0x8D, 0x15}, address, table) +
         Code{0x48, 0x63, 0x04, 0xBA, 0x48, 0x01, 0xD0, 0x3E, 0xFF, 0xE0};
}

TEST_CASE("patch: jump tables") {
  for (const auto& [offset, verdict] : {std::pair{12, Verdict::kPatchable},
                                        {1, Verdict::kPointedInside},
                                        {0, Verdict::kLoopsToEntry}}) {
    BuiltModule module;
    const uint64_t table = module.add_data(
        little(kText + 12 - kData, 4) +
        little(kText + static_cast<uint64_t>(offset) - kData, 4) + little(0, 4));
    module.add("f", kPrologue + dispatch(kText + 8, table) + kRet);
    CHECK(plan_at(module.plan(), kText).verdict == verdict);
  }
  // A table in the segment of the code, after the function: one entry, then no code.
  BuiltModule joined;
  const Code code = kPrologue + dispatch(kText + 8, kText + 64) + kRet;
  joined.add("f", code);
  joined.add_without_frame("", Code(64 - code.size(), 0x90));
  joined.add_without_frame("", little(uint64_t{0} - 63, 4) + little(0x70000000, 4));
  CHECK(plan_at(joined.plan(), kText).verdict == Verdict::kPointedInside);
  // The table does not exist.
  CHECK(plan_of(kPrologue + dispatch(kText + 8, 0x90000)).verdict ==
        Verdict::kUnknownTargets);
  // The table has offsets from a label of code: computed gotos.
  BuiltModule module;
  const uint64_t table = module.add_data(little(0, 4) + little(uint64_t{0} - 7, 4));
  module.add("f", kPrologue + relative({0x48, 0x8D, 0x0D}, kText + 8, kText + 8) +
                      dispatch(kText + 15, table) + kRet);
  CHECK(plan_at(module.plan(), kText).verdict == Verdict::kPointedInside);
}

TEST_CASE("patch: landing pads") {
  for (const uint8_t pad : {uint8_t{3}, uint8_t{8}}) {
    BuiltModule module;
    // The table has no base and no types; its sites are udata4: start, length, pad,
    // action.
    const uint64_t table = module.add_data(Code{0xFF, 0xFF, 0x03, 13} + little(0, 4) +
                                           little(4, 4) + little(pad, 4) + Code{0});
    module.add("f", kPrologue + kRet, {}, table);
    CHECK(plan_at(module.plan(), kText).verdict ==
          (pad == 3 ? Verdict::kPointedInside : Verdict::kPatchable));
  }
}

TEST_CASE("patch: parts of functions, and jumps through slots") {
  BuiltModule module;
  const uint64_t named = module.add("f.cold", kPrologue + kRet);
  const uint64_t numbered = module.add("f.cold.1", kPrologue + kRet);
  const uint64_t whole = module.add("main.coldStart", kPrologue + kRet);
  const uint64_t part = module.add("", kPrologue + kRet);
  const uint64_t called = module.add("", kPrologue + kRet);
  const uint64_t user = module.next();
  module.add("f", kPrologue + relative({0x0F, 0x84}, user + 8, part) +
                      relative({0xE8}, user + 14, called) +
                      relative({0xE9}, user + 19, called));
  const uint64_t stub =
      module.add("", relative({0xF2, 0xFF, 0x25}, module.next(), kData) + Code(8, 0x90));
  const recorder::PatchPlan plan = module.plan();
  CHECK(plan_at(plan, named).verdict == Verdict::kPart);
  CHECK(plan_at(plan, numbered).verdict == Verdict::kPart);
  CHECK(plan_at(plan, whole).verdict == Verdict::kPatchable);
  CHECK(plan_at(plan, part).verdict == Verdict::kPart);
  CHECK(plan_at(plan, called).verdict == Verdict::kPatchable);
  CHECK(plan_at(plan, called).name.empty());
  CHECK(plan_at(plan, stub).verdict == Verdict::kSlotStub);
  module.module().stubs.push_back({stub, stub + 16});
  CHECK(plan_at(module.plan(), stub).name == "there is no such function");
}

TEST_CASE("patch: a symbol without a size ends where something else begins") {
  BuiltModule module;
  const uint64_t first = module.add("f", kPrologue + kRet);
  const uint64_t second = module.add("", kPrologue + kRet);
  module.module().functions[0].range.end = second + 9;
  module.module().functions[0].is_sized = false;
  const recorder::PatchPlan plan = module.plan();
  CHECK(plan_at(plan, first).size == 9);
  CHECK(plan_at(plan, second).verdict == Verdict::kPatchable);
}

TEST_CASE("patch: of a damaged unwind table what comes before is used") {
  BuiltModule module;
  const uint64_t first = module.add("", kPrologue + kRet);
  const size_t whole = module.frames().size();
  const uint64_t second = module.add("g", kPrologue + kRet);
  module.frames()[whole] = 0xF0;  // longer than the table
  const recorder::PatchPlan plan = module.plan();
  CHECK(plan_at(plan, first).verdict == Verdict::kPatchable);
  CHECK(plan_at(plan, second).verdict == Verdict::kNoFrameInfo);
  REQUIRE(plan.findings.size() == 1);
  CHECK(plan.findings[0] == ".eh_frame is damaged at offset " + std::to_string(whole) +
                                ": what follows is not used");
}

}  // namespace
}  // namespace arctrace::testing
