// Fills in the collector's own records, from the buffer and from /proc.
#include "src/recorder/file/session_records.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/enabled.hpp"
#include "src/recorder/buffer/recording_control.hpp"

namespace arctrace::recorder {

namespace {

void add_enabled_as(RecordBuilder& records, uint64_t ticks, uint32_t recorded,
                    const std::string& filter) {
  records.begin(ARCTRACE_TYPE_ENABLED, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_enabled_body{
      .gate = recorded, .filter_size = static_cast<uint32_t>(filter.size())});
  records.text(filter);
}

uint32_t add_gate_changes(RecordBuilder& records, const BufferView& view, uint32_t seen) {
  return for_each_gate_change_untrusted(
      view, seen, [&](uint64_t ticks, uint32_t recorded, const std::string& filter) {
        add_enabled_as(records, ticks, recorded, filter);
      });
}

}  // namespace

void add_start(RecordBuilder& records, uint64_t ticks, const RecorderFacts& recorder,
               uint32_t detail) {
  utsname system{};
  uname(&system);
  std::string arguments;
  for (const std::string& argument : recorder.command_line) arguments += argument + '\0';
  // A record's length is 16 bits; a longer command line is cut.
  constexpr size_t kArgumentsMax = 16384;
  if (arguments.size() > kArgumentsMax) arguments.resize(kArgumentsMax);
  const std::string host = system.nodename;
  const std::string release = system.release;
  records.begin(ARCTRACE_TYPE_SYSTEM, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(
      arctrace_system_body{.byte_order = ARCTRACE_BYTE_ORDER,
                           .page_size = static_cast<uint32_t>(sysconf(_SC_PAGESIZE)),
                           .cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)),
                           .host_size = static_cast<uint32_t>(host.size()),
                           .kernel_size = static_cast<uint32_t>(release.size()),
                           .arguments_size = static_cast<uint32_t>(arguments.size())});
  records.text(host);
  records.text(release);
  records.text(arguments);
  if (!recorder.hook_costs.empty()) {
    records.begin(ARCTRACE_TYPE_HOOK_COSTS, ARCTRACE_WRITER_COLLECTOR, ticks);
    records.body(arctrace_hook_costs_body{
        .count = static_cast<uint32_t>(recorder.hook_costs.size())});
    for (const arctrace_hook_cost& cost : recorder.hook_costs) records.body(cost);
  }
  add_session_event(records, ticks, ARCTRACE_SESSION_STARTED, detail);
}

void add_clock_sync(RecordBuilder& records, const ClockSync& sync) {
  records.begin(ARCTRACE_TYPE_CLOCK_SYNC, ARCTRACE_WRITER_COLLECTOR, sync.ticks);
  records.body(arctrace_clock_sync_body{.ticks = sync.ticks,
                                        .monotonic_ns = sync.monotonic_ns,
                                        .realtime_ns = sync.realtime_ns});
}

void add_clock_word(RecordBuilder& records, uint64_t ticks, const ClockWordTimes& times) {
  records.begin(ARCTRACE_TYPE_CLOCK_WORD, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_clock_word_body{.stores = times.stores,
                                        .mean_age_ns = times.mean_age_ns,
                                        .longest_ns = times.longest_ns});
}

void add_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail) {
  records.begin(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_session_body{.what = what, .detail = detail});
}

void add_exec(RecordBuilder& records, uint64_t ticks, uint32_t pid,
              uint64_t within_ticks) {
  records.begin(ARCTRACE_TYPE_EXEC, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(
      arctrace_exec_body{.pid = pid, .reserved = 0, .within_ticks = within_ticks});
}

ControlEventsSeen add_control_events(RecordBuilder& records, const BufferView& view,
                                     ControlEventsSeen seen) {
  return {add_gate_changes(records, view, seen.gate_changes),
          for_each_control_event_untrusted(
              execs(view), seen.execs, [&](uint64_t ticks, uint32_t value) {
                const ExecEvent exec = ExecEvent::unpack(value);
                add_exec(records, ticks, exec.pid, exec.within_ticks);
              })};
}

void add_enabled(RecordBuilder& records, const BufferView& view, uint64_t ticks) {
  add_enabled_as(records, ticks, recorded_now(view),
                 FilterNow::read_untrusted(live_filter_area(view)).now() +
                     FilterNow::read_untrusted(record_filter_area(view)).now());
}

void add_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status) {
  records.begin(ARCTRACE_TYPE_CHILD_STATUS, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_child_status_body{.child_pid = pid, .status = wait_status});
}

void add_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer,
                    uint64_t alive_ticks) {
  if (alive_ticks != 0) {
    records.begin(ARCTRACE_TYPE_ALIVE, ARCTRACE_WRITER_COLLECTOR, alive_ticks);
    records.body(arctrace_alive_body{.writer = writer});
  }
  records.begin(ARCTRACE_TYPE_WRITER_END, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_writer_end_body{.writer = writer, .how = ARCTRACE_WRITER_DIED});
}

void add_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks) {
  records.begin(ARCTRACE_TYPE_LOST, writer, ticks);
  records.body(arctrace_lost_body{
      .cause = cause, .flags = flags, .count = count, .since_ticks = since_ticks});
}

