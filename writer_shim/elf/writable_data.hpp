// Access to the data of a module that the loader has made read-only after relocation.
#pragma once

#include <sys/mman.h>

#include "writer_shim/base/page_protection.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Makes the module's read-only data writable for as long as this object exists.
class WritableData {
 public:
  explicit WritableData(const AddressRange& range) : range_(range) {
    worked_ =
        is_empty() || protect(range.low, range.high - range.low, PROT_READ | PROT_WRITE);
  }
  ~WritableData() {
    if (!is_empty()) protect(range_.low, range_.high - range_.low, PROT_READ);
  }
  WritableData(const WritableData&) = delete;
  WritableData& operator=(const WritableData&) = delete;
  bool failed() const { return !worked_; }

 private:
  bool is_empty() const { return range_.low >= range_.high; }
  AddressRange range_;
  bool worked_;
};

}  // namespace arctrace::shim
