// The table of views: names, help, and what each view can do.
#include "reader/report/view_types.hpp"

#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A thread with calls, and the kernel's records about it.
KernelScript calls_and_dispatches() {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(100);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1010, "flock");
  s.leaves(100, 1100, false);
  s.woken(100, 1300, 101);
  s.comes(100, 1350);
  s.script.exit(thread, 1360);
  s.script.exit(thread, 2000);
  return s;
}

}  // namespace

TEST_CASE("each view is found by its name") {
  CHECK(std::string(view_types().front().name) == "summary");
  for (const ViewType& type : view_types()) {
    CAPTURE(std::string(type.name));
    CHECK(find_view_type(type.name) == &type);
    CHECK(*type.help != '\0');
    // A view that is made of call trees can be sorted.
    CHECK((!type.grouping.has_value() || !type.sort_keys.empty()));
  }
  CHECK(find_view_type("trees") == nullptr);
  CHECK(find_view_type("") == nullptr);
}

TEST_CASE("each view can show a trace, nothing at all, and no rows") {
  const KernelScript kernel = calls_and_dispatches();
  const RecordScript nothing;
  for (const ViewType& type : view_types()) {
    CAPTURE(std::string(type.name));
    Viewed viewed(kernel.script);
    if (type.is_about_functions) viewed.settings.functions = {"flock"};
    // Each view has the name of a function, if only as the path to a state, except
    // `locks` and `errors`, because no call has arguments or a result, and `processes`.
    const bool has_names = type.name != std::string("locks") &&
                           type.name != std::string("errors") &&
                           type.name != std::string("processes");
    CHECK((viewed.text(type.name).find("flock") != std::string::npos) == has_names);
    CHECK((viewed.json(type.name).dump().find("flock") != std::string::npos) ==
          has_names);
    viewed.settings.options.limit = 0;
    CHECK(viewed.text(type.name).find("flock") == std::string::npos);
    CHECK(viewed.json(type.name).dump().find("flock") == std::string::npos);
    viewed.settings.options.limit = UINT64_MAX;
    viewed.settings.options.min_percent = 100.1;  // hides even the root
    CHECK(viewed.json(type.name).is_object());

    Viewed empty(nothing);
    empty.text(type.name);
    CHECK(empty.json(type.name).is_object());
  }
}

TEST_CASE("a view asks for the listener that it needs") {
  for (const ViewType& type : view_types()) {
    CAPTURE(std::string(type.name));
    ViewSettings settings;
    const Definitions definitions;
    settings.definitions = &definitions;
    const std::unique_ptr<View> view = type.make(settings);
    // Views have both, if they have any of the two.
    if (type.name == std::string("processes") || type.name == std::string("slowest"))
      continue;
    const bool is_of_schedule = type.needs != KernelRecords::kNone;
    CHECK((view->schedule_listener() != nullptr) == is_of_schedule);
    // These are made of call trees and of the times of single calls.
    const bool has_times =
        type.name == std::string("histogram") || type.name == std::string("summary");
    CHECK((view->call_listener() != nullptr) ==
          ((!type.grouping.has_value() && !is_of_schedule) || has_times));
  }
}
