"""The arctrace command as the tests run it, and what it prints.

Every test runs a program that ends by itself with `run()`, the command with `arctrace()`, and a command that
goes on in the background with `start_arctrace()`. `read()` and the functions that begin with it return what a
command says of a trace; they fail if the command does.

What programs print is compared byte for byte, so their text keeps bytes that are no UTF-8, and carriage returns.
"""

import json
import os
import pathlib
import re
import subprocess

ARCTRACE = os.environ["ARCTRACE"]
LIBRARY = pathlib.Path(ARCTRACE).resolve().parent.parent / "lib/libarctrace.so.0"
# Whether the command is built with a sanitizer, which makes it some ten times slower.
SANITIZED = bool(os.environ.get("ARCTRACE_SANITIZE"))
# A command that takes longer hangs.
TIMEOUT_S = 600

# Parts by which lines of the recorder beside its summary are known.
HINT = "; to record a program's own functions, "  # how to record a program's own functions, if none was
NO_FUNCTION = "arctrace: no function was recorded"
# Names may be missing, because the machine was too busy to read all symbols in time.
LATE = "there was no time to search all of it"
# Another test may have killed a recorder, whose buffer is named.
LEFT_BEHIND = "left behind by killed recorder"


def run(*command, text=True, errors="surrogateescape", check=False, **options):
    """Runs a program to its end, and returns it as subprocess.run() does.

    Its output and its errors are captured, as text (`text=False`: as bytes). Its input is empty, unless the
    options have another one. `check`: AssertionError, with all that it printed, unless it succeeds.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": TIMEOUT_S, **options}
    if isinstance(options.get("input"), str):
        options["input"] = options["input"].encode(errors=errors)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(list(map(str, command)), check=False, **options)
    if check and done.returncode != 0:
        printed = (done.stdout or b"")[:4000] + (done.stderr or b"")
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n"
                             f"{printed.decode(errors='replace')}")
    if text:
        done.stdout, done.stderr = (printed if printed is None else printed.decode(errors=errors)
                                    for printed in (done.stdout, done.stderr))
    return done


def arctrace(*arguments, errors="strict", **options):
    """Runs the command with these arguments, as run() does; what it prints itself is UTF-8."""
    return run(ARCTRACE, *arguments, errors=errors, **options)


def start_arctrace(*arguments, **options):
    """The command in the background, with options of subprocess.Popen()."""
    return subprocess.Popen([ARCTRACE, *map(str, arguments)], **options)


def read(*arguments, **options):
    """What the command prints; it must succeed."""
    return arctrace(*arguments, check=True, **options).stdout


def refused(*arguments, **options):
    """The one line that the command prints when it cannot do what it is asked for: its status is 2."""
    done = arctrace(*arguments, **options)
    if (done.returncode, done.stdout, len(done.stderr.splitlines())) != (2, "", 1):
        raise AssertionError(f"{arguments}: status {done.returncode}\n{done.stdout[:4000]}{done.stderr}")
    return done.stderr


def read_report(trace, view, *options):
    """The JSON of a view."""
    return json.loads(read("report", trace, f"--view={view}", "--format=json", *options))


def read_dump(trace, *options):
    """The records as `arctrace dump` has them, one object each."""
    return [json.loads(line) for line in read("dump", trace, "--format=json", *options).splitlines()]


def read_info(trace, *options):
    """What `arctrace info` says, as JSON."""
    return json.loads(read("info", trace, "--format=json", *options))


def own_lines(errors):
    """The lines of a recorder itself, of what it and the program that it runs wrote to standard error."""
    return [line for line in errors.splitlines(True) if line.startswith("arctrace: ")]


def program_lines(errors):
    """What the program alone wrote to standard error, as text."""
    return "".join(line for line in errors.splitlines(True) if not line.startswith("arctrace: "))


def lines_without(errors, *parts):
    """The lines that have none of these parts."""
    return [line for line in errors.splitlines() if not any(part in line for part in parts)]


def destroy_left_buffer(errors):
    """Destroys the buffer, if there is one, that a recorder abandoned with records that it could not write, and
    which it says how to recover."""
    for buffer in re.findall(r"run arctrace recover .* && arctrace destroy (\S+)", errors):
        read("destroy", buffer)
