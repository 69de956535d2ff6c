// --to=chrome: the JSON of Chrome's trace viewer, which Perfetto and speedscope read too.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

std::unique_ptr<Exporter> make_chrome_export(const ExportSettings& settings);

}  // namespace arctrace::reader
