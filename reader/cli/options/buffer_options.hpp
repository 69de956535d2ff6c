// Options of the subcommands that create a buffer, or take snapshots of one.
#pragma once

#include <cstdint>
#include <string>

#include "reader/cli/options/cli11.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"

namespace arctrace::cli {

// What is stored into must outlive `app`.
void add_buffer_size_option(CLI::App& app, BufferOptions& buffer);
// That, and the others.
void add_buffer_options(CLI::App& app, BufferOptions& buffer);
void add_pin_option(CLI::App& app, PinPolicy& pin);
void add_snapshot_options(CLI::App& app, FlightOptions& flight);

// --duration=TIME, above 0. `what`: the subject of the help's sentence, which ends then.
void add_duration_option(CLI::App& app, uint64_t& ns, const std::string& what);

}  // namespace arctrace::cli
