#include "reader/symbols/function_table.hpp"

#include <elf.h>

#include <algorithm>
#include <iterator>

namespace arctrace::reader {
namespace {

uint8_t binding_rank(uint8_t binding) {
  switch (binding) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
      return 0;
    case STB_LOCAL:
      return 1;
    default:
      return 2;
  }
}

// Bytes up to which names of equal rank and length are compared: enough for a stable
// choice, and few enough that a hostile table of long equal names costs little.
constexpr size_t kComparedBytesMax = 256;

std::vector<LoadSegment> sorted_executable(std::span<const LoadSegment> segments) {
  std::vector<LoadSegment> executable;
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(executable),
               [](const LoadSegment& segment) { return segment.executable; });
  std::sort(executable.begin(), executable.end(),
            [](const LoadSegment& a, const LoadSegment& b) { return a.start < b.start; });
  return executable;
}

// Returns the end of the segment that includes `address`; 0 if none does.
uint64_t segment_end(std::span<const LoadSegment> sorted, uint64_t address) {
  const auto next = std::upper_bound(
      sorted.begin(), sorted.end(), address,
      [](uint64_t value, const LoadSegment& segment) { return value < segment.start; });
  if (next == sorted.begin() || std::prev(next)->end <= address) return 0;
  return std::prev(next)->end;
}

// Returns where the strings of a table end. Names may share tails, so measuring each name
// by itself could take a time quadratic in the table's size.
std::vector<uint32_t> string_ends(std::string_view names) {
  std::vector<uint32_t> ends;
  for (size_t end = names.find('\0'); end != std::string_view::npos;
       end = names.find('\0', end + 1)) {
    ends.push_back(static_cast<uint32_t>(end));
  }
  return ends;
}

// Whether the name has an "@" with a rest that is no symbol's version, such as Crystal's
// "*Array(Int32)@Indexable(T)#each". GNU ld takes such a rest for a version, so that
// .dynsym has the name only up to the "@".
bool has_at_sign(std::string_view name) {
  const std::string_view head = name.substr(0, kComparedBytesMax);
  const size_t at = head.find('@');
  return at != std::string_view::npos &&
         head.find_first_of("#:<(", at) != std::string_view::npos;
}

size_t leading_underscores(std::string_view name) {
  const std::string_view head = name.substr(0, kComparedBytesMax);
  return std::min(head.find_first_not_of('_'), head.size());
}

}  // namespace

FunctionTable::FunctionTable(std::span<const LoadSegment> segments,
                             std::span<const ElfSymbolTable> tables) {
  const std::vector<LoadSegment> executable = sorted_executable(segments);
  for (const ElfSymbolTable& table : tables) add_candidates(executable, table);
  // Candidates are sorted by start, sized ones first. Of equal starts the best name comes
  // last, so that it ends up on top of the stack.
  std::sort(candidates_.begin(), candidates_.end(),
            [this](const Candidate& a, const Candidate& b) {
              if (a.sized != b.sized) return a.sized;
              if (a.start != b.start) return a.start < b.start;
              return is_better_name(b, a);
            });
  add_sized_ranges();
  add_unsized_ranges();
}

void FunctionTable::add_candidates(std::span<const LoadSegment> executable,
                                   const ElfSymbolTable& table) {
  const std::vector<uint32_t> ends = string_ends(table.names);
  const size_t base = names_.size();
  names_ += table.names;
  for (const ElfSymbol& symbol : table.symbols) {
    const uint64_t limit = segment_end(executable, symbol.address);
    const auto name_end = std::lower_bound(ends.begin(), ends.end(), symbol.name);
    if (limit == 0 || name_end == ends.end() || *name_end == symbol.name) continue;
    const bool sized = symbol.size != 0;
    uint64_t end = 0;
    if (sized) {
      end = symbol.address + std::min(symbol.size, limit - symbol.address);
    } else if (symbol.section_end != 0) {
      end = std::min(limit, symbol.section_end);
    } else {
      continue;  // its end is not known
    }
    candidates_.push_back(
        {symbol.address, end, base + symbol.name, *name_end - symbol.name, sized,
         binding_rank(symbol.binding),
         has_at_sign(std::string_view(table.names)
                         .substr(symbol.name, *name_end - symbol.name))});
  }
}

