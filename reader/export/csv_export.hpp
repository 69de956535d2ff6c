// --to=csv: a line for each call and event, for spreadsheets and data frames.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_csv_export(const ExportSettings& settings);

}  // namespace arctrace::reader
