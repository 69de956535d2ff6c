// Makes buffers in the kernel's memory or in shared memory, with the writers of the
// kernel's records.
#include "src/recording/recording_buffer.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "reader/render/session_text.hpp"
#include "reader/render/shell_text.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/recorder/buffer/buffer_fit.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recording/events.hpp"

namespace arctrace::recording {

absl::StatusOr<KernelPart> load_kernel_part(const recorder::Buffer& buffer,
                                            uint32_t wanted,
                                            recorder::KernelRequests::Processes processes,
                                            Events& events) {
  absl::StatusOr<recorder::KernelWriter> writer =
      recorder::KernelWriter::attach(buffer, wanted);
  if (!writer.ok()) return writer.status();
  KernelPart part;
  part.writer = std::make_unique<recorder::KernelWriter>(*std::move(writer));
  part.requests = std::make_unique<recorder::KernelRequests>(
      buffer.view(), *part.writer, wanted, processes,
      [&events](const std::string& line) { events.warn(line); });
  return part;
}

namespace {

// Warns of buffers in kernel memory to which no process writes and that no recorder will
// remove, other than those of named sessions. They are not removed here, because the user
// may want their records.
void warn_of_abandoned_buffers(Events& events) {
  size_t count = 0;
  std::string example;
  for (const recorder::FoundSession& session : recorder::find_sessions()) {
    if (session.name != session.path || !is_pinned_map(session.path.c_str())) continue;
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::open(session.path, BufferAccess::kRead);
    if (!buffer.ok()) continue;
    const BufferView& view = buffer->view();
    if (is_live(IpcAtomics::load_acquire(view.control().collector_lock)) ||
        !recorder::living_processes(view).empty()) {
      continue;
    }
    ++count;
    example = session.path;
  }
  if (count == 0) return;
  const std::string from = reader::shell_word(example);
  events.warn(absl::StrCat(
      reader::count_text(count, "buffer"),
      " in kernel memory left behind by killed recorders: run arctrace recover ",
      "-o recovered.data ", from, " && arctrace destroy ", from));
}

absl::StatusOr<recorder::Buffer> create_fitting(recorder::BufferOptions options,
                                                Events& events) {
  if (absl::Status status = fit(options, events); !status.ok()) return status;
  return recorder::Buffer::create(options);
}

// The message of an error says which records are not possible, and why.
absl::StatusOr<RecordingBuffer> make_for_bpf(recorder::BufferOptions buffer,
                                             uint32_t wanted, Events& events) {
  if (const std::string obstacle = recorder::kernel_writer_obstacle();
      !obstacle.empty()) {
    return absl::FailedPreconditionError(obstacle);
  }
  if (absl::Status planned = plan_for_kernel(buffer, events); !planned.ok())
    return planned;
  warn_of_abandoned_buffers(events);
  absl::StatusOr<recorder::Buffer> made = recorder::Buffer::create(buffer);
  if (!made.ok()) return made.status();
  absl::StatusOr<KernelPart> part = load_kernel_part(
      *made, wanted, recorder::KernelRequests::Processes::kChosen, events);
  if (!part.ok()) return part.status();
  part->writer->trace_children(static_cast<uint32_t>(getpid()), true);
  return RecordingBuffer{*std::move(made), *std::move(part)};
}

absl::StatusOr<RecordingBuffer> make_for_perf(recorder::BufferOptions buffer,
                                              std::vector<recorder::PerfRing> rings,
                                              Events& events) {
  const absl::StatusOr<uint32_t> cpus = recorder::possible_cpus();
  if (!cpus.ok()) return cpus.status();
  buffer.cpu_count = *cpus;
  buffer.features |= ARCTRACE_FEATURE_PERF;
  absl::StatusOr<recorder::Buffer> made = create_fitting(buffer, events);
  if (!made.ok()) return made.status();
  RecordingBuffer recording{*std::move(made)};
  recording.perf =
      std::make_unique<recorder::PerfWriter>(recording.buffer.view(), std::move(rings));
  return recording;
}

absl::StatusOr<RecordingBuffer> make_without(const recorder::BufferOptions& buffer,
                                             Events& events) {
  absl::StatusOr<recorder::Buffer> made = create_fitting(buffer, events);
  if (!made.ok()) return made.status();
  return RecordingBuffer{*std::move(made)};
}

const char* option_of(KernelRecording use) {
  switch (use) {
    case KernelRecording::kBpf:
      return "--kernel=bpf: ";
    case KernelRecording::kPerf:
      return "--kernel=perf: ";
    default:
      return "--kernel=require: ";
  }
}

}  // namespace

absl::Status fit(recorder::BufferOptions& buffer, Events& events) {
  const absl::StatusOr<recorder::BufferFit> fitted =
      recorder::fit_to_memory(buffer, recorder::find_memory_sources(buffer));
  if (!fitted.ok()) return fitted.status();
  if (!fitted->size.empty()) events.tell(fitted->size);
  if (!fitted->warning.empty()) events.warn(fitted->warning);
  return absl::OkStatus();
}

absl::Status plan_for_kernel(recorder::BufferOptions& buffer, Events& events) {
  const absl::StatusOr<uint32_t> cpus = recorder::possible_cpus();
  if (!cpus.ok()) return cpus.status();
  buffer.in_kernel = true;
  buffer.cpu_count = *cpus;
  if (absl::Status status = fit(buffer, events); !status.ok()) return status;
  const auto online = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const uint64_t least = recorder::least_kernel_buffer(online);
  if (buffer.mode != ARCTRACE_MODE_STOP && buffer.buffer_size < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a buffer of ", reader::bytes_text(buffer.buffer_size),
        " is too small for the kernel's records of ", reader::count_text(online, "CPU"),
        ": -b must be at least ", least >> 10, "k, or --mode stop"));
  }
  return absl::OkStatus();
}

