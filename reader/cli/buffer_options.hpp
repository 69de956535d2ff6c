// Options of the subcommands that make a buffer or take snapshots of one.
#pragma once

#include <CLI/CLI.hpp>

#include "src/collector/buffer.hpp"
#include "src/collector/flight_recorder.hpp"

namespace arctrace::cli {

void add_buffer_options(CLI::App& app, BufferOptions& buffer);
void add_snapshot_options(CLI::App& app, FlightOptions& flight);

}  // namespace arctrace::cli
