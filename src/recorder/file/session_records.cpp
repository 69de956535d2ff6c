#include "src/recorder/file/session_records.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/enabled.hpp"
#include "src/protocol/recycle.hpp"
#include "src/recorder/buffer/session_totals.hpp"

namespace arctrace {
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

MomentsSeen add_moments(RecordBuilder& records, const BufferView& view,
                        MomentsSeen seen) {
  return {add_gate_changes(records, view, seen.gate_changes),
          for_each_moment_untrusted(
              execs(view), seen.execs, [&](uint64_t ticks, uint32_t value) {
                const ExecMoment exec = ExecMoment::unpack(value);
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
  // Looked at last: if no slot has changed hands, what was read was the one owner's.
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

}  // namespace arctrace