void add_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                arctrace_writer_slot& slot) {
  const uint32_t writer = IpcAtomics::load_acquire(slot.writer);  // V2
  if (writer == 0) return;
  records.begin(ARCTRACE_TYPE_TOTALS, writer, ticks);
  const uint64_t written = IpcAtomics::load_relaxed(slot.written) +
                           IpcAtomics::load_relaxed(slot.written_shared) -
                           IpcAtomics::load_relaxed(slot.written_before);
  arctrace_totals_body totals{.written = written, .lost = {}};
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    totals.lost[cause] = IpcAtomics::load_acquire(slot.lost[cause]);  // V4
  }
  // This is checked last: if no slot has changed hands, all values are of the one owner.
  if (!Recycle<IpcAtomics>::each_slot_has_one_owner(view)) {
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause)
      totals.lost[cause] = 0;
  }
  records.body(totals);
  records.body(
      arctrace_totals_owner{.process = IpcAtomics::load_relaxed(slot.process),
                            .pid = IpcAtomics::load_relaxed(slot.pid),
                            .tid = IpcAtomics::load_relaxed(slot.tid),
                            .reserved = 0,
                            .start_ticks = IpcAtomics::load_relaxed(slot.start_ticks)});
}

void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        uint64_t written, uint64_t lost_by_file) {
  records.begin(ARCTRACE_TYPE_TOTALS, ARCTRACE_WRITER_COLLECTOR, ticks);
  arctrace_totals_body totals{.written = written, .lost = {}};
  const std::vector<uint64_t> losses = session_losses(view);
  for (size_t cause = 0; cause < losses.size(); ++cause)
    totals.lost[cause] = losses[cause];
  totals.lost[ARCTRACE_LOST_FILE] += lost_by_file;
  records.body(totals);
  records.body(arctrace_totals_filtered{.filtered_out = session_filtered_out(view)});
  arctrace_control& control = view.control();
  records.begin(ARCTRACE_TYPE_COUNTS, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_counts_body{
      .processes = IpcAtomics::load_relaxed(control.process_next) - 1,
      .threads = IpcAtomics::load_relaxed(control.writer_next) - 1});
}

namespace {

// The rest of the line that begins with `key` of a status file in /proc; empty: none.
std::string status_value(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

// The number of a task in its own PID namespace, which is the last one; 0: it is gone.
uint32_t own_number(const std::string& directory) {
  const std::string numbers = status_value(directory + "/status", "NSpid:\t");
  uint32_t number = 0;
  return absl::SimpleAtoi(numbers.substr(numbers.rfind('\t') + 1), &number) ? number : 0;
}

// Adds a STACK as the thread's first record would have it, had a hook been there.
void add_stack(RecordBuilder& records, uint32_t writer,
               const JoinedThreads::Thread& thread) {
  const auto count = static_cast<uint32_t>(thread.waits_in.size());
  if (count == 0) return;
  records.begin(ARCTRACE_TYPE_STACK, writer, thread.waits_from_ticks);
  records.body(
      arctrace_stack_body{.depth = thread.is_whole ? count : count + 1, .count = count});
  records.text({reinterpret_cast<const char*>(thread.waits_in.data()),
                count * sizeof thread.waits_in[0]});
  // In place of a coroutine's number; and that the thread waits.
  constexpr uint32_t kBeganBefore[] = {0, ARCTRACE_STACK_WAITS};
  records.text({reinterpret_cast<const char*>(kBeganBefore), sizeof kBeganBefore});
}

}  // namespace

JoinedThreads read_joined_threads(pid_t pid, uint64_t ticks) {
  namespace fs = std::filesystem;
  const std::string process = absl::StrCat("/proc/", pid);
  JoinedThreads joined{.pid = own_number(process), .ticks = ticks};
  std::error_code error;
  fs::directory_iterator task(process + "/task", error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    JoinedThreads::Thread thread{.tid = own_number(task->path()), .name = "", .task = 0};
    if (!absl::SimpleAtoi(task->path().filename().native(), &thread.task)) continue;
    std::ifstream name(task->path() / "comm");
    if (thread.tid != 0 && std::getline(name, thread.name)) {
      joined.threads.push_back(std::move(thread));
    }
  }
  return joined;
}

void add_silent_threads(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        const JoinedThreads& joined) {
  uint32_t process = 0;
  std::map<uint32_t, uint32_t> known;  // by thread: its identity, if it wrote nothing
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    if (IpcAtomics::load_relaxed(slot.pid) != joined.pid) continue;
    process = IpcAtomics::load_relaxed(slot.process);
    const uint64_t written = IpcAtomics::load_relaxed(slot.written) +
                             IpcAtomics::load_relaxed(slot.written_shared) -
                             IpcAtomics::load_relaxed(slot.written_before);
    known[IpcAtomics::load_relaxed(slot.tid)] =
        written == 0 ? IpcAtomics::load_relaxed(slot.writer) : 0;
  }
  uint32_t& next = view.control().writer_next;
  for (const JoinedThreads::Thread& thread : joined.threads) {
    const auto found = known.find(thread.tid);
    if (found != known.end()) {
      // This thread is like the one that was borrowed to join the process.
      if (found->second != 0) add_stack(records, found->second, thread);
      continue;
    }
    if (process == 0 || IpcAtomics::load_relaxed(next) >= ARCTRACE_IDENTITIES_END) {
      continue;
    }
    const uint32_t writer = IpcAtomics::fetch_add_relaxed(next, uint32_t{1});
    records.begin(ARCTRACE_TYPE_THREAD, ARCTRACE_WRITER_COLLECTOR, ticks);
    records.body(
        arctrace_thread_body{.writer = writer,
                             .process = process,
                             .tid = thread.tid,
                             .name_size = static_cast<uint32_t>(thread.name.size()),
                             .start_ticks = joined.ticks});
    records.text(thread.name);
    add_stack(records, writer, thread);
  }
}

}  // namespace arctrace::recorder
