#!/usr/bin/env python3
"""Paths in documents: every file and directory of the project that a document names is there."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# It also names directories that are to come.
EXCEPTIONS = {"docs/architecture.md"}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[A-Za-z_.][\w.+-]*(?:/[\w.+-]+)*/?")


def tracked():
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def known_paths(files):
    """Files and directories, relative to the root."""
    return {str(path) for name in files
            for path in (pathlib.PurePath(name), *pathlib.PurePath(name).parents)}


def missing(document, text, known):
    """What a document names and is not there: links, and code that begins with a directory of the
    project. `src/a.{hpp,cpp}`, `NAME` and globs stand for several files and are not looked at."""
    folder = pathlib.PurePath(document).parent
    found = []
    for target, _ in LINK.findall(text):
        if "://" not in target and normal(folder / target) not in known:
            found.append(target)
    for code in CODE.findall(text):
        word = code.split(" ")[0].rstrip("/")
        top = word.split("/")[0]
        if "/" in word and top in known and PATH.fullmatch(word) and not re.search("[A-Z]{3}", word):
            if word not in known and f"{word}.cpp" not in known:
                found.append(code)
    return found


def normal(path):
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


class Paths(unittest.TestCase):
    def test_documents_name_what_is_there(self):
        files = tracked()
        known = known_paths(files)
        for name in files:
            if name.endswith(".md") and name not in EXCEPTIONS:
                with self.subTest(name):
                    text = (ROOT / name).read_text(encoding="utf-8")
                    self.assertEqual([], missing(name, text, known))


class FindsFaults(unittest.TestCase):
    def test_of_each_kind(self):
        known = known_paths(["docs/a.md", "src/base/x.cpp", "tools/test"])
        look = lambda text: missing("docs/b.md", text, known)
        self.assertEqual([], look("[a](a.md), [t](../tools/test), `src/base`, `tools/test --quick`, "
                                  "`src/base/x`, `/tmp/x`, `a/b`, [web](https://a.b/c)"))
        self.assertEqual(["c.md"], look("[c](c.md)"))
        self.assertEqual(["src/core/"], look("in `src/core/`"))
        self.assertEqual(["src/base/y.cpp"], look("`src/base/y.cpp`"))


if __name__ == "__main__":
    unittest.main()