void RecordingBuffer::end_tracing_children() {
  if (kernel.writer == nullptr) return;
  kernel.writer->trace_children(static_cast<uint32_t>(getpid()), false);
}

absl::StatusOr<RecordingBuffer> make_recording_buffer(
    const recorder::BufferOptions& buffer, const KernelOptions& kernel, Events& events) {
  const auto refuse = [&](const std::string& why) {
    return absl::FailedPreconditionError(absl::StrCat(option_of(kernel.use), why));
  };
  if (kernel.use == KernelRecording::kNo) return make_without(buffer, events);
  const std::string wanted = event_options(kernel.events);
  std::string why_not_bpf;
  if (kernel.use != KernelRecording::kPerf) {
    absl::StatusOr<RecordingBuffer> made = make_for_bpf(buffer, kernel.events, events);
    if (made.ok()) return made;
    if (absl::IsInvalidArgument(made.status())) return made.status();
    why_not_bpf = std::string(made.status().message());
    if (kernel.use == KernelRecording::kBpf) return refuse(why_not_bpf);
    if (kernel.use == KernelRecording::kRequire && !wanted.empty()) {
      return refuse(absl::StrCat(wanted, ": only by BPF, and ", why_not_bpf));
    }
  }
  absl::StatusOr<std::vector<recorder::PerfRing>> rings = recorder::open_perf_rings();
  if (rings.ok()) {
    if (kernel.use != KernelRecording::kPerf) {
      events.warn(absl::StrCat("recording the kernel by perf events, without wake-ups",
                               wanted.empty() ? "" : ", ", wanted, ": ", why_not_bpf));
    } else if (!wanted.empty()) {
      events.warn(
          absl::StrCat("--kernel=perf: recording without ", wanted, ", which need BPF"));
    }
    return make_for_perf(buffer, *std::move(rings), events);
  }
  const std::string why = absl::StrCat(why_not_bpf, why_not_bpf.empty() ? "" : "; ",
                                       std::string(rings.status().message()));
  if (kernel.use != KernelRecording::kAuto) return refuse(why);
  events.warn(absl::StrCat("recording without the kernel: ", why));
  return make_without(buffer, events);
}

}  // namespace arctrace::recording
