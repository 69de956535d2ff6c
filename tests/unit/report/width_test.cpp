// What three views look like on terminals of 80 and of 160 columns, whole. Lines that are
// wider are broken when they are printed (line_fitter_test.cpp).
#include <doctest/doctest.h>

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

}  // namespace

TEST_CASE("60 columns: names have space, and sentences go on in the next line") {
  const KernelScript s = drawing();
  Viewed viewed(s.script);
  viewed.settings.options.style.width = 60;
  const std::string text = viewed.text("summary");
  for (const char* const part :
       {"\n      us     %    On CPU     Calls  Spent on\n"
        "     170  94 %    131 us         8  functions of no module\n",
        "\n Self us     %       Calls       Max  Hottest functions\n"
        "    80.0  44 %           1   80.0 us  load_all_te…_from_disk\n",
        "\nall threads: 180 us, on the CPU 141 us, blocked 30.0 us,\n"
        "  without a CPU 9.00 us\n"}) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("80 and 160 columns: summary, flat and tree") {
  const KernelScript s = drawing();
  Viewed viewed(s.script);
  viewed.settings.options.style.width = 80;
  CHECK(viewed.text("summary") == R"(90.0 us, 1 process, 2 threads
all threads: 180 us, on the CPU 141 us, blocked 30.0 us, without a CPU 9.00 us

      us     %             On CPU   Blocked   No CPU     Calls  Spent on
     170  94 % ███████▌    131 us   30.0 us  9.00 us         8  function… module
      10   6 % ▌          10.0 us         -        -         -  not in r…nctions

 Self us     %       Calls   Blocked   No CPU       Max  Hottest functions
    80.0  44 %           1         -        -   80.0 us  load_all_te…e_from_disk
    57.0  32 %           3   30.0 us  9.00 us   19.0 us  render::det…depth<…>(…)
    33.0  18 %           3         -        -   30.0 us  render::Sce…:draw<…>(…)
    10.0   6 %           1         -        -         -  others (1)

 Self us     %  Hottest paths
    80.0  44 %  load_all_textures_of_the_scene_from_disk
    57.0  32 %  render::detail::sort_by_depth<std::vector<render::Triangle>…>(…)
    33.0  18 %  main > … > render::Scene::draw<render::Camera>(render::Camera …)
    10.0   6 %  others (1)

      us     %    On CPU  Threads  Of what, and where mostly
    90.0  50 %   90.0 us        1  program,…e-loader  load_all…om_disk 80.0 us
    90.0  50 %   51.0 us        1  program,… drawer  render::…h<…>(…) 57.0 us

more:  arctrace report --view=tree
       arctrace graph 'load_all_textures_of_the_scene_from_disk'
       arctrace report --view=slowest -F \
         'load_all_textures_of_the_scene_from_disk'
)");
  CHECK(viewed.text("flat") == R"(
2 threads: 180 us, of which 10.0 us in no function
       Calls         Self     Total us    Ind  Name
           1            -         90.0      1  main
           3      33.0 us         90.0      2  render::Scene::draw<render::…>(…)
           1      80.0 us         80.0      3  load_all_texture…_scene_from_disk
           3      57.0 us         57.0      4  render::detail::…t_by_depth<…>(…)
)");
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls         Self        Total  Name
  0   0           1            -      90.0 us  drawer 100/100
  1   1           1            -      90.0 us    main
  2   1           3      33.0 us      90.0 us      render::Scene::draw<rend…>(…)
  3   1           3      57.0 us      57.0 us        render::detai…y_depth<…>(…)

 Lv  RL       Calls         Self        Total  Name
  0   0           1      10.0 us      90.0 us  texture-loader 100/101
  1   1           1      80.0 us      80.0 us    load_all_textur…scene_from_disk
)");
  viewed.settings.options.style.width = 160;
  CHECK(viewed.text("summary") == R"(90.0 us, 1 process, 2 threads
all threads: 180 us, on the CPU 141 us, blocked 30.0 us, without a CPU 9.00 us

      us     %             On CPU   Blocked   No CPU     Calls  Spent on
     170  94 % ███████▌    131 us   30.0 us  9.00 us         8  functions of no module
      10   6 % ▌          10.0 us         -        -         -  not in recorded functions

 Self us     %       Calls   Blocked   No CPU       Max  Hottest functions
    80.0  44 %           1         -        -   80.0 us  load_all_textures_of_the_scene_from_disk
    57.0  32 %           3   30.0 us  9.00 us   19.0 us  void render::detail::sort_by_depth<std::vector<render::Triangle>::iterator>(int)
    33.0  18 %           3         -        -   30.0 us  std::vector<render::Triangle, std::allocator<render::Triangle> > render::Scene::draw<render::Camera>(…)
    10.0   6 %           1         -        -         -  others (1)

 Self us     %  Hottest paths
    80.0  44 %  load_all_textures_of_the_scene_from_disk
    57.0  32 %  main > … > void render::detail::sort_by_depth<std::vector<render::Triangle>::iterator>(int)
    33.0  18 %  main > … > render::Scene::draw<render::Camera>(render::Camera const&, unsigned long)
    10.0   6 %  others (1)

      us     %    On CPU  Threads  Of what, and where mostly
    90.0  50 %   90.0 us        1  program, thread texture-loader  load_all_textures_of_the_scene_from_disk 80.0 us
    90.0  50 %   51.0 us        1  program, thread drawer  void render::detail::sort_by_depth<std::vector<render::Triangle>::iterator>(int) 57.0 us

more:  arctrace report --view=tree
       arctrace graph 'load_all_textures_of_the_scene_from_disk'
       arctrace report --view=slowest -F 'load_all_textures_of_the_scene_from_disk'
)");
  CHECK(viewed.text("flat") == R"(
2 threads: 180 us, of which 10.0 us in no function
       Calls   %Self  %Total         Self     Total us       On CPU      Blocked       No CPU    Ind  Name
           1       -    50.0            -         90.0      51.0 us      30.0 us      9.00 us      1  main
           3    18.3    50.0      33.0 us         90.0      51.0 us      30.0 us      9.00 us      2  render::Scene::draw<render::Camera>(…)
           1    44.4    44.4      80.0 us         80.0      80.0 us            -            -      3  load_all_textures_of_the_scene_from_disk
           3    31.7    31.7      57.0 us         57.0      18.0 us      30.0 us      9.00 us      4  render::detail::sort_by_depth<std::vector<render::Tri…>(…)
)");
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls   %Self  %Total         Self        Total       On CPU      Blocked       No CPU  Name
  0   0           1       -     100            -      90.0 us      51.0 us      30.0 us      9.00 us  drawer 100/100
  1   1           1       -     100            -      90.0 us      51.0 us      30.0 us      9.00 us    main
  2   1           3    36.7     100      33.0 us      90.0 us      51.0 us      30.0 us      9.00 us      render::Scene::draw<render::Camera>(…)
  3   1           3    63.3    63.3      57.0 us      57.0 us      18.0 us      30.0 us      9.00 us        render::detail::sort_by_depth<std::vector<rende…>(…)

 Lv  RL       Calls   %Self  %Total         Self        Total       On CPU      Blocked       No CPU  Name
  0   0           1    11.1     100      10.0 us      90.0 us      90.0 us            -            -  texture-loader 100/101
  1   1           1    88.9    88.9      80.0 us      80.0 us      80.0 us            -            -    load_all_textures_of_the_scene_from_disk
)");
}
