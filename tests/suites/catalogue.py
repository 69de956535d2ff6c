"""The suites of others by name."""

import random

import boost
import cpython
import glibc
import jq
import lua
import openssl
import perl
import random_hazards
import sqlite
import torture
import unwind
import zlib_suite

SUITES = {suite.name: suite for suite in
          (random_hazards.RandomHazards, zlib_suite.Zlib, jq.Jq, lua.Lua, boost.Boost,
           openssl.Openssl, glibc.Glibc, sqlite.Sqlite, torture.Torture, perl.Perl,
           cpython.Cpython, unwind.Unwind)}
# The part of each large suite that is run if nothing else is asked for.
PARTS = {"random": 0.2, "torture": 0.1, "cpython": 0.2, "perl": 0.2, "boost": 0.3,
         "openssl": 0.3, "glibc": 0.2, "sqlite": 0.4}


def make(name, directory, part, seed):
    """A prepared suite, which has its files below `directory`. Raises suites.Unavailable."""
    place = directory / name
    place.mkdir(parents=True, exist_ok=True)
    suite = SUITES[name](place, part, random.Random(f"{seed} {name}"))
    suite.prepare()
    return suite
