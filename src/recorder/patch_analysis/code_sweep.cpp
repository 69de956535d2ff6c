// Sweeps a module's code function by function, and marks the targets of jumps, tables and
// pointers.
#include "src/recorder/patch_analysis/code_sweep.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/patch_analysis/instruction.hpp"

namespace arctrace::recorder {
namespace {

// The limits of labels of code beside which a function's tables are tried, and of entries
// of a table: more than compilers make.
constexpr size_t kBasesMax = 8;
constexpr size_t kTableEntriesMax = 1 << 12;
// How often each byte of the module may be read for exception tables, and for jump
// tables: real ones do not share their bytes, hostile ones may all be the same.
constexpr size_t kReadsMax = 16;

constexpr size_t kNoFunction = SIZE_MAX;

// An address that a lea takes.
struct Label {
  uint64_t address;
  size_t function;
};

struct Call {
  uint64_t from, target;
};

class Sweeper {
 public:
  Sweeper(const ModuleCode& module, const UnwindTable& unwind)
      : module_(module), unwind_(unwind), sweep_{CodeMarks(module), {}} {}

  CodeSweep run() && {
    find_functions();
    for (const ModuleSegment& segment : module_.segments) {
      if (segment.executable) sweep_segment(segment.range());
    }
    for (const uint64_t pointer : module_.pointers) {
      sweep_.marks.add(pointer, kMarkPointed);
    }
    if (module_.has_fixed_addresses) mark_words();
    size_t bytes = 0;
    for (const ModuleSegment& segment : module_.segments) bytes += segment.bytes.size();
    bytes_left_ = bytes * kReadsMax;
    mark_landing_pads();
    bytes_left_ = bytes * kReadsMax;
    mark_tables();
    add_called_functions();
    return std::move(sweep_);
  }

 private:
  // Whether a function that has a name, at its whole length, covers the address.
  bool has_name(uint64_t address) const {
    const auto next = std::upper_bound(
        named_.begin(), named_.end(), address,
        [](uint64_t value, const CodeRange& range) { return value < range.start; });
    return next != named_.begin() && std::prev(next)->contains(address);
  }

  uint64_t next_name(uint64_t address) const {
    const auto next = std::upper_bound(
        named_.begin(), named_.end(), address,
        [](uint64_t value, const CodeRange& range) { return value < range.start; });
    return next == named_.end() ? UINT64_MAX : next->start;
  }

  // A function whose symbol has no size ends where its unwind entry does, or where the
  // next entry begins.
  CodeRange whole_range(const NamedFunction& function) const {
    CodeRange range = function.range;
    if (function.is_sized) return range;
    const auto entries = unwind_.entries();
    auto next = std::upper_bound(entries.begin(), entries.end(), range.start,
                                 [](uint64_t value, const UnwindTable::Entry& entry) {
                                   return value < entry.range.start;
                                 });
    if (next != entries.end()) range.end = std::min(range.end, next->range.start);
    if (next != entries.begin() && std::prev(next)->range.start == range.start) {
      range.end = std::min(range.end, std::prev(next)->range.end);
    }
    return range;
  }

  bool is_stub(uint64_t address) const {
    return std::any_of(module_.stubs.begin(), module_.stubs.end(),
                       [&](const CodeRange& stubs) { return stubs.contains(address); });
  }

  void find_functions() {
    std::vector<SweptFunction>& functions = sweep_.functions;
    for (const NamedFunction& named : module_.functions) {
      named_.push_back(whole_range(named));
      if (!is_stub(named.range.start)) functions.push_back({named_.back(), named.name});
    }
    for (const UnwindTable::Entry& entry : unwind_.entries()) {
      if (is_stub(entry.range.start) || has_name(entry.range.start)) continue;
      const uint64_t end = std::min(entry.range.end, next_name(entry.range.start));
      functions.push_back({{entry.range.start, end}, ""});
    }
    std::sort(functions.begin(), functions.end(),
              [](const SweptFunction& a, const SweptFunction& b) {
                return a.range.start < b.range.start;
              });
  }

