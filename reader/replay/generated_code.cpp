#include "reader/replay/generated_code.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

bool is_earlier(const Code* a, const Code* b) { return a->since_ns < b->since_ns; }

}  // namespace

// A fork child inherits the code that its parent had at the fork; it comes before the
// child's own.
GeneratedCode::GeneratedCode(const Definitions& definitions, ProcessIndex process) {
  std::vector<std::vector<const Code*>> generations;  // the process itself is the first
  int64_t until_ns = INT64_MAX;
  for (int depth = 0; depth < Definitions::kForkDepthMax; ++depth) {
    const Process* owner = definitions.process(process);
    if (owner == nullptr) break;
    std::vector<const Code*>& own = generations.emplace_back();
    for (const Code& code : owner->code) {
      if (code.since_ns <= until_ns) own.push_back(&code);
    }
    std::stable_sort(own.begin(), own.end(), is_earlier);
    until_ns = std::min(until_ns, owner->start_ns);
    process = definitions.inherited_from(process);
  }
  for (auto own = generations.rbegin(); own != generations.rend(); ++own) {
    ordered_.insert(ordered_.end(), own->begin(), own->end());
  }
  for (auto code = ordered_.rbegin(); code != ordered_.rend(); ++code)
    put(first_, **code);
}

GeneratedCode::Found GeneratedCode::find(uint64_t address, int64_t time_ns) {
  while (done_ < ordered_.size() && ordered_[done_]->since_ns <= time_ns) {
    put(now_, *ordered_[done_++]);
  }
  Found found;
  if (done_ < ordered_.size()) found.until_ns = ordered_[done_]->since_ns;
  found.code = at(now_, address);
  if (found.code == nullptr) found.code = at(first_, address);
  return found;
}

// Replaces what `code` overlaps; the parts of those pieces on either side of it stay.
void GeneratedCode::put(Pieces& pieces, const Code& code) {
  auto next = pieces.lower_bound(code.start);
  if (next != pieces.begin()) {
    const auto before = std::prev(next);
    const Piece cut = before->second;
    if (cut.end > code.start) {
      before->second.end = code.start;
      if (cut.end > code.end) pieces.emplace(code.end, cut);
    }
  }
  next = pieces.lower_bound(code.start);
  while (next != pieces.end() && next->first < code.end) {
    const Piece cut = next->second;
    next = pieces.erase(next);
    if (cut.end > code.end) {
      pieces.emplace(code.end, cut);
      break;
    }
  }
  pieces.emplace(code.start, Piece{code.end, &code});
}

const Code* GeneratedCode::at(const Pieces& pieces, uint64_t address) {
  const auto next = pieces.upper_bound(address);
  if (next == pieces.begin()) return nullptr;
  const Piece& piece = std::prev(next)->second;
  return address < piece.end ? piece.code : nullptr;
}

}  // namespace arctrace::reader
