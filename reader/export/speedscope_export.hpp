// --to=speedscope: the JSON of www.speedscope.app, a time line for each thread.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_speedscope_export(const ExportSettings& settings);

}  // namespace arctrace::reader
