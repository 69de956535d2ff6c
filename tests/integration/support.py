"""Shared code of integration tests beside the harness: the real program, the first lines of programs that write
records by the C API, and how the command shows durations and sizes."""

import os
import pathlib

from command import LIBRARY

LUA = pathlib.Path(os.environ["ARCTRACE_LUA"])  # where tools/lua built; fixture lua
WORKLOAD = pathlib.Path(__file__).resolve().parent / "lua/workload.lua"

# The first lines of a Python program that writes records by the C API.
API = f"""
import ctypes, os, sys, threading, time
api = ctypes.CDLL({str(LIBRARY)!r})
def name(text): return api.arctrace_define_name(text.encode())
def key(text): return ctypes.c_uint64(1 << 63 | name(text))
"""


def duration_text(time_ns):
    """A duration as reports show it: three digits, rounded half up, and a dash for nothing."""
    if time_ns == 0:
        return "-"
    if time_ns < 1000:
        return f"{time_ns} ns"
    for name, unit in (("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        for decimals in (2, 1, 0):
            digits = (time_ns * 10**decimals * 2 + unit) // (2 * unit)
            if digits < 1000 or (name, decimals) == ("s", 0):
                return f"{digits // 10**decimals:,}" + f".{digits % 10**decimals:0{decimals}d}" * (decimals > 0) \
                    + f" {name}"
    return ""


def bytes_text(size):
    """A number of bytes as arctrace shows it: rounded down to a tenth of its unit."""
    if size < 1024:
        return f"{size} bytes"
    unit = min((size.bit_length() - 1) // 10, 4)
    tenths = (size * 10 >> 10 * unit) % 10
    return f"{size >> 10 * unit}" + f".{tenths}" * (tenths > 0) + f" {' KMGT'[unit]}iB"
