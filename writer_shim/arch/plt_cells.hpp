// Words near a module's code through which its PLT entries jump instead of through the
// slot that the loader filled. They are needed where the code also reads the slot for the
// function's address, so that the slot must keep what the loader wrote.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

class PltCells {
 public:
  // Makes the PLT entry `jump` of `image` (code_references.hpp) jump to `target`. False:
  // there is no memory near enough, or the code cannot be changed.
  bool redirect(const ModuleImage& image, uint64_t* jump, uint64_t target);

  // To be called when the module is gone.
  void release();

 private:
  bool map_near(const ModuleImage& image);

  uint64_t* cells_ = nullptr;
  size_t used_ = 0;
};

}  // namespace arctrace::shim
