// Functions that do next to nothing, for calls that something records from outside.
#pragma once

extern "C" {
long library_call(long number);
long other_library_call(long number);

// Calls the first `calls` times, under a function that may be recorded too.
long call_repeatedly(long calls);

// Calls the two in turn, `calls` times in all, as programs do: from two places, under a
// function that may be recorded too.
long call_in_turn(long calls);
}
