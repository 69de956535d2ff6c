#include "reader/report/invocations_view.hpp"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/render/report_parts.hpp"

namespace arctrace::reader {
namespace {

// Tokens of early_ have it, those of spool_ have not.
constexpr uint64_t kEarlyToken = uint64_t{1} << 63;

struct Numbered {
  uint64_t number;
  InvocationRow row;
};

std::string who(const Replay& replay, ThreadIndex thread) {
  const Thread& facts = replay.definitions().threads()[thread];
  return absl::StrCat(replay.definitions().pid_of(thread), "/", facts.tid);
}

}  // namespace

InvocationRow InvocationsView::row_of(const FrameInfo& frame,
                                      InvocationRow::State state) {
  InvocationRow row;
  row.start_ns = frame.start_ns;
  row.stop_ns = frame.stop_ns;
  row.base_ns = frame.base_ns;
  row.cum_ns = frame.cum_ns;
  row.cpu = frame.cpu;
  row.thread = frame.thread;
  row.function = frame.function;
  row.flags = frame.flags;
  row.state = state;
  return row;
}

uint64_t InvocationsView::frame_opened(const FrameInfo& frame) {
  const InvocationRow row = row_of(frame, InvocationRow::State::kOpen);
  if (frame.start_ns == frame.time_ns) return spool_.add(row);
  early_.push_back({row, static_cast<int64_t>(early_.size())});
  return kEarlyToken | (early_.size() - 1);
}

void InvocationsView::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  InvocationRow row = row_of(
      frame, shown ? InvocationRow::State::kShown : InvocationRow::State::kDropped);
  if (const auto found = open_texts_.find(token); found != open_texts_.end()) {
    const std::string text = found->second.arguments + found->second.result;
    row.text_size = static_cast<uint32_t>(text.size());
    row.text_place = texts_.add(text);
    open_texts_.erase(found);
  }
  if ((token & kEarlyToken) != 0) {
    early_[token & ~kEarlyToken].row = row;
  } else {
    spool_.replace(token, row);
  }
}

void InvocationsView::args(const ArgsInfo& args) {
  Texts& texts = open_texts_[args.token];
  const bool is_result = args.record->type == ARCTRACE_TYPE_RESULT;
  std::string& text = is_result ? texts.result : texts.arguments;
  if (text.empty()) describe_(*args.record, json_, text);
}

// The later it was left, the further out it stood.
void InvocationsView::frame_adopted(const FrameInfo& frame) {
  early_.push_back({row_of(frame, InvocationRow::State::kShown),
                    -1 - static_cast<int64_t>(early_.size())});
}

absl::Status InvocationsView::in_entry_order(Visit visit) {
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

absl::Status InvocationsView::in_sorted_order(const Functions& functions, Visit visit) {
  const auto before = [&](const Numbered& a, const Numbered& b) {
    const auto values = [&](const InvocationRow& row) {
      return SortValues{1, row.base_ns, row.cum_ns, functions[row.function].name, 0};
    };
    const SortValues x = values(a.row);
    const SortValues y = values(b.row);
    if (sorts_before(options_.sort, x, y)) return true;
    return !sorts_before(options_.sort, y, x) && a.number < b.number;
  };
  // The best ones so far, the worst of them at the front.
  std::vector<Numbered> best;
  absl::Status status = in_entry_order([&](uint64_t number, const InvocationRow& row) {
    const Numbered found = {number, row};
    if (best.size() >= options_.limit) {
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

absl::StatusOr<uint64_t> InvocationsView::for_rows(const Functions& functions,
                                                   Visit visit) {
  uint64_t shown = 0, all = 0;
  const bool sorted = options_.sort != SortKey::kEntry;
  if (sorted) {
    const absl::Status counted =
        in_entry_order([&](uint64_t /*number*/, const InvocationRow& /*row*/) {
          ++all;
          return true;
        });
    if (!counted.ok()) return counted;
  }
  bool more = true;
  const auto limited = [&](uint64_t number, const InvocationRow& row) {
    if (!sorted) ++all;
    if (shown >= options_.limit) return true;
    ++shown;
    return more && (more = visit(number, row));
  };
  const absl::Status status =
      sorted ? in_sorted_order(functions, limited) : in_entry_order(limited);
  if (!status.ok()) return status;
  return more ? all - shown : 0;
}

absl::Status InvocationsView::write_text(Replay& replay, const WriteText& write) {
  FunctionNames names(replay, options_);
  std::string head = "\n";
  append_tinted(
      head, options_.style, Tint::kHead,
      absl::StrCat(
          "     Number            Start             Stop        Delta         Base",
          replay.has_dispatches() ? kCpuHead : "", "  Process/thread   Name"));
  head += '\n';
  if (!write(head)) return absl::OkStatus();
  const absl::StatusOr<uint64_t> left_out =
      for_rows(replay.functions(), [&](uint64_t number, const InvocationRow& row) {
        std::string line;
        append_right(line, absl::StrCat(number), 11);
        append_right(line, seconds_text(row.start_ns), 17);
        append_right(line, seconds_text(row.stop_ns), 17);
        append_right(line, duration_text(row.cum_ns), 13);
        append_right(line, duration_text(row.base_ns), 13);
        if (replay.has_dispatches()) append_cpu(line, row.cpu);
        line += "  ";
        append_left(line, who(replay, row.thread), 16);
        line += ' ';
        append_name(line,
                    names.text(row.function) + texts_.read(row.text_place, row.text_size),
                    flags_text(row.flags), false, options_.style);
        return write(line);
      });
  if (!left_out.ok()) return left_out.status();
  write(left_out_text(*left_out));
  return absl::OkStatus();
}

absl::Status InvocationsView::write_json(Replay& replay, JsonWriter& json) {
  FunctionNames names(replay, options_);
  json.key("invocations").begin_array();
  const absl::StatusOr<uint64_t> left_out =
      for_rows(replay.functions(), [&](uint64_t number, const InvocationRow& row) {
        json.begin_object();
        json.member("seq", number);
        json.member("start_ns", row.start_ns);
        json.member("stop_ns", row.stop_ns);
        json.member("delta_ns", row.cum_ns);
        json.member("base_ns", row.base_ns);
        write_cpu_json(row.cpu, replay.known_times(), json);
        const Thread& thread = replay.definitions().threads()[row.thread];
        json.member("pid", replay.definitions().pid_of(row.thread));
        json.member("tid", thread.tid);
        write_function_json(row.function, names, json);
        json.members(texts_.read(row.text_place, row.text_size));
        write_flags_json(row.flags, json);
        json.end();
        return json.good();
      });
  json.end();
  return left_out.status();
}

}  // namespace arctrace::reader
