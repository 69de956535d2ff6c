#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reader/export/export_formats.hpp"
#include "reader/export/gzip_writer.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/streams/critical_path.hpp"
#include "reader/streams/schedule_log.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_lists.hpp"
#include "reader/ui/model/page_parts.hpp"
#include "reader/ui/model/page_summary.hpp"
#include "reader/ui/model/page_totals.hpp"
#include "reader/ui/page/page_files.hpp"

namespace arctrace::reader {
namespace {

// The number of items that fit, as a rule. While the file is too large, half of them are
// left out.
constexpr size_t kItemsAtFirst = 400'000;
constexpr size_t kItemsAtLeast = 1'000;
constexpr size_t kNodesMax = 8'000;
constexpr size_t kSlowestMax = 20'000;  // calls, of all functions

// The file is its own site: nothing is loaded, and no script runs but the page's.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "script-src 'nonce-arctrace'; style-src 'nonce-arctrace'; img-src data:; "
    "base-uri 'none'; form-action 'none'\">\n";

class HtmlExport : public Exporter {
 public:
  explicit HtmlExport(const ExportSettings& settings)
      : settings_(settings),
        parts_(*settings.definitions, 2 * kItemsAtFirst, settings.exact),
        gaps_(*settings.definitions) {}

  ScheduleListener* survey_listener() override { return &log_; }
  absl::Status finish_survey(const Replay& replay) override {
    const std::optional<PathEnd> end = whole_stretch(log_, replay);
    if (end.has_value()) parts_.set_path(critical_path(log_, replay, *end));
    return log_.status();
  }
  bool shows_costs() const override { return true; }
  ReplayListener* call_listener() override { return &parts_; }
  ScheduleListener* schedule_listener() override { return &parts_; }
  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
    parts_.begin(replay, settings_.session);
  }
  void gap(const Gap& gap) override { gaps_.add(gap); }

  absl::Status finish() override {
    parts_.finish();
    const size_t page = page_html().size() + page_css().size() + page_script().size();
    size_t items = kItemsAtFirst;
    absl::StatusOr<std::string> data = packed(items);
    while (data.ok() && page + data->size() > kHtmlBytesMax && items > kItemsAtLeast) {
      items = std::min(items, parts_.timeline().rows().items()) / 2;
      data = packed(items);
    }
    if (!data.ok()) return data.status();
    write_page(*data);
    return absl::OkStatus();
  }

 private:
  // The page's data as the text of an element.
  absl::StatusOr<std::string> packed(size_t items) {
    parts_.timeline().rows().coarsen_to(items);
    std::string bytes;
    const WriteText append = [&bytes](std::string_view text) {
      bytes += text;
      return true;
    };
    GzipWriter gzip(append);
    JsonWriter json([&gzip](std::string_view text) { return gzip.add(text); });
    json.begin_object();
    absl::Status status = write_data(json);
    json.end();
    json.finish();
    gzip.finish();
    if (!status.ok()) return status;
    return absl::Base64Escape(bytes);
  }

  absl::Status write_data(JsonWriter& json) {
    const PageFacts facts{*replay_, parts_, settings_.session, settings_.summary, &gaps_};
    write_facts_json(facts, json);
    PageSummary(facts).write_crash_json(json);
    write_lanes_json(facts, json);
    json.key("functions").begin_array();
    write_names_json(replay_->resolver(), 0, json);
    json.end();
    write_totals_json(facts, {}, json);
    json.key("flames").begin_object();
    for (const auto& [name, grouping] :
         {std::pair("all", Grouping::kAll), std::pair("process", Grouping::kProcess),
          std::pair("thread", Grouping::kThread)}) {
      json.key(name).begin_object();
      write_flame_json(facts, grouping, {}, kNodesMax, json);
      json.end();
    }
    json.end();
    write_timeline(json);
    json.member("left_out", left_out());
    const auto number = [this](const Lane& like) {
      return parts_.timeline().number_of(like);
    };
    write_processes_json(*replay_, number, json);
    write_slowest(number, json);
    if (has_wake_ups(facts)) {
      json.key("critical").begin_object();
      absl::Status status = parts_.critical().write_json(*replay_, number, json);
      json.end();
      if (!status.ok()) return status;
    }
    return parts_.write_locks_json(*replay_, json);
  }