  // Sweeps the functions of a segment, and the bytes between them, which may be code
  // without a name.
  void sweep_segment(CodeRange segment) {
    uint64_t done = segment.start;
    const auto& functions = sweep_.functions;
    auto next = std::lower_bound(functions.begin(), functions.end(), segment.start,
                                 [](const SweptFunction& function, uint64_t address) {
                                   return function.range.start < address;
                                 });
    for (; next != functions.end() && segment.contains(next->range.start); ++next) {
      sweep_range({done, next->range.start}, kNoFunction);
      done = std::min(next->range.end, segment.end);
      sweep_range({next->range.start, done},
                  static_cast<size_t>(next - functions.begin()));
    }
    sweep_range({done, segment.end}, kNoFunction);
  }

  void sweep_range(CodeRange range, size_t index) {
    if (range.start >= range.end) return;
    SweptFunction* function = index == kNoFunction ? nullptr : &sweep_.functions[index];
    if (function != nullptr) find_rows(*function);
    loads_table_ = jumps_by_register_ = false;
    const std::span<const std::byte> bytes = module_.bytes_at(range.start);
    const uint64_t size = std::min<uint64_t>(bytes.size(), range.end - range.start);
    Instruction instruction;
    for (uint64_t offset = 0; offset < size;) {
      const uint64_t address = range.start + offset;
      if (!decode_untrusted(bytes.subspan(offset, size - offset), address, instruction)) {
        if (function != nullptr) function->is_not_code = true;
        ++offset;
        continue;
      }
      note(instruction, address, function, index);
      offset += instruction.length;
    }
    if (loads_table_ && jumps_by_register_) table_users_.push_back(index);
  }

  // Functions may share an entry; the rows of an entry are in order of address.
  void find_rows(SweptFunction& function) {
    const UnwindTable::Entry* entry = unwind_.find(function.range.start);
    if (entry != entry_) {
      entry_ = entry;
      row_ = 0;
      rows_.clear();
      if (entry != nullptr) unwind_.rows_untrusted(*entry, rows_);
    }
    if (const FrameRow* row = row_at(function.range.start)) function.entry_row = *row;
  }

  // The row at the address; nullptr: none. REQUIRES: addresses come in ascending order.
  const FrameRow* row_at(uint64_t address) {
    while (row_ + 1 < rows_.size() && rows_[row_ + 1].address <= address) ++row_;
    return rows_.empty() || rows_[row_].address > address ? nullptr : &rows_[row_];
  }

  void note(const Instruction& instruction, uint64_t address, SweptFunction* function,
            size_t index) {
    using Flow = Instruction::Flow;
    CodeMarks& marks = sweep_.marks;
    if (instruction.is_rip_relative) {
      marks.add(instruction.target, kMarkPointed);
      if (instruction.is_lea) {
        labels_.push_back({instruction.target, index});
      }
    } else if (instruction.has_target) {
      if (instruction.flow == Flow::kCall) note_call(instruction, address, function);
      const bool is_own =
          function != nullptr && function->range.contains(instruction.target);
      marks.add(instruction.target, instruction.flow == Flow::kCall ? kMarkCalled
                                    : is_own                        ? kMarkOwnJump
                                                                    : kMarkOtherJump);
    }
    if (module_.has_fixed_addresses) {
      marks.add(instruction.immediate, kMarkPointed);
      marks.add(instruction.plain_displacement, kMarkPointed);
    }
    loads_table_ |= instruction.loads_table_offset;
    jumps_by_register_ |= instruction.jumps_by_register;
    if (function == nullptr) return;
    // A jump out of the function is a tail call, whose callee takes its time while the
    // function's own caller waits.
    const bool only_goes_on =
        instruction.target > address && function->range.contains(instruction.target);
    const bool is_jump = instruction.has_target && !instruction.is_rip_relative &&
                         instruction.flow != Flow::kCall;
    function->may_last |= (is_jump && !only_goes_on) ||
                          instruction.flow == Flow::kIndirectJump ||
                          instruction.flow == Flow::kCall || instruction.may_last;
    if (!function->uses_return_address) {
      function->uses_return_address = uses_return_address(instruction, address);
    }
  }

  void note_call(const Instruction& call, uint64_t address, const SweptFunction* from) {
    if (!sweep_.marks.is_code(call.target) || is_in_function(call.target) ||
        is_stub(call.target)) {
      return;
    }
    if (from != nullptr) {
      called_.push_back(call.target);
    } else {
      calls_between_.push_back({address, call.target});
    }
  }

