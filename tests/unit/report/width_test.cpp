// What views look like on terminals of 80 and of 160 columns: three of them whole, and of
// all that no line is wider.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "reader/render/text_style.hpp"
#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr const char* kDraw =
    "std::vector<render::Triangle, std::allocator<render::Triangle> > "
    "render::Scene::draw<render::Camera>(render::Camera const&, unsigned long)";
constexpr const char* kSort =
    "void render::detail::sort_by_depth<std::vector<render::Triangle>::iterator>(int)";

// A thread that draws, 40 us of 90 blocked, and one that waits for it under a long name.
KernelScript drawing() {
  KernelScript s;
  const ThreadIndex drawer = s.script.thread(s.process, 100, "drawer");
  const ThreadIndex loader = s.script.thread(s.process, 101, "texture-loader");
  s.task(0);
  s.task(100);
  s.task(101);
  s.script.enter(drawer, 10'000, "main");
  s.script.enter(loader, 10'000, "load_all_textures_of_the_scene_from_disk");
  for (int64_t now = 10'000; now < 100'000; now += 30'000) {
    s.script.enter(drawer, now, kDraw);
    s.script.enter(drawer, now + 1'000, kSort);
    s.leaves(100, now + 2'000, false);
    s.woken(100, now + 12'000, 101);
    s.comes(100, now + 15'000);
    s.script.exit(drawer, now + 20'000);
    s.script.exit(drawer, now + 30'000);
  }
  s.leaves(101, 60'000, true);
  s.comes(101, 70'000);
  s.script.exit(loader, 90'000);
  s.script.exit(drawer, 100'000);
  return s;
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, columns_of(line));
  }
  return widest;
}

}  // namespace

TEST_CASE("80 and 160 columns: summary, flat and tree") {
  const KernelScript s = drawing();
  Viewed viewed(s.script);
  viewed.settings.options.style.width = 80;
  CHECK(viewed.text("summary") == R"(80)");
  CHECK(viewed.text("flat") == R"(80)");
  CHECK(viewed.text("tree") == R"(80)");
  viewed.settings.options.style.width = 160;
  CHECK(viewed.text("summary") == R"(160)");
  CHECK(viewed.text("flat") == R"(160)");
  CHECK(viewed.text("tree") == R"(160)");
}

TEST_CASE("no view has a line that is wider than the terminal") {
  const KernelScript s = drawing();
  Viewed viewed(s.script);
  viewed.settings.functions = {"*sort_by_depth*"};
  for (const size_t width : {size_t{80}, size_t{100}, size_t{160}}) {
    viewed.settings.options.style.width = width;
    for (const ViewType& type : view_types()) {
      CAPTURE(type.name);
      CAPTURE(width);
      const std::string text = viewed.text(type.name);
      CHECK(text.size() > 10);
      CHECK(widest_line(text) <= width);
    }
  }
}
