#include "reader/report/flow_view.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/render/report_parts.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {

FlowView::FlowView(const ViewOptions& options, uint64_t min_duration_ns,
                   DescribeRecord describe, const WriteText* write, JsonWriter* json)
    : options_(options),
      min_duration_ns_(min_duration_ns),
      describe_(std::move(describe)),
      write_(write),
      json_(json),
      waiting_(1) {}

void FlowView::begin(Replay& replay) {
  replay_ = &replay;
  names_.emplace(replay, options_);
  if (write_ == nullptr) return;
  std::string head = "\n";
  append_tinted(head, options_.style, Tint::kHead,
                "           Time  Process/thread    Lv  Flow");
  good_ = (*write_)(head + "\n");
}

// ---- What the replay tells --------------------------------------------------

FlowView::Line FlowView::line_of(Kind kind, const FrameInfo& frame) {
  Line line;
  line.kind = kind;
  line.thread = frame.thread;
  line.function = frame.function;
  line.depth = frame.depth;
  line.count = frame.count;
  line.flags = frame.flags;
  line.time_ns = frame.time_ns;
  line.delta_ns = frame.cum_ns;
  line.base_ns = frame.base_ns;
  line.cpu = frame.cpu;
  return line;
}

uint64_t FlowView::frame_opened(const FrameInfo& frame) {
  release(frame.time_ns);
  const uint32_t index = enqueue(line_of(Kind::kEnter, frame), min_duration_ns_ == 0);
  return uint64_t{waiting_[index].generation} << 32 | index;
}

void FlowView::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  release(frame.time_ns);
  if (Waiting* entry = waiting(token)) {
    entry->decided = shown;
    if (!shown) unlink(static_cast<uint32_t>(token));
  }
  Line line = line_of(Kind::kExit, frame);
  if (const auto found = results_.find(frame.thread); found != results_.end()) {
    if (found->second.token == token) line.content = std::move(found->second.content);
    results_.erase(found);
  }
  if (!shown) return;
  if ((frame.flags & kFrameOpen) != 0) {
    open_.push_back(frame);
  } else if ((frame.flags & kFrameCutStop) == 0) {
    put(std::move(line));
  }
}

void FlowView::args(const ArgsInfo& args) {
  if (lines_ >= options_.limit) return;
  release(args.time_ns);
  if (args.record->type == ARCTRACE_TYPE_RESULT) {
    Result& result = results_[args.thread];
    result = {args.token, {}};
    describe_(*args.record, json_ != nullptr, result.content);
  } else if (Waiting* entry = waiting(args.token)) {
    if (entry->line.content.empty()) {
      describe_(*args.record, json_ != nullptr, entry->line.content);
    }
  }
}

void FlowView::frame_adopted(const FrameInfo& frame) {
  if ((frame.flags & kFrameCutStop) == 0) put(line_of(Kind::kExit, frame));
}

void FlowView::point(const PointInfo& point) {
  Line line;
  line.kind = point.kind == PointInfo::Kind::kRecord ? Kind::kRecord : Kind::kTrouble;
  line.orphan = point.kind == PointInfo::Kind::kOrphan;
  line.thread = point.thread;
  line.function = point.function;
  line.depth = point.depth + 1;
  line.time_ns = point.time_ns;
  line.type = point.record->type;
  if (line.kind == Kind::kRecord && lines_ < options_.limit) {
    describe_(*point.record, json_ != nullptr, line.content);
  }
  put(std::move(line));
}

// ---- Waiting ----------------------------------------------------------------

void FlowView::put(Line line) {
  release(line.time_ns);
  if (waiting_[0].next == 0) {
    emit(line);
  } else {
    enqueue(std::move(line), true);
  }
}

// The entry of a frame, if it still waits; else null.
FlowView::Waiting* FlowView::waiting(uint64_t token) {
  Waiting& entry = waiting_[static_cast<uint32_t>(token)];
  return entry.generation == token >> 32 ? &entry : nullptr;
}

uint32_t FlowView::enqueue(Line line, bool decided) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(waiting_.size()));
    waiting_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Waiting& entry = waiting_[index];
  entry.line = std::move(line);
  entry.decided = decided;
  entry.next = 0;
  entry.previous = waiting_[0].previous;
  waiting_[entry.previous].next = index;
  waiting_[0].previous = index;
  return index;
}

void FlowView::unlink(uint32_t index) {
  Waiting& entry = waiting_[index];
  waiting_[entry.previous].next = entry.next;
  waiting_[entry.next].previous = entry.previous;
  ++entry.generation;
  free_.push_back(index);
}

// Writes what is clear by now.
void FlowView::release(int64_t now_ns) {
  for (uint32_t index = waiting_[0].next; index != 0; index = waiting_[0].next) {
    const Waiting& entry = waiting_[index];
    const uint64_t age =
        static_cast<uint64_t>(now_ns) - static_cast<uint64_t>(entry.line.time_ns);
    if (entry.line.kind == Kind::kEnter && now_ns == entry.line.time_ns) return;
    if (!entry.decided && (now_ns < entry.line.time_ns || age < min_duration_ns_)) return;
    emit(entry.line);
    unlink(index);
  }
}

// ---- Output -----------------------------------------------------------------

