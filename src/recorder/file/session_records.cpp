#include "src/recorder/file/session_records.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include "src/base/shared_atomics.hpp"
#include "src/recorder/buffer/session_totals.hpp"

namespace arctrace {
namespace {}  // namespace

void add_start(RecordBuilder& records, uint64_t ticks,
               const std::vector<std::string>& command_line, uint32_t detail) {
  utsname system{};
  uname(&system);
  std::string arguments;
  for (const std::string& argument : command_line) arguments += argument + '\0';
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

void add_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status) {
  records.begin(ARCTRACE_TYPE_CHILD_STATUS, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_child_status_body{.child_pid = pid, .status = wait_status});
}

void add_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer) {
  records.begin(ARCTRACE_TYPE_WRITER_END, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(arctrace_writer_end_body{.writer = writer, .how = ARCTRACE_WRITER_DIED});
}

void add_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks) {
  records.begin(ARCTRACE_TYPE_LOST, writer, ticks);
  records.body(arctrace_lost_body{
      .cause = cause, .flags = flags, .count = count, .since_ticks = since_ticks});
}

void add_totals(RecordBuilder& records, uint64_t ticks, arctrace_writer_slot& slot) {
  const uint32_t writer = IpcAtomics::load_relaxed(slot.writer);
  if (writer == 0) return;
  records.begin(ARCTRACE_TYPE_TOTALS, writer, ticks);
  const uint64_t written = IpcAtomics::load_relaxed(slot.written) +
                           IpcAtomics::load_relaxed(slot.written_shared) -
                           IpcAtomics::load_relaxed(slot.written_before);
  records.body(arctrace_totals_body{.written = written, .lost = {}});
}

void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        uint64_t lost_to_disk) {
  records.begin(ARCTRACE_TYPE_TOTALS, ARCTRACE_WRITER_COLLECTOR, ticks);
  arctrace_totals_body totals{.written = session_written(view), .lost = {}};
  const std::vector<uint64_t> losses = session_losses(view);
  for (size_t cause = 0; cause < losses.size(); ++cause)
    totals.lost[cause] = losses[cause];
  totals.lost[ARCTRACE_LOST_DISK] += lost_to_disk;
  records.body(totals);
}

}  // namespace arctrace