  // Writes slowest: the slowest calls of each function, by its number.
  void write_slowest(LaneNumber number, JsonWriter& json) {
    const SlowestOfEach& slowest = parts_.slowest();
    const size_t functions = std::max<size_t>(slowest.function_count(), 1);
    const size_t limit =
        std::clamp<size_t>(kSlowestMax / functions, 1, SlowestOfEach::kMax);
    json.key("slowest").begin_array();
    for (FunctionId id = 0; id < slowest.function_count(); ++id) {
      json.begin_array();
      write_slowest_json(slowest.of(id, limit), number, json);
      json.end();
    }
    json.end();
  }

  void write_timeline(JsonWriter& json) {
    const Timeline& timeline = parts_.timeline();
    const Times times = times_of(*replay_);
    const uint64_t grain_ns = std::max<uint64_t>(timeline.rows().grain_ns(), 1);
    json.key("timeline").begin_object();
    json.member("from_ns", times.from_ns);
    json.member("until_ns", times.until_ns);
    json.member("pixel_ns", grain_ns);
    json.member("is_exact", timeline.rows().grain_ns() == 0);
    json.key("lanes").begin_array();
    for (size_t i = 0; i < timeline.lanes().size(); ++i) {
      json.begin_array();
      json.value(i);
      write_rows_json(timeline, timeline.lanes()[i], times.from_ns, INT64_MAX, grain_ns,
                      json);
      json.end();
    }
    json.end();
    json.end();
  }

  std::string left_out() const {
    const uint64_t grain_ns = parts_.timeline().rows().grain_ns();
    const std::string rest =
        "This file is for looking at without arctrace. Arguments, sources, and tables of "
        "a part of the time are in: arctrace view FILE";
    if (grain_ns == 0) return "Every call is in the time line. " + rest;
    std::string text =
        absl::StrCat("In the time line calls of ", duration_text(grain_ns),
                     " or more are exact, shorter ones are drawn by how dense they are.");
    append_exact(ExactFor::kRange, parts_.exact().has_ranges(),
                 "of the ranges that were asked for", text);
    append_exact(ExactFor::kCriticalPath, parts_.exact().has_path(),
                 "of the critical path", text);
    return absl::StrCat(text,
                        " A range has all of its calls with: arctrace export --to=html "
                        "--exact START~STOP. ",
                        rest);
  }

  void append_exact(ExactFor what, bool is_any, std::string_view of,
                    std::string& text) const {
    if (!is_any) return;
    const uint64_t least_ns = parts_.timeline().rows().grain_ns(what);
    if (least_ns == 0) {
      absl::StrAppend(&text, " Every call ", std::string(of), " is exact.");
    } else {
      absl::StrAppend(&text, " Of the calls ", std::string(of), ", those of ",
                      duration_text(least_ns), " or more are exact.");
    }
  }

  void write_page(const std::string& data) {
    std::string html(page_html());
    const auto replace = [&html](std::string_view text, const std::string& by) {
      html.replace(html.find(text), text.size(), by);
    };
    replace("<meta charset=\"utf-8\">\n",
            "<meta charset=\"utf-8\">\n" + std::string(kPolicy));
    replace("<link rel=\"stylesheet\" href=\"page.css\">",
            "<style nonce=\"arctrace\">\n" + std::string(page_css()) + "</style>");
    constexpr std::string_view kScript = "<script src=\"page.js\"></script>";
    const size_t at = html.find(kScript);
    (*write_)(std::string_view(html).substr(0, at));
    (*write_)("<script type=\"application/octet-stream\" id=\"data\">");
    for (size_t from = 0; from < data.size(); from += kExportPiece) {
      if (!(*write_)(std::string_view(data).substr(from, kExportPiece))) return;
    }
    (*write_)("</script>\n<script nonce=\"arctrace\">\n");
    (*write_)(page_script());
    (*write_)("</script>");
    (*write_)(std::string_view(html).substr(at + kScript.size()));
  }

  const ExportSettings settings_;
  ScheduleLog log_;  // of the survey
  PageParts parts_;
  GapList gaps_;
  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
};

}  // namespace

std::unique_ptr<Exporter> make_html_export(const ExportSettings& settings) {
  return std::make_unique<HtmlExport>(settings);
}

}  // namespace arctrace::reader
