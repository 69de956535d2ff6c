#include "reader/ui/server/page_server.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/ui/page/page_files.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kLanesMax = 400;
constexpr size_t kSearchMin = 2;
// The most pixels of the time line: no screen has more.
constexpr uint64_t kPixelsMax = 20'000;

// The values of a request, and what is wrong with them.
class Query {
 public:
  explicit Query(const HttpRequest& request) : request_(request) {}

  bool has(const char* name) const { return request_.query.contains(name); }
  std::string text(const char* name) const {
    const auto found = request_.query.find(name);
    return found == request_.query.end() ? "" : found->second;
  }
  template <class Number>
  Number number(const char* name) {
    Number number{};
    if (!absl::SimpleAtoi(text(name), &number)) fail(name);
    return number;
  }
  // Reads `from` and `until`, which is later.
  Times times() {
    const Times times{number<int64_t>("from"), number<int64_t>("until")};
    int64_t width = 0;
    if (problem_.empty() &&
        (times.from_ns >= times.until_ns ||
         __builtin_sub_overflow(times.until_ns, times.from_ns, &width))) {
      problem_ = "until is not after from";
    }
    return times;
  }
  std::optional<Times> optional_times() {
    if (!has("from") && !has("until")) return std::nullopt;
    return times();
  }
  std::vector<uint32_t> lanes() {
    std::vector<uint32_t> lanes;
    const std::vector<std::string> pieces =
        absl::StrSplit(text("lanes"), ',', absl::SkipEmpty());
    for (const std::string& piece : pieces) {
      uint32_t lane = 0;
      if (!absl::SimpleAtoi(piece, &lane) || lanes.size() == kLanesMax) fail("lanes");
      if (!problem_.empty()) break;
      lanes.push_back(lane);
    }
    return lanes;
  }
  Grouping grouping() {
    const std::string name = text("per");
    if (name == "thread") return Grouping::kThread;
    if (name == "process") return Grouping::kProcess;
    if (name != "all") fail("per");
    return Grouping::kAll;
  }
  void fail(const char* name) {
    if (problem_.empty()) problem_ = absl::StrCat(name, " is missing or not valid");
  }
  const std::string& problem() const { return problem_; }

 private:
  const HttpRequest& request_;
  std::string problem_;
};

HttpAnswer refusal(unsigned status, const std::string& why) {
  return {status, "text/plain", why + "\n"};
}

HttpAnswer answer_of(absl::StatusOr<std::string> text) {
  if (text.ok()) return {200, "application/json", *std::move(text)};
  const unsigned status = absl::IsNotFound(text.status())      ? 404
                          : absl::IsUnavailable(text.status()) ? 503
                                                               : 500;
  return refusal(status, std::string(text.status().message()));
}

absl::StatusOr<std::string> timeline(TraceModel& model, Query& query) {
  const Times times = query.times();
  auto pixel_ns = query.number<uint64_t>("pixel");
  const std::vector<uint32_t> lanes = query.lanes();
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  const auto width_ns = static_cast<uint64_t>(times.until_ns - times.from_ns);
  pixel_ns = std::max({pixel_ns, width_ns / kPixelsMax, uint64_t{1}});
  return model.timeline(times, pixel_ns, lanes, query.text("exact") == "1");
}

absl::StatusOr<std::string> call(TraceModel& model, Query& query) {
  const auto lane = query.number<uint32_t>("lane");
  const auto level = query.number<uint32_t>("level");
  const auto start_ns = query.number<int64_t>("start");
  const auto stop_ns = query.number<int64_t>("stop");
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  return model.call(lane, level, start_ns, stop_ns);
}

absl::StatusOr<std::string> args(TraceModel& model, Query& query) {
  const auto lane = query.number<uint32_t>("lane");
  const auto level = query.number<uint32_t>("level");
  const auto start_ns = query.number<int64_t>("start");
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  return model.args(lane, level, start_ns);
}

absl::StatusOr<std::string> source(TraceModel& model, Query& query) {
  const auto function = query.number<FunctionId>("function");
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  return model.source(function);
}

absl::StatusOr<std::string> search(TraceModel& model, Query& query) {
  const std::string text = query.text("text");
  if (text.size() < kSearchMin) query.fail("text");
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  return model.search(text);
}

absl::StatusOr<std::string> names(TraceModel& model, Query& query) {
  const auto function = query.number<size_t>("function");
  const auto lane = query.number<size_t>("lane");
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  return model.names(function, lane);
}

// Returns nothing if there is no such name.
std::optional<absl::StatusOr<std::string>> api(TraceModel& model, const std::string& name,
                                               Query& query) {
  if (name == "progress") return model.progress();
  if (name == "summary") return model.summary();
  if (name == "names") return names(model, query);
  if (name == "timeline") return timeline(model, query);
  if (name == "call") return call(model, query);
  if (name == "args") return args(model, query);
  if (name == "source") return source(model, query);
  if (name == "search") return search(model, query);
  constexpr std::string_view kOfTimes[] = {"totals",  "flame",         "locks",
                                           "slowest", "critical-path", "processes"};
  if (std::find(std::begin(kOfTimes), std::end(kOfTimes), name) == std::end(kOfTimes)) {
    return std::nullopt;
  }
  const std::optional<Times> given = query.optional_times();
  const Grouping grouping = name == "flame" ? query.grouping() : Grouping::kAll;
  const auto function =
      name == "slowest" ? query.number<FunctionId>("function") : FunctionId{};
  if (!query.problem().empty()) return absl::InvalidArgumentError("");
  const Times* times = given.has_value() ? &*given : nullptr;
  if (name == "totals") return model.totals(times);
  if (name == "flame") return model.flame(times, grouping);
  if (name == "slowest") return model.slowest(function, times);
  if (name == "processes") return model.processes(times);
  if (name == "critical-path") return model.critical_path(times);
  return model.locks(times);
}

}  // namespace

HttpAnswer answer_of_page(TraceModel& model, const HttpRequest& request) {
  const auto file = [](const char* type, std::string_view text) {
    return HttpAnswer{200, absl::StrCat(type, "; charset=utf-8"), std::string(text)};
  };
  if (request.path == "/") return file("text/html", page_html());
  if (request.path == "/page.css") return file("text/css", page_css());
  if (request.path == "/page.js") return file("text/javascript", page_script());
  constexpr std::string_view kApi = "/api/";
  if (request.path.starts_with(kApi)) {
    Query query(request);
    model.take_whole();
    if (query.has("whole") && (query.text("whole") == "1") != model.is_whole()) {
      return refusal(409, "the whole trace has been read since this page was made");
    }
    std::optional<absl::StatusOr<std::string>> answer =
        api(model, request.path.substr(kApi.size()), query);
    if (!query.problem().empty()) return refusal(400, query.problem());
    if (answer.has_value()) return answer_of(*std::move(answer));
  }
  return refusal(404, "there is nothing of this name");
}

}  // namespace arctrace::reader
