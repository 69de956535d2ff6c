// The keys of `arctrace tui`.
#pragma once

#include "reader/ui/tables/trace_tables.hpp"

namespace arctrace::reader {

TableList help_tables();

}  // namespace arctrace::reader
