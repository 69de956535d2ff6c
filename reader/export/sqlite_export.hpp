// export --to=sqlite: a database of calls, paths, threads, scheduling and events
// (docs/guide/sqlite.md).
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_sqlite_export(const ExportSettings& settings);

}  // namespace arctrace::reader