  // Adds the functions that neither a name nor the unwind table has, as those of objects
  // that were built without unwind tables in a program that was stripped: those that
  // functions call, and that these call in turn. Other bytes between functions may be no
  // code, whatever they look like.
  void add_called_functions() {
    std::sort(calls_between_.begin(), calls_between_.end(),
              [](const Call& a, const Call& b) { return a.from < b.from; });
    std::vector<uint64_t> starts;
    std::vector<uint64_t> open = std::move(called_);
    std::vector<bool> is_used(calls_between_.size());
    while (!open.empty()) {
      const uint64_t start = open.back();
      open.pop_back();
      starts.push_back(start);
      const uint64_t end = gap_end(start);
      auto call = std::lower_bound(
          calls_between_.begin(), calls_between_.end(), start,
          [](const Call& one, uint64_t value) { return one.from < value; });
      for (; call != calls_between_.end() && call->from < end; ++call) {
        const auto i = static_cast<size_t>(call - calls_between_.begin());
        if (is_used[i]) break;  // and so were those after it
        is_used[i] = true;
        open.push_back(call->target);
      }
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<SweptFunction> added;
    for (size_t i = 0; i < starts.size(); ++i) {
      uint64_t end = gap_end(starts[i]);
      if (i + 1 < starts.size()) end = std::min(end, starts[i + 1]);
      added.push_back({{starts[i], end}, ""});
    }
    const auto middle = static_cast<std::ptrdiff_t>(sweep_.functions.size());
    std::move(added.begin(), added.end(), std::back_inserter(sweep_.functions));
    std::inplace_merge(sweep_.functions.begin(), sweep_.functions.begin() + middle,
                       sweep_.functions.end(),
                       [](const SweptFunction& a, const SweptFunction& b) {
                         return a.range.start < b.range.start;
                       });
  }

  // Where the bytes between functions end that have this address.
  uint64_t gap_end(uint64_t address) const {
    const auto next =
        std::upper_bound(sweep_.functions.begin(), sweep_.functions.end(), address,
                         [](uint64_t value, const SweptFunction& function) {
                           return value < function.range.start;
                         });
    uint64_t end = next == sweep_.functions.end() ? UINT64_MAX : next->range.start;
    for (const ModuleSegment& segment : module_.segments) {
      if (segment.range().contains(address)) end = std::min(end, segment.range().end);
    }
    return end;
  }

  // Whether an operand is the slot in which the return address stands.
  bool uses_return_address(const Instruction& instruction, uint64_t address) {
    if (rows_.empty() ||
        (instruction.base == Instruction::Base::kOther && !instruction.pops)) {
      return false;
    }
    const FrameRow* found = row_at(address);
    if (found == nullptr || found->is_expression) return false;
    const FrameRow& row = *found;
    const bool by_stack_pointer = row.base_register == kDwarfStackPointer;
    const int64_t slot = row.offset - 8;
    if (instruction.pops && by_stack_pointer && slot == 0) return true;
    if (instruction.base == Instruction::Base::kOther) return false;
    const bool same_base = instruction.base == Instruction::Base::kStackPointer
                               ? by_stack_pointer
                               : row.base_register == kDwarfFramePointer;
    return same_base && instruction.displacement == slot;
  }

  // Marks addresses in the data of a module that is not moved.
  void mark_words() {
    for (const ModuleSegment& segment : module_.segments) {
      if (segment.executable) continue;
      const std::span<const std::byte> bytes(segment.bytes);
      for (size_t offset = -segment.address % 8; offset + 8 <= bytes.size();
           offset += 8) {
        sweep_.marks.add(load_part_untrusted<uint64_t>(bytes.subspan(offset)),
                         kMarkPointed);
      }
    }
  }

  void mark_landing_pads() {
    for (const UnwindTable::Entry& entry : unwind_.entries()) {
      if (entry.exception_table == 0) continue;
      for (const uint64_t pad : landing_pads_untrusted(module_, entry.exception_table,
                                                       entry.range.start, bytes_left_)) {
        sweep_.marks.add(pad, kMarkLandingPad);
      }
    }
  }

  // Marks the entries of the table of 32-bit offsets at `address`, which count from
  // `base`, up to the first that does not lead into code. Returns whether there is any.
  bool mark_table(uint64_t address, uint64_t end, uint64_t base) {
    const std::span<const std::byte> bytes = module_.bytes_at(address);
    const uint64_t size = std::min<uint64_t>(bytes.size(), end - address);
    size_t count = 0;
    for (uint64_t at = 0; at + 4 <= size && count < kTableEntriesMax; at += 4) {
      if (bytes_left_ < 4) return false;
      bytes_left_ -= 4;
      const int64_t offset = load_part_untrusted<int32_t>(bytes.subspan(at));
      const uint64_t target = base + static_cast<uint64_t>(offset);
      if (!sweep_.marks.is_code(target)) break;
      sweep_.marks.add(target, kMarkTable);
      ++count;
    }
    return count != 0;
  }

  bool is_in_function(uint64_t address) const {
    const auto next =
        std::upper_bound(sweep_.functions.begin(), sweep_.functions.end(), address,
                         [](uint64_t value, const SweptFunction& function) {
                           return value < function.range.start;
                         });
    return next != sweep_.functions.begin() && std::prev(next)->range.contains(address);
  }

  // An address that the code takes may be a table's, if it is in no function: tables may
  // be in the segment of the code. A false table ends at its first word, and each ends
  // where the next begins.
  void mark_tables() {
    std::vector<uint64_t> starts;
    for (const Label& label : labels_) {
      if (!is_in_function(label.address)) starts.push_back(label.address);
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<bool> is_table(starts.size());
    for (size_t i = 0; i < starts.size(); ++i) {
      const uint64_t end = i + 1 < starts.size() ? starts[i + 1] : UINT64_MAX;
      is_table[i] = mark_table(starts[i], end, starts[i]);
    }
    std::sort(labels_.begin(), labels_.end(), [](const Label& a, const Label& b) {
      return std::pair(a.function, a.address) < std::pair(b.function, b.address);
    });
    for (const size_t user : table_users_) mark_tables_of(user, starts, is_table);
  }

  // REQUIRES: labels_ is sorted.
  void mark_tables_of(size_t user, const std::vector<uint64_t>& starts,
                      const std::vector<bool>& is_table) {
    if (user == kNoFunction) return;
    bool found = false;
    std::vector<uint64_t> bases;
    const auto of_user = [&](const auto& visit) {
      auto label = std::lower_bound(
          labels_.begin(), labels_.end(), user,
          [](const Label& one, size_t value) { return one.function < value; });
      for (; label != labels_.end() && label->function == user; ++label) {
        visit(label->address);
      }
    };
    of_user([&](uint64_t address) {
      if (sweep_.functions[user].range.contains(address) && bases.size() < kBasesMax) {
        bases.push_back(address);
      }
    });
    uint64_t last = 0;
    of_user([&](uint64_t address) {
      if (std::exchange(last, address) == address) return;
      const auto start = std::lower_bound(starts.begin(), starts.end(), address);
      if (start == starts.end() || *start != address) return;
      found |= is_table[static_cast<size_t>(start - starts.begin())];
      const uint64_t end =
          std::next(start) == starts.end() ? UINT64_MAX : *std::next(start);
      for (const uint64_t base : bases) found |= mark_table(address, end, base);
    });
    sweep_.functions[user].has_unknown_targets = !found;
  }

  const ModuleCode& module_;
  const UnwindTable& unwind_;
  CodeSweep sweep_;
  std::vector<CodeRange> named_;
  std::vector<Label> labels_;
  std::vector<size_t> table_users_;
  std::vector<uint64_t> called_;               // by functions, and in none
  std::vector<Call> calls_between_;            // from between functions to between them
  const UnwindTable::Entry* entry_ = nullptr;  // of the function that is swept
  std::vector<FrameRow> rows_;                 // of that entry
  size_t row_ = 0;
  size_t bytes_left_ = 0;  // of kReadsMax times the module's
  bool loads_table_ = false;
  bool jumps_by_register_ = false;
};

}  // namespace

CodeMarks::CodeMarks(const ModuleCode& module) {
  for (const ModuleSegment& segment : module.segments) {
    if (!segment.executable) continue;
    parts_.push_back({segment.address, std::vector<uint8_t>(segment.bytes.size())});
  }
}

CodeSweep sweep_code_untrusted(const ModuleCode& module, const UnwindTable& unwind) {
  return Sweeper(module, unwind).run();
}

}  // namespace arctrace::recorder
