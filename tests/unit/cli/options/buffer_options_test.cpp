// The options of `record` and `create` that size and shape the buffer.
#include <doctest/doctest.h>

#include "reader/cli/options/record_options.hpp"
#include "src/recording/output_file.hpp"
#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

struct Parsed {
  explicit Parsed(std::vector<std::string> arguments) {
    CLI::App app;
    add_buffer_options(app, buffer);
    add_snapshot_options(app, flight);
    add_duration_option(app, duration_ns, "recording");
    error = testing::parse_error(app, std::move(arguments));
  }
  recorder::BufferOptions buffer;
  recorder::FlightOptions flight;
  uint64_t duration_ns = 0;
  std::string error;
};

TEST_CASE("buffer options: what is not given stays") {
  const Parsed parsed({});
  const recorder::BufferOptions defaults;
  CHECK(parsed.error == "");
  CHECK(parsed.buffer.buffer_size == defaults.buffer_size);
  CHECK(parsed.buffer.block_size == defaults.block_size);
  CHECK(parsed.buffer.mode == ARCTRACE_MODE_DROP);
  CHECK(parsed.buffer.pin == recorder::PinPolicy::kAuto);
  CHECK_FALSE(parsed.buffer.is_size_asked);
  CHECK_FALSE(parsed.buffer.huge_pages.has_value());
  CHECK(parsed.flight.every_ns == 0);
  CHECK(parsed.duration_ns == 0);
}

TEST_CASE("buffer options: geometry") {
  const Parsed parsed({"-b", "16M", "--block-size=4k", "--slots", "65535", "--high-water",
                       "93", "--mode=STOP", "--scope=shared", "--pin", "require"});
  CHECK(parsed.error == "");
  CHECK(parsed.buffer.buffer_size == 16u << 20);
  CHECK(parsed.buffer.is_size_asked);
  CHECK(parsed.buffer.block_size == 4096);
  CHECK(parsed.buffer.slot_count == 65535);
  CHECK(parsed.buffer.high_water_percent == 93);
  CHECK(parsed.buffer.mode == ARCTRACE_MODE_STOP);
  CHECK(parsed.buffer.scope == ARCTRACE_SCOPE_SHARED);
  CHECK(parsed.buffer.pin == recorder::PinPolicy::kRequire);
  CHECK(Parsed({"--mode=overwrite"}).buffer.mode == ARCTRACE_MODE_OVERWRITE);
  CHECK(Parsed({"--scope=thread"}).buffer.scope == ARCTRACE_SCOPE_THREAD);
  CHECK(Parsed({"--pin=no"}).buffer.pin == recorder::PinPolicy::kNo);
  CHECK(Parsed({"--block-size=4G"}).error != "");
  CHECK(Parsed({"--slots=1"}).buffer.slot_count == 1);
  CHECK(Parsed({"--buffer-dir=/run/x"}).buffer.directory == "/run/x");
  CHECK(Parsed({"--buffer-dir", "x"}).buffer.directory ==
        std::filesystem::current_path() / "x");
  CHECK(Parsed({"--buffer-dir="}).error != "");
}

TEST_CASE("buffer options: bad values") {
  CHECK(Parsed({"-b", "x"}).error ==
        "--buffer-size: \"x\" is not a size such as 64k or 1.5G");
  CHECK(Parsed({"--block-size", "4G"}).error == "--block-size: \"4G\" is too large");
  CHECK(Parsed({"--slots", "0"}).error ==
        "--slots: \"0\" is not a number from 1 to 65535");
  CHECK(Parsed({"--slots", "65536"}).error ==
        "--slots: \"65536\" is not a number from 1 to 65535");
  CHECK(Parsed({"--high-water", "94"}).error ==
        "--high-water: \"94\" is not a number from 0 to 93");
  CHECK(Parsed({"--high-water", "-1"}).error ==
        "--high-water: \"-1\" is not a number from 0 to 93");
  CHECK(Parsed({"--mode", "drops"}).error ==
        "--mode: \"drops\" is not drop, overwrite or stop; did you mean \"drop\"?");
  CHECK(Parsed({"--pin", "yes"}).error ==
        "--pin: \"yes\" is not no, auto, try or require");
}

TEST_CASE("buffer options: huge pages are asked for or refused, not both") {
  CHECK(Parsed({"--huge-pages"}).buffer.huge_pages == true);
  CHECK(Parsed({"--no-huge-pages"}).buffer.huge_pages == false);
  CHECK(Parsed({"--huge-pages", "--no-huge-pages"}).error != "");
}

TEST_CASE("snapshots") {
  const Parsed parsed({"--snapshots", "0", "--size-limit", "1G", "--snapshot-every",
                       "1.5s", "--snapshot-on-crash", "--duration", "10ms"});
  CHECK(parsed.error == "");
  CHECK(parsed.flight.snapshots_kept.files == 0);
  CHECK(parsed.flight.snapshots_kept.bytes == uint64_t{1} << 30);
  CHECK(parsed.flight.every_ns == 1'500'000'000);
  CHECK(parsed.flight.on_crash);
  CHECK(parsed.duration_ns == 10'000'000);
  CHECK(Parsed({"--snapshots", "-1"}).error == "--snapshots: \"-1\" is negative");
  for (const char* wrong : {"0", "-1s", "5", "", "x"}) {
    CAPTURE(std::string(wrong));
    const std::string what = "\"" + std::string(wrong) + "\" is not a time such as 10s";
    CHECK(Parsed({"--snapshot-every", wrong}).error == "--snapshot-every: " + what);
    CHECK(Parsed({"--duration", wrong}).error == "--duration: " + what);
  }
}

TEST_CASE("a size limit cuts recordings, not those of a flight recorder") {
  recorder::FileLimits limits;
  CHECK_FALSE(recording::cuts_files(ARCTRACE_MODE_DROP, limits));
  limits.bytes = 1;
  CHECK(recording::cuts_files(ARCTRACE_MODE_DROP, limits));
  CHECK(recording::cuts_files(ARCTRACE_MODE_STOP, limits));
  CHECK_FALSE(recording::cuts_files(ARCTRACE_MODE_OVERWRITE, limits));
}

}  // namespace
}  // namespace arctrace::cli
