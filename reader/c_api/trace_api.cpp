// Opening traces, and what is known of them without reading their records.
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "reader/c_api/trace_handle.hpp"
#include "reader/trace/format_names.hpp"

using arctrace::reader::failed;
using arctrace::reader::guarded;

namespace {

template <class List>
auto item_or_null(const List& list, size_t number) {
  return number < list.size() ? &list[number] : nullptr;
}

}  // namespace

int arctrace_reader_open(const char* const* paths, size_t count, uint32_t flags,
                         arctrace_reader_trace** trace) {
  return guarded([&] {
    constexpr uint32_t kKnown = ARCTRACE_READER_CHECKSUMS | ARCTRACE_READER_DOWNLOAD;
    if (paths == nullptr || count == 0 || trace == nullptr || (flags & ~kKnown) != 0) {
      return failed(ARCTRACE_READER_ARGUMENT, "open: no path, or an unknown flag");
    }
    arctrace::reader::OpenOptions options;
    options.verifies_checksums = (flags & ARCTRACE_READER_CHECKSUMS) != 0;
    arctrace::reader::SymbolOptions symbols;
    symbols.allow_download = (flags & ARCTRACE_READER_DOWNLOAD) != 0;
    absl::StatusOr<arctrace::reader::Trace> opened = arctrace::reader::Trace::open(
        std::vector<std::string>(paths, paths + count), options);
    if (!opened.ok()) return failed(opened.status());
    *trace = new arctrace_reader_trace(*std::move(opened), std::move(symbols));
    return int{ARCTRACE_READER_OK};
  });
}

void arctrace_reader_close(arctrace_reader_trace* trace) { delete trace; }

const arctrace_reader_facts* arctrace_reader_get_facts(
    const arctrace_reader_trace* trace) {
  return &trace->facts.facts();
}

const char* arctrace_reader_lost_cause(size_t cause) {
  static const std::vector<std::string>* const names = [] {
    auto* made = new std::vector<std::string>();
    for (uint32_t i = 0; i < arctrace::reader::kLossCauses; ++i) {
      made->push_back(arctrace::reader::loss_cause_text(i));
    }
    return made;
  }();
  return cause < names->size() ? (*names)[cause].c_str() : "";
}

int arctrace_reader_scan(arctrace_reader_trace* trace) {
  return guarded([&] {
    if (trace->is_busy) {
      return failed(ARCTRACE_READER_BUSY, "scan: the trace has a cursor");
    }
    const absl::Status status =
        trace->trace.read([](const arctrace::reader::Record&) { return true; });
    if (!status.ok()) return failed(status);
    trace->facts.sum_up(trace->trace);
    return int{ARCTRACE_READER_OK};
  });
}

const arctrace_reader_finding* arctrace_reader_get_finding(
    const arctrace_reader_trace* trace, size_t number) {
  return item_or_null(trace->facts.findings(), number);
}

const arctrace_reader_process* arctrace_reader_get_process(
    const arctrace_reader_trace* trace, size_t number) {
  return item_or_null(trace->facts.processes(), number);
}

const arctrace_reader_thread* arctrace_reader_get_thread(
    const arctrace_reader_trace* trace, size_t number) {
  return item_or_null(trace->facts.threads(), number);
}
