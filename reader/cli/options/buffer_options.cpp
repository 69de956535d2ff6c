// Options of the buffer, of snapshots, and of the records that the kernel writes.
#include <absl/time/time.h>
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "src/recorder/buffer/buffer_fit.hpp"
#include "src/recording/patterns/arg_spec.hpp"

namespace arctrace::cli {
namespace {

CLI::Option* add_time_option(CLI::App& app, const std::string& name, uint64_t& ns,
                             const std::string& what) {
  return app
      .add_option_function<std::string>(
          name,
          [&ns, name](const std::string& text) {
            const absl::StatusOr<int64_t> parsed = recording::parse_time_ns(text);
            if (!parsed.ok() || *parsed <= 0) {
              throw CLI::ValidationError(name,
                                         "\"" + text + "\" is not a time such as 10s");
            }
            ns = static_cast<uint64_t>(*parsed);
          },
          what)
      ->type_name("TIME");
}

}  // namespace

void add_buffer_size_option(CLI::App& app, recorder::BufferOptions& buffer) {
  add_size_option(
      app, "-b,--buffer-size",
      [&buffer](uint64_t bytes) {
        buffer.buffer_size = bytes;
        buffer.is_size_asked = true;
      },
      UINT64_MAX, "size of the buffer, in bytes or with k, M, G")
      ->default_str("64M, or less where memory is short");
}

void add_pin_option(CLI::App& app, recorder::PinPolicy& pin) {
  add_choice<recorder::PinPolicy>(
      app, "--pin", pin,
      {{"no", recorder::PinPolicy::kNo},
       {"auto", recorder::PinPolicy::kAuto},
       {"try", recorder::PinPolicy::kTry},
       {"require", recorder::PinPolicy::kRequire}},
      "lock the buffer in memory. auto: as much of it as "
      "RLIMIT_MEMLOCK permits, which arctrace info shows; try: with a "
      "warning if that is not all; require: all, or do not record")
      ->default_str(pin == recorder::PinPolicy::kNo ? "no" : "auto");
}

void add_buffer_options(CLI::App& app, recorder::BufferOptions& buffer) {
  add_buffer_size_option(app, buffer);
  app.add_option_function<std::string>(
         "--buffer-dir",
         [&buffer](const std::string& directory) {
           buffer.directory = std::filesystem::absolute(directory);
           buffer.is_directory_asked = true;
         },
         "the directory of the buffer's file, of a tmpfs; on a disk, the kernel writes "
         "the buffer out, and programs wait for that")
      ->check(not_empty())
      ->type_name("DIR")
      ->default_str(recorder::kBufferDirectory);
  add_size_option(
      app, "--block-size",
      [&buffer](uint64_t bytes) { buffer.block_size = static_cast<uint32_t>(bytes); },
      UINT32_MAX, "size of the blocks that the buffer is divided into, a multiple of 64")
      ->default_str("64k, or less, down to 8k, so that there are 64 blocks");
  app.add_option("--slots", buffer.slot_count,
                 "number of threads that can write at the same time")
      ->check(from_to(1, ARCTRACE_SLOT_COUNT_MAX))
      ->type_name("N")
      ->default_str("32 for each block, from 4096 to 32768");
  add_choice<arctrace_mode>(
      app, "--mode", buffer.mode,
      {{"drop", ARCTRACE_MODE_DROP},
       {"overwrite", ARCTRACE_MODE_OVERWRITE},
       {"stop", ARCTRACE_MODE_STOP}},
      "what happens when the buffer is full. drop: new records are lost, and counted, "
      "until the collector has made room; overwrite: the newest records are kept, and "
      "written at the end; stop: the oldest are kept, and collected at the end")
      ->default_str("drop");
  add_choice<arctrace_scope>(
      app, "--scope", buffer.scope,
      {{"adaptive", ARCTRACE_SCOPE_ADAPTIVE},
       {"thread", ARCTRACE_SCOPE_THREAD},
       {"shared", ARCTRACE_SCOPE_SHARED}},
      "thread: each thread writes to blocks of its own, which costs least; shared: all "
      "threads write to one chain of blocks, which needs least room; adaptive: a thread "
      "has blocks of its own while it writes much")
      ->default_str("adaptive");
  app.add_option("--high-water", buffer.high_water_percent,
                 "wake the collector when PERCENT of the blocks are used; 0: never")
      ->check(from_to(0, recorder::kHighWaterPercentMax))
      ->type_name("PERCENT")
      ->capture_default_str();
  add_pin_option(app, buffer.pin);
  app.add_flag_callback(
      "--huge-pages", [&buffer] { buffer.huge_pages = true; },
      "use huge pages, and warn if there are none for the buffer");
  app.add_flag_callback(
         "--no-huge-pages", [&buffer] { buffer.huge_pages = false; },
         "do not use huge pages")
      ->excludes("--huge-pages");
}

void add_snapshot_options(CLI::App& app, recorder::FlightOptions& flight) {
  app.add_option("--snapshots", flight.snapshots_kept.files,
                 "keep the newest N of FILE.1, FILE.2 ...; 0: all")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  add_size_option(
      app, "--size-limit", flight.snapshots_kept.bytes,
      "keep snapshots of no more than SIZE in all, except the newest. With "
      "--mode=drop, divide the recording into files of about SIZE in all: FILE is its "
      "end, FILE.1, FILE.2 ... are the parts before");
  add_time_option(app, "--fsync", flight.snapshots_kept.sync_ns,
                  "make the disk have the file at this interval, not only at its end; "
                  "what the disk refuses is an error then");
  add_choice<recorder::OnFull>(
      app, "--on-full", flight.snapshots_kept.on_full,
      {{"wait", recorder::OnFull::kWait},
       {"stop", recorder::OnFull::kStop},
       {"ring", recorder::OnFull::kRing}},
      "while the disk is full: wait: keep records in the buffer, until there is room; "
      "stop: end the file there; ring: with --size-limit, remove the oldest of FILE.1, "
      "FILE.2 ...")
      ->default_str("wait");
  add_time_option(app, "--snapshot-every", flight.every_ns,
                  "with --mode=overwrite, take a snapshot at this interval");
  app.add_flag("--snapshot-on-crash", flight.on_crash,
               "take a snapshot when a traced process ends without exit, for example "
               "by a signal");
}

void add_collector_options(CLI::App& app, recorder::CollectorThread& runs) {
  app.add_option(
         "--collector-cpu", runs.cpu,
         "the collector, which empties the buffer into the file, runs on this CPU "
         "alone, from 0")
      ->check(not_negative())
      ->type_name("CPU");
  app.add_option("--rt-priority", runs.rt_priority,
                 "the collector runs before all threads without a real-time priority, "
                 "with this one (SCHED_FIFO), so that less is lost on a busy machine; "
                 "needs root or ulimit -r")
      ->check(from_to(1, 99))
      ->type_name("N");
}

void add_clock_options(CLI::App& app, recording::RecordOptions& options) {
  add_choice<arctrace_stamps>(
      app, "--clock", options.buffer.stamps,
      {{"exact", ARCTRACE_STAMPS_EXACT},
       {"coarse", ARCTRACE_STAMPS_COARSE},
       {"order", ARCTRACE_STAMPS_ORDER}},
      "exact: each record reads the clock; coarse: it has the time that arctrace stored "
      "last, every 20us, which costs a call half as much; order: the same, every 1ms, "
      "for those who ask what was called, by whom, how often and in which order")
      ->default_str("exact");
  add_time_option(app, "--clock-resolution", options.buffer.resolution_ns,
                  "how often arctrace stores the time, at least 1us, with --clock=coarse "
                  "or --clock=order");
  app.add_option("--clock-cpu", options.clock_cpu,
                 "the CPU, from 0, which does nothing else than to store that time: for "
                 "a resolution of a few microseconds")
      ->check(not_negative())
      ->type_name("CPU");
}

std::string clock_problem(const recording::RecordOptions& options) {
  const recorder::BufferOptions& buffer = options.buffer;
  if (buffer.stamps == ARCTRACE_STAMPS_EXACT) {
    const char* const needs = buffer.resolution_ns != 0       ? "--clock-resolution"
                              : options.clock_cpu.has_value() ? "--clock-cpu"
                                                              : nullptr;
    if (needs == nullptr) return "";
    return absl::StrCat(needs, " needs --clock=coarse or --clock=order");
  }
  constexpr uint64_t kLeastNs = 1000, kMostNs = 1'000'000'000;
  if (buffer.resolution_ns != 0 &&
      (buffer.resolution_ns < kLeastNs || buffer.resolution_ns > kMostNs)) {
    return "--clock-resolution must be from 1us to 1s";
  }
  if (options.kernel.use != recording::KernelRecording::kNo ||
      options.kernel.events != 0) {
    return "records of the kernel have exact times, by which they would stand in wrong "
           "calls: --clock must be exact with them";
  }
  const bool is_order = buffer.stamps == ARCTRACE_STAMPS_ORDER;
  if (is_order && !options.filter.time.empty()) {
    return "-t needs the times of calls, which --clock=order does not record";
  }
  return "";
}

void complete_clock_options(recorder::BufferOptions& buffer) {
  constexpr uint64_t kCoarseNs = 20'000, kOrderNs = 1'000'000;
  if (buffer.stamps == ARCTRACE_STAMPS_EXACT || buffer.resolution_ns != 0) return;
  buffer.resolution_ns = buffer.stamps == ARCTRACE_STAMPS_COARSE ? kCoarseNs : kOrderNs;
}

void add_keep_option(CLI::App& app, uint64_t& ns) {
  add_time_option(
      app, "--keep", ns,
      "--mode=overwrite, with a buffer of 256M if -b does not say: the newest "
      "records are kept, of the last TIME if it holds so many, which a "
      "message at the end says");
}

void add_duration_option(CLI::App& app, uint64_t& ns, const std::string& what) {
  add_time_option(app, "--duration", ns, what + " ends after this time");
}

namespace {

using recording::KernelOptions;
using recording::KernelRecording;

// The word for interrupts, which may stand beside one of the others.
constexpr const char* kInterrupts = "irq";

const std::map<std::string, KernelRecording> kRecordings = {
    {"auto", KernelRecording::kAuto},
    {"bpf", KernelRecording::kBpf},
    {"no", KernelRecording::kNo},
    {"perf", KernelRecording::kPerf},
    {"require", KernelRecording::kRequire}};

struct EventOption {
  uint32_t event;  // enum arctrace_kernel_event
  const char* what;
};

constexpr std::array kEvents = {
    EventOption{ARCTRACE_KERNEL_SYSCALLS,
                "record system calls, which slows those of all processes a little"},
    EventOption{ARCTRACE_KERNEL_FAULTS, "record page faults"},
    EventOption{ARCTRACE_KERNEL_SIGNALS, "record the delivery of signals"},
    EventOption{ARCTRACE_KERNEL_CONTENTION, "record waits for locks of the kernel"},
    EventOption{ARCTRACE_KERNEL_BLOCK_IO,
                "record requests to block devices, and their end"}};

// Parses one of the words, "irq", or both with a comma between them.
void set_recording(const std::string& text, KernelOptions& options) {
  const std::string behind = std::string(",") + kInterrupts;
  std::string word = text;
  const bool has_interrupts = text == kInterrupts || text.ends_with(behind);
  options.events &= ~uint32_t{ARCTRACE_KERNEL_INTERRUPTS};
  if (has_interrupts) options.events |= ARCTRACE_KERNEL_INTERRUPTS;
  if (text == kInterrupts) {
    word.clear();
  } else if (has_interrupts && text != behind) {
    word.resize(text.size() - behind.size());
  }
  const auto use = kRecordings.find(word.empty() ? "auto" : word);
  if (use == kRecordings.end()) {
    throw CLI::ValidationError(
        "--kernel", "\"" + text + "\" is not auto, bpf, perf, require, no or irq");
  }
  options.use = use->second;
  if (!has_interrupts) return;
  if (options.use == KernelRecording::kNo || options.use == KernelRecording::kPerf) {
    throw CLI::ValidationError("--kernel",
                               "\"" + text + "\": interrupts are recorded by BPF alone");
  }
}

}  // namespace

void add_kernel_options(CLI::App& app, KernelOptions& options) {
  app.add_option_function<std::string>(
         "--kernel",
         [&options](const std::string& text) { set_recording(text, options); },
         "record dispatches, wake-ups, fork, exec and exit of the traced processes. "
         "bpf: by BPF, which needs privileges; perf: by perf events, without "
         "wake-ups; require: by either, or fail; auto: by either if possible; irq: "
         "as auto, and by BPF also the interrupts that come upon their threads, which "
         "bpf,irq and require,irq join with another one. Default: no; --kernel alone: "
         "auto")
      ->expected(0, 1)
      ->type_name("auto|bpf|perf|require|no|irq");
  for (const EventOption& event : kEvents) {
    app.add_flag_callback(
        recording::event_option(event.event),
        [&options, &event] {
          options.events |= event.event;
          if (options.use == KernelRecording::kNo) options.use = KernelRecording::kAuto;
        },
        std::string(event.what) + "; needs BPF");
  }
}

}  // namespace arctrace::cli
