// What the functions of the C interface share: how exceptions become errors, an opened
// trace with its facts, and how it is replayed.
#pragma once

#include <absl/status/status.h>
#include <arctrace/reader.h>

#include <array>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// What each function of the C interface does with errors: no exception leaves the
// library, and each failure has a code and a line of text.

// Stores `message` for arctrace_reader_error() of this thread; returns `code`.
int failed(int code, const std::string& message);
// Does the same for a status of the library's, which is not OK.
int failed(const absl::Status& status);

// Returns what `body` returns, or the code of the exception that it throws.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failed(ARCTRACE_READER_NO_MEMORY, "no memory");
  } catch (const std::system_error& error) {
    return failed(ARCTRACE_READER_NO_MEMORY, error.what());
  } catch (const std::exception& error) {
    return failed(ARCTRACE_READER_INTERNAL, error.what());
  } catch (...) {
    return failed(ARCTRACE_READER_INTERNAL, "an unknown exception");
  }
}

// The facts that the C interface tells of an open trace: copies, so that callers may read
// them while a cursor's thread reads the trace.
class TraceFacts {
 public:
  explicit TraceFacts(const Trace& trace);
  TraceFacts(const TraceFacts&) = delete;
  TraceFacts& operator=(const TraceFacts&) = delete;

  // Takes the sums of the last read() and its findings.
  void sum_up(const Trace& trace);

  const arctrace_reader_facts& facts() const { return facts_; }
  const std::vector<arctrace_reader_process>& processes() const { return processes_; }
  const std::vector<arctrace_reader_thread>& threads() const { return threads_; }
  const std::deque<arctrace_reader_finding>& findings() const { return findings_; }

 private:
  const char* keep(std::string text);
  void add_process(const Trace& trace, const Process& process);
  void add_thread(const Trace& trace, ThreadIndex index);
  void add_findings(const Trace& trace);

  std::deque<std::string> texts_;
  std::deque<std::vector<const char*>> lists_;
  arctrace_reader_facts facts_{};
  std::array<uint64_t, kLossCauses> lost_by_cause_{};
  std::vector<arctrace_reader_process> processes_;
  std::vector<arctrace_reader_thread> threads_;
  std::deque<arctrace_reader_finding> findings_;  // their addresses stay
};

}  // namespace arctrace::reader

// The trace behind the C interface's handle.
struct arctrace_reader_trace {
  arctrace_reader_trace(arctrace::reader::Trace opened,
                        arctrace::reader::SymbolOptions symbol_options)
      : trace(std::move(opened)), symbols(std::move(symbol_options)), facts(trace) {}

  arctrace::reader::Trace trace;  // used by the cursor's thread while there is one
  const arctrace::reader::SymbolOptions symbols;
  arctrace::reader::TraceFacts facts;
  bool is_busy = false;  // it has a cursor
};

namespace arctrace::reader {

// Reads the caller's filter, which may be nullptr or of an earlier version; nullopt if
// its size makes no sense.
std::optional<ReplayFilter> read_filter(const arctrace_reader_filter* given);

// `trace` and `listener`, which may be nullptr, must outlive the replay.
ReplayOptions replay_options_for(const Trace& trace, const ReplayFilter& filter,
                                 ReplayListener* listener);

}  // namespace arctrace::reader
