// --to=pprof: the gzipped protobuf of go tool pprof and its relatives.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_pprof_export(const ExportSettings& settings);

}  // namespace arctrace::reader