std::optional<FunctionSymbol> FunctionTable::find_named(std::string_view name) const {
  const auto found = std::find_if(
      candidates_.begin(), candidates_.end(),
      [&](const Candidate& candidate) { return name_of(candidate) == name; });
  if (found == candidates_.end()) return std::nullopt;
  return FunctionSymbol{name_of(*found), found->start,
                        found->sized ? found->end - found->start : 0};
}

std::string_view FunctionTable::name_of(const Candidate& candidate) const {
  return std::string_view(names_).substr(candidate.name, candidate.name_size);
}

bool FunctionTable::is_better_name(const Candidate& a, const Candidate& b) const {
  if (a.binding_rank != b.binding_rank) return a.binding_rank < b.binding_rank;
  if (a.has_at_sign != b.has_at_sign) return a.has_at_sign;
  const std::string_view a_name = name_of(a);
  const std::string_view b_name = name_of(b);
  const size_t a_underscores = leading_underscores(a_name);
  const size_t b_underscores = leading_underscores(b_name);
  if (a_underscores != b_underscores) return a_underscores < b_underscores;
  if (a_name.size() != b_name.size()) return a_name.size() < b_name.size();
  const int order =
      a_name.substr(0, kComparedBytesMax).compare(b_name.substr(0, kComparedBytesMax));
  return order != 0 ? order < 0 : a.name < b.name;
}

// Adds the ranges of sized symbols in one sweep over the addresses. The stack has the
// symbols that have begun. Its top began last, so addresses belong to it until it ends or
// another one begins.
void FunctionTable::add_sized_ranges() {
  std::vector<size_t> begun;
  uint64_t position = 0;
  const auto advance_to = [&](uint64_t address) {
    while (!begun.empty() && position < address) {
      const size_t top = begun.back();
      const uint64_t end = std::min(candidates_[top].end, address);
      if (end > position) {
        ranges_.push_back({position, end, top});
        position = end;
      }
      if (candidates_[top].end <= position) begun.pop_back();
    }
    position = address;
  };
  for (size_t i = 0; i < candidates_.size() && candidates_[i].sized; ++i) {
    advance_to(candidates_[i].start);
    begun.push_back(i);
  }
  advance_to(UINT64_MAX);
}

void FunctionTable::add_unsized_ranges() {
  const size_t sized_count = ranges_.size();
  const auto first_unsized = static_cast<size_t>(
      std::partition_point(candidates_.begin(), candidates_.end(),
                           [](const Candidate& candidate) { return candidate.sized; }) -
      candidates_.begin());
  for (size_t i = first_unsized; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    uint64_t end = candidate.end;
    if (i + 1 < candidates_.size()) {
      // A later alias at the same address has the better name.
      end = std::min(end, candidates_[i + 1].start);
    }
    const auto next = std::upper_bound(
        ranges_.begin(), ranges_.begin() + static_cast<ptrdiff_t>(sized_count),
        candidate.start,
        [](uint64_t address, const Range& range) { return address < range.start; });
    if (next != ranges_.begin() && candidate.start < std::prev(next)->end) continue;
    if (next != ranges_.begin() + static_cast<ptrdiff_t>(sized_count)) {
      end = std::min(end, next->start);
    }
    if (candidate.start < end) ranges_.push_back({candidate.start, end, i});
  }
  std::inplace_merge(ranges_.begin(),
                     ranges_.begin() + static_cast<ptrdiff_t>(sized_count), ranges_.end(),
                     [](const Range& a, const Range& b) { return a.start < b.start; });
}

std::optional<FunctionSymbol> FunctionTable::find(uint64_t address) const {
  const auto next = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](uint64_t value, const Range& range) { return value < range.start; });
  if (next == ranges_.begin() || std::prev(next)->end <= address) return std::nullopt;
  const Candidate& candidate = candidates_[std::prev(next)->candidate];
  return FunctionSymbol{name_of(candidate), candidate.start,
                        candidate.sized ? candidate.end - candidate.start : 0};
}

std::vector<FunctionTable::NamedRange> FunctionTable::named_ranges() const {
  std::vector<NamedRange> named;
  named.reserve(ranges_.size());
  for (const Range& range : ranges_) {
    const Candidate& candidate = candidates_[range.candidate];
    if (range.start != candidate.start) continue;
    named.push_back({range.start, range.end, name_of(candidate), candidate.sized});
  }
  return named;
}

}  // namespace arctrace::reader
