// --to=perfetto: the protobuf of ui.perfetto.dev and its trace processor.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_perfetto_export(const ExportSettings& settings);

}  // namespace arctrace::reader
