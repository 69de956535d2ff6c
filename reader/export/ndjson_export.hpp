// --to=ndjson: a JSON object a line for each call and event.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_ndjson_export(const ExportSettings& settings);

}  // namespace arctrace::reader
