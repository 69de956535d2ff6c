// The requests of the page of `view` to its server.
#pragma once

#include "reader/ui/model/trace_model.hpp"
#include "reader/ui/server/http_server.hpp"

namespace arctrace::reader {

// Answers "/", "/page.css", "/page.js", and below "/api/" the functions of TraceModel:
// progress, summary, names, timeline, totals, flame, locks, critical-path, call, source,
// search. A value that is missing, no number or out of range is 400. `whole` says whether
// the page that asks has the numbers of a whole trace: if it is wrong, 409. 503: not
// known yet.
HttpAnswer answer_of_page(TraceModel& model, const HttpRequest& request);

}  // namespace arctrace::reader
