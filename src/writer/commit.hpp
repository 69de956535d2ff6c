// Makes a record visible to readers.
#pragma once

#include "src/base/shared_atomics.hpp"
#include "src/writer/reservation.hpp"

namespace arctrace {

// I1 release, matches I2 (a reader of word 0): the record's body is visible.
__attribute__((always_inline)) inline void commit(const Reservation& record) {
  IpcAtomics::store_release(word_at(record.word0), record.committed);
  release(record);
}

}  // namespace arctrace
