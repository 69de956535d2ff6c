#include "reader/c_api/trace_handle.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reader/analysis/tree_groups.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

thread_local std::string last_error;

int code_of(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kNotFound:
      return ARCTRACE_READER_NOT_FOUND;
    case absl::StatusCode::kPermissionDenied:
      return ARCTRACE_READER_DENIED;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return ARCTRACE_READER_NO_TRACE;
    case absl::StatusCode::kResourceExhausted:
      return ARCTRACE_READER_NO_MEMORY;
    default:
      return ARCTRACE_READER_INPUT;
  }
}

}  // namespace

int failed(int code, const std::string& message) {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return code;
}

int failed(const absl::Status& status) {
  return failed(code_of(status.code()), printable(std::string(status.message())));
}

}  // namespace arctrace::reader

const char* arctrace_reader_error(void) { return arctrace::reader::last_error.c_str(); }

const char* arctrace_reader_version(void) { return ARCTRACE_VERSION; }

namespace arctrace::reader {

TraceFacts::TraceFacts(const Trace& trace) {
  const Session& session = trace.session();
  facts_.size = sizeof facts_;
  facts_.version_major = session.version_major;
  facts_.version_minor = session.version_minor;
  facts_.mode = session.mode;
  facts_.scope = session.scope;
  facts_.clock = session.clock;
  facts_.is_buffer = session.raw ? 1 : 0;
  facts_.finished = session.finished ? 1 : 0;
  facts_.has_kernel = trace.definitions().has_dispatches() ? 1 : 0;
  std::copy(session.id.begin(), session.id.end(), std::begin(facts_.session_id));
  facts_.path = keep(session.path);
  facts_.host = keep(session.host);
  facts_.kernel = keep(session.kernel);
  facts_.size_bytes = session.size_bytes;
  facts_.ticks_per_second = session.ticks_per_second;
  facts_.start_realtime_ns = static_cast<int64_t>(session.start_realtime_ns);
  facts_.child_status = session.child_wait_status.value_or(-1);
  facts_.first_file = session.files.first;
  facts_.last_file = session.files.last;
  facts_.removed_files = session.files.removed;
  facts_.goes_on = session.files.goes_on ? 1 : 0;
  facts_.lost_by_cause = lost_by_cause_.data();
  facts_.lost_causes = lost_by_cause_.size();
  const Definitions& definitions = trace.definitions();
  for (const Process& process : definitions.processes()) add_process(trace, process);
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) add_thread(trace, i);
  add_findings(trace);
}

const char* TraceFacts::keep(std::string text) {
  return texts_.emplace_back(std::move(text)).c_str();
}

void TraceFacts::add_process(const Trace& trace, const Process& process) {
  arctrace_reader_process made{};
  made.size = sizeof made;
  made.pid = process.pid;
  made.ppid = process.ppid;
  made.uid = process.uid;
  made.parent = trace.definitions().find_process(process.parent_id);
  made.origin = process.origin;
  made.end_how = process.end_how;
  made.end_status = process.end_status;
  made.start_ns = process.begin_ns();
  made.end_ns = process.end_ns;
  made.program = keep(process.executable);
  std::vector<const char*>& arguments = lists_.emplace_back();
  for (const std::string& argument : process.arguments) {
    arguments.push_back(keep(argument));
  }
  made.arguments = arguments.data();
  made.argument_count = arguments.size();
  processes_.push_back(made);
}

void TraceFacts::add_thread(const Trace& trace, ThreadIndex index) {
  const Definitions& definitions = trace.definitions();
  const Thread& thread = *definitions.thread(index);
  arctrace_reader_thread made{};
  made.size = sizeof made;
  made.tid = thread.tid;
  made.process = definitions.process(thread.process) == nullptr ? ARCTRACE_READER_NONE
                                                                : thread.process;
  made.pid = definitions.pid_of(index);
  made.of_kernel = thread.of_kernel() ? 1 : 0;
  made.start_ns = definitions.begin_ns(index);
  made.end_ns = definitions.life_end_ns(index);
  made.name = keep(thread_label(definitions, index));
  threads_.push_back(made);
}

void TraceFacts::add_findings(const Trace& trace) {
  for (size_t i = findings_.size(); i < trace.findings().size(); ++i) {
    const Finding& finding = trace.findings()[i];
    findings_.push_back({sizeof(arctrace_reader_finding), finding.offset, finding.chunk,
                         keep(finding.rule), keep(finding.message)});
  }
  facts_.findings = trace.finding_count();
}

// A later pass over the trace finds what an earlier one has found, in the same order.
void TraceFacts::sum_up(const Trace& trace) {
  const Summary& sums = trace.summary();
  facts_.is_summed = 1;
  facts_.records = sums.records;
  facts_.lost = sums.lost;
  lost_by_cause_ = sums.lost_by_cause;
  facts_.overwritten = sums.overwritten;
  facts_.elsewhere = sums.elsewhere;
  facts_.filtered_out = sums.filtered_out;
  facts_.torn = sums.torn;
  facts_.unfinished = sums.unfinished;
  facts_.invalid = sums.invalid;
  facts_.first_ns = sums.first_ns;
  facts_.last_ns = sums.last_ns;
  facts_.duration_ns = sums.duration_ns;
  add_findings(trace);
}

namespace {

constexpr size_t kFirstFilterSize = sizeof(arctrace_reader_filter);

}  // namespace

std::optional<ReplayFilter> read_filter(const arctrace_reader_filter* given) {
  ReplayFilter filter;
  if (given == nullptr) return filter;
  if (given->size < kFirstFilterSize) return std::nullopt;
  arctrace_reader_filter known = ARCTRACE_READER_FILTER;
  std::memcpy(&known, given, std::min(given->size, sizeof known));
  if ((known.only == nullptr && known.only_count != 0) ||
      (known.except == nullptr && known.except_count != 0)) {
    return std::nullopt;
  }
  filter.from_ns = known.from_ns;
  filter.until_ns = known.until_ns;
  filter.min_duration_ns = known.min_duration_ns;
  filter.max_depth = known.max_depth;
  if (known.only_count != 0) {
    filter.only.assign(known.only, known.only + known.only_count);
  }
  if (known.except_count != 0) {
    filter.except.assign(known.except, known.except + known.except_count);
  }
  return filter;
}

ReplayOptions replay_options_for(const Trace& trace, const ReplayFilter& filter,
                                 ReplayListener* listener) {
  ReplayOptions options = replay_options_of(trace);
  options.filter = filter;
  options.listener = listener;
  return options;
}

}  // namespace arctrace::reader
