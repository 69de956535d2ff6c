#include "reader/cli/options/buffer_options.hpp"

#include <absl/time/time.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "reader/cli/options/options.hpp"
#include "src/recorder/buffer/buffer_fit.hpp"
#include "src/recording/patterns/amounts.hpp"

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

void add_buffer_size_option(CLI::App& app, BufferOptions& buffer) {
  add_size_option(
      app, "-b,--buffer-size",
      [&buffer](uint64_t bytes) {
        buffer.buffer_size = bytes;
        buffer.is_size_asked = true;
      },
      UINT64_MAX, "size of the buffer, in bytes or with k, M, G")
      ->default_str("64M, or less where memory is short");
}

void add_pin_option(CLI::App& app, PinPolicy& pin) {
  add_choice<PinPolicy>(app, "--pin", pin,
                        {{"no", PinPolicy::kNo},
                         {"auto", PinPolicy::kAuto},
                         {"try", PinPolicy::kTry},
                         {"require", PinPolicy::kRequire}},
                        "lock the buffer in memory. auto: as much of it as "
                        "RLIMIT_MEMLOCK permits, which arctrace info shows; try: with a "
                        "warning if that is not all; require: all, or do not record")
      ->default_str(pin == PinPolicy::kNo ? "no" : "auto");
}

void add_buffer_options(CLI::App& app, BufferOptions& buffer) {
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
      ->default_str(kBufferDirectory);
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
      ->check(from_to(0, kHighWaterPercentMax))
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

void add_snapshot_options(CLI::App& app, FlightOptions& flight) {
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
  add_choice<OnFull>(
      app, "--on-full", flight.snapshots_kept.on_full,
      {{"wait", OnFull::kWait}, {"stop", OnFull::kStop}, {"ring", OnFull::kRing}},
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

void add_duration_option(CLI::App& app, uint64_t& ns, const std::string& what) {
  add_time_option(app, "--duration", ns, what + " ends after this time");
}

}  // namespace arctrace::cli
