// Changes of the program's code, and memory with code of ours beside it. One thread
// cannot safely write several bytes of code in which another thread stands, so such
// changes are only noted while threads may run: the recorder makes them while no thread
// does (src/recorder/attach/code_writer.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// As long as the object exists, changes are noted, one at a time, under the loader's
// lock.
class NotedChanges {
 public:
  // `begins`: begins a new list; else adds to the present one.
  explicit NotedChanges(bool begins = true);
  ~NotedChanges();
  NotedChanges(const NotedChanges&) = delete;
  NotedChanges& operator=(const NotedChanges&) = delete;
};

// Whether changes are noted, and not made at once.
bool notes_changes();

// As long as the object exists, changes that are made at once are written through
// /proc/self/mem: for code that may not become writable, as under PR_SET_MDWE.
class ForcedChanges {
 public:
  explicit ForcedChanges(bool are_forced);
  ~ForcedChanges();
  ForcedChanges(const ForcedChanges&) = delete;
  ForcedChanges& operator=(const ForcedChanges&) = delete;
  // Whether they can be written so.
  explicit operator bool() const;
};

// Changes the code at `at`, which is writable if changes are made at once and are not
// forced. False: the change could not be written, or noted.
bool change_code(unsigned char* at, const unsigned char* bytes, size_t size);

// Whether a noted change is within the code. Checks each change.
bool is_change_noted(const AddressRange& code);

// Forgets the changes in a module that is about to be gone: nothing is to be written
// there.
void forget_changes(const AddressRange& module);

// Frees the list.
void free_noted_changes();

// Notes memory that is mapped for the jumps and landings of a patched module. `code`: an
// address in the module to which the memory belongs.
void note_jump_memory(uintptr_t code, uintptr_t low, size_t size);

// Unmaps that memory. To be called when the module is unloaded.
void release_jump_memory(const AddressRange& module);

// Whether `address` is in such memory. Checks all of it.
bool is_jump_memory(uintptr_t address);

// Notes the memory of an image, with the code to which jumps at the entries of patched
// functions lead (writer_shim/patch/). It stays. False: there are too many. To be called
// under the loader's lock.
bool note_patch_code(AddressRange image);

// Whether `address` is in such an image. Takes some ns for each image.
bool is_patch_code(uintptr_t address);

}  // namespace arctrace::shim
