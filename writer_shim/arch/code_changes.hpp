// Changes of code that other threads may run. Nothing that one thread writes is safe for
// several bytes in which another one stands, so such changes are only noted: the recorder
// makes them while no thread runs (src/recorder/attach/code_writer.hpp).
#pragma once

#include <cstddef>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// As long as the object exists, changes are noted, one at a time, under the loader's
// lock.
class NotedChanges {
 public:
  // `begins`: in a new list. Else after those that are there.
  explicit NotedChanges(bool begins = true);
  ~NotedChanges();
  NotedChanges(const NotedChanges&) = delete;
  NotedChanges& operator=(const NotedChanges&) = delete;
};

// Whether changes are noted, and not made at once.
bool notes_changes();

// Changes the code at `at`, which is writable if changes are made at once. False: they
// are noted, and there is no memory left for another one.
bool change_code(unsigned char* at, const unsigned char* bytes, size_t size);

// Whether one of the changes that are noted is within the code. Takes a look at each.
bool is_change_noted(const AddressRange& code);

// The module is about to be gone: nothing is to be written there.
void forget_changes(const AddressRange& module);

// Gives back the list.
void free_noted_changes();

}  // namespace arctrace::shim
