#include "reader/streams/call_table.hpp"

#include <arctrace/format.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// Set in tokens of rows in early_, clear in those of rows in spool_.
constexpr uint64_t kEarlyToken = uint64_t{1} << 63;

struct Numbered {
  uint64_t number;
  InvocationRow row;
};

}  // namespace

InvocationRow CallTable::row_of(const FrameInfo& frame, InvocationRow::State state) {
  InvocationRow row;
  row.start_ns = frame.start_ns;
  row.stop_ns = frame.stop_ns;
  row.self_ns = frame.self_ns;
  row.duration_ns = frame.duration_ns;
  row.cpu = frame.cpu;
  row.thread = frame.thread;
  row.function = frame.function;
  row.flags = frame.flags;
  row.state = state;
  return row;
}

uint64_t CallTable::frame_opened(const FrameInfo& frame) {
  const InvocationRow row = row_of(frame, InvocationRow::State::kOpen);
  if (frame.start_ns == frame.time_ns) return spool_.add(row);
  early_.push_back({row, static_cast<int64_t>(early_.size())});
  return kEarlyToken | (early_.size() - 1);
}

void CallTable::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  InvocationRow row = row_of(
      frame, shown ? InvocationRow::State::kShown : InvocationRow::State::kDropped);
  if (const auto found = open_texts_.find(token); found != open_texts_.end()) {
    const Texts& texts = found->second;
    row.args_size = static_cast<uint32_t>(texts.args.size());
    row.retval_size = static_cast<uint32_t>(texts.retval.size());
    row.text_offset = texts_.add(texts.args + texts.retval);
    open_texts_.erase(found);
  }
  if ((token & kEarlyToken) != 0) {
    early_[token & ~kEarlyToken].row = row;
  } else {
    spool_.replace(token, row);
  }
}

void CallTable::args(const ArgsInfo& args) {
  Texts& texts = open_texts_[args.token];
  const bool is_retval = args.record->type == ARCTRACE_TYPE_RESULT;
  std::string& text = is_retval ? texts.retval : texts.args;
  if (text.empty()) text = describe_(*args.record);
}

// An adopted frame that was left later was further out.
void CallTable::frame_adopted(const FrameInfo& frame) {
  early_.push_back({row_of(frame, InvocationRow::State::kShown),
                    -1 - static_cast<int64_t>(early_.size())});
}

absl::Status CallTable::in_entry_order(Visit visit) {
  std::sort(early_.begin(), early_.end(), [](const Early& a, const Early& b) {
    return std::pair(a.row.start_ns, a.rank) < std::pair(b.row.start_ns, b.rank);
  });
  uint64_t number = 0;
  const auto show = [&](const InvocationRow& row) {
    return row.state == InvocationRow::State::kDropped || visit(number++, row);
  };
  auto next = early_.begin();
  bool more = true;
  absl::Status status = spool_.for_each([&](const InvocationRow& row) {
    while (more && next != early_.end() && next->row.start_ns <= row.start_ns) {
      more = show((next++)->row);
    }
    return more && (more = show(row));
  });
  while (status.ok() && more && next != early_.end()) more = show((next++)->row);
  return status;
}

absl::Status CallTable::in_sorted_order(SortKey sort, uint64_t limit,
                                        const Functions& functions, Visit visit) {
  const auto before = [&](const Numbered& a, const Numbered& b) {
    const auto sums = [&](const InvocationRow& row) {
      return SortValues{1, row.self_ns, row.duration_ns, functions[row.function].name, 0};
    };
    const SortValues x = sums(a.row);
    const SortValues y = sums(b.row);
    if (sorts_before(sort, x, y)) return true;
    return !sorts_before(sort, y, x) && a.number < b.number;
  };
  // The best ones so far, the worst of them at the front.
  std::vector<Numbered> best;
  absl::Status status = in_entry_order([&](uint64_t number, const InvocationRow& row) {
    const Numbered found = {number, row};
    if (best.size() >= limit) {
      if (best.empty() || !before(found, best.front())) return true;
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(found);
    std::push_heap(best.begin(), best.end(), before);
    return true;
  });
  if (!status.ok()) return status;
  std::sort_heap(best.begin(), best.end(), before);
  for (const Numbered& row : best) {
    if (!visit(row.number, row.row)) break;
  }
  return status;
}

absl::StatusOr<uint64_t> CallTable::for_each(SortKey sort, uint64_t limit,
                                             const Functions& functions, Visit visit) {
  uint64_t shown = 0, all = 0;
  const bool is_sorted = sort != SortKey::kEntry;
  if (is_sorted) {
    const absl::Status counted =
        in_entry_order([&](uint64_t /*number*/, const InvocationRow& /*row*/) {
          ++all;
          return true;
        });
    if (!counted.ok()) return counted;
  }
  bool more = true;
  const auto limited = [&](uint64_t number, const InvocationRow& row) {
    if (!is_sorted) ++all;
    if (shown >= limit) return true;
    ++shown;
    return more && (more = visit(number, row));
  };
  const absl::Status status = is_sorted ? in_sorted_order(sort, limit, functions, limited)
                                        : in_entry_order(limited);
  if (!status.ok()) return status;
  return more ? all - shown : 0;
}

}  // namespace arctrace::reader
