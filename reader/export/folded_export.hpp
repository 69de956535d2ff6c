// --to=folded: a line for each stack, "a;b;c 123", as scripts for flame graphs read it.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_folded_export(const ExportSettings& settings);

}  // namespace arctrace::reader
