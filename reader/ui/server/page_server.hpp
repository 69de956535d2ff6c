// What the page of `view` asks its server for.
#pragma once

#include "reader/ui/model/trace_model.hpp"
#include "reader/ui/server/http_server.hpp"

namespace arctrace::reader {

// Answers "/", "/page.css", "/page.js", and below "/api/" what TraceModel has: summary,
// timeline, totals, flame, locks, call, search. A value that is missing, no number or out
// of range is 400.
HttpAnswer answer_of_page(TraceModel& model, const HttpRequest& request);

}  // namespace arctrace::reader