void FlowView::emit(const Line& line) {
  if (!good_ || lines_++ >= options_.limit) return;
  if (json_ != nullptr) {
    emit_json(line);
    good_ = json_->good();
  } else {
    emit_text(line);
  }
}

std::string FlowView::who(ThreadIndex thread) const {
  const Thread* facts = replay_->definitions().thread(thread);
  if (facts == nullptr) return "-";
  return absl::StrCat(replay_->definitions().pid_of(thread), "/", facts->tid);
}

void FlowView::emit_text(const Line& line) {
  std::string row;
  append_right(row, seconds_text(line.time_ns), 15);
  row += "  ";
  append_left(row, who(line.thread), 16);
  append_right(row, absl::StrCat(line.depth), 4);
  row.append(2 + indent_columns(line.depth == 0 ? 0 : line.depth - 1), ' ');
  std::string notes = flags_text(line.flags);
  switch (line.kind) {
    case Kind::kEnter:
      row += "> ";
      if (line.count > 1) absl::StrAppend(&notes, " [", line.count, " frames]");
      append_name(row, names_->text(line.function) + line.content, notes, false,
                  options_.style);
      break;
    case Kind::kExit:
      row += "< ";
      notes = absl::StrCat(
          "  ", duration_text(line.delta_ns), ", base ", duration_text(line.base_ns),
          line.cpu.off_ns == 0 ? std::string()
                               : ", off CPU " + duration_text(line.cpu.off_ns),
          notes);
      append_name(row, names_->text(line.function) + line.content, notes, false,
                  options_.style);
      break;
    case Kind::kRecord:
      if (line.type == ARCTRACE_TYPE_LOST) {
        append_tinted(row, options_.style, Tint::kTrouble,
                      absl::StrCat("! LOST ", line.content));
      } else {
        absl::StrAppend(&row, "* ", record_type_text(line.type), " ", line.content);
      }
      row += '\n';
      break;
    case Kind::kTrouble: {
      std::string what = "! a STACK record contradicts what came before";
      if (line.orphan) {
        what = "! orphan exit";
        if (line.function != kUnknownFunction) {
          absl::StrAppend(&what, " of ", names_->text(line.function));
        }
      }
      append_tinted(row, options_.style, Tint::kTrouble, what);
      row += '\n';
      break;
    }
  }
  good_ = (*write_)(row);
}

void FlowView::emit_json(const Line& line) {
  json_->begin_object();
  json_->member("time_ns", line.time_ns);
  if (const Thread* thread = replay_->definitions().thread(line.thread)) {
    json_->member("pid", replay_->definitions().pid_of(line.thread));
    json_->member("tid", thread->tid);
  }
  json_->member("depth", line.depth);
  switch (line.kind) {
    case Kind::kEnter:
      json_->member("type", "ENTER");
      write_function_json(line.function, *names_, *json_);
      json_->members(line.content);
      if (line.count > 1) json_->member("frames", line.count);
      write_flags_json(line.flags, *json_);
      break;
    case Kind::kExit:
      json_->member("type", "EXIT");
      write_function_json(line.function, *names_, *json_);
      json_->members(line.content);
      json_->member("delta_ns", line.delta_ns);
      json_->member("base_ns", line.base_ns);
      write_cpu_json(line.cpu, replay_->known_times(), *json_);
      write_flags_json(line.flags, *json_);
      break;
    case Kind::kRecord:
      json_->member("type", record_type_text(line.type));
      json_->members(line.content);
      break;
    case Kind::kTrouble:
      json_->member("type", record_type_text(line.type));
      json_->member("trouble", line.orphan ? "orphan" : "contradiction");
      if (line.function != kUnknownFunction) {
        write_function_json(line.function, *names_, *json_);
      }
      break;
  }
  json_->end();
}

void FlowView::finish() {
  // What still waits is open, or came behind what is.
  while (waiting_[0].next != 0) {
    const uint32_t index = waiting_[0].next;
    emit(waiting_[index].line);
    unlink(index);
  }
  const uint64_t left_out = lines_ > options_.limit ? lines_ - options_.limit : 0;
  if (json_ == nullptr) {
    if (good_) good_ = (*write_)(left_out_text(left_out));
    if (good_ && !open_.empty()) good_ = (*write_)("\nOpen at the end:\n");
    for (const FrameInfo& frame : open_) {
      if (!good_) return;
      std::string row;
      append_right(row, seconds_text(frame.start_ns), 15);
      row += "  ";
      append_left(row, who(frame.thread), 16);
      append_right(row, absl::StrCat(frame.depth), 4);
      row += "  ";
      append_name(row, names_->text(frame.function),
                  flags_text(frame.flags & static_cast<uint16_t>(~unsigned{kFrameOpen})),
                  false, options_.style);
      good_ = (*write_)(row);
    }
    return;
  }
  json_->end();
  json_->key("open_frames").begin_array();
  for (const FrameInfo& frame : open_) {
    json_->begin_object();
    json_->member("start_ns", frame.start_ns);
    const Thread& thread = replay_->definitions().threads()[frame.thread];
    json_->member("pid", replay_->definitions().pid_of(frame.thread));
    json_->member("tid", thread.tid);
    json_->member("depth", frame.depth);
    write_function_json(frame.function, *names_, *json_);
    write_flags_json(frame.flags, *json_);
    json_->end();
  }
  json_->end();
}

}  // namespace arctrace::reader
