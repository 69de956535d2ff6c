// --to=callgrind: the text format of callgrind_annotate and KCachegrind.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_callgrind_export(const ExportSettings& settings);

}  // namespace arctrace::reader
