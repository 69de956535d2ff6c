// A library's function that does next to nothing.
#pragma once

extern "C" long library_call(long number);
