#!/usr/bin/env python3
"""Paths in documents: every file, directory and section of the project that a document names is
there."""

import pathlib
import re
import subprocess
import unittest

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[A-Za-z_.][\w.+-]*(?:/[\w.+-]+)*/?")
SOURCE = re.compile(r"\w\.(h|hpp|cpp|c|S|inc|py)$")


def tracked():
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def known_paths(files):
    """Files and directories, relative to the root."""
    return {str(path) for name in files
            for path in (pathlib.PurePath(name), *pathlib.PurePath(name).parents)}


def anchors(text):
    """The names by which links reach the sections of a document, as GitHub makes them."""
    found = set()
    for heading in HEADING.findall(BLOCK.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = 0
        while (unique := f"{name}-{count}" if count else name) in found:
            count += 1
        found.add(unique)
    return found


def missing(document, text, known, read):
    """Missing things that a document names: links; code that begins with a directory of the
    project; and names of source files without their directory, but for docs/guide, which shows
    the user's own. `src/a.{hpp,cpp}`, `NAME` and globs stand for several files and are not
    checked, nor are blocks of code."""
    directory = pathlib.PurePath(document).parent
    found = []
    text_only = BLOCK.sub("", text)
    for target, section in LINK.findall(text_only):
        if "://" in target:
            continue
        path = normal(directory / target) if target else document
        if path not in known or (section and section not in anchors(read(path))):
            found.append(f"{target}#{section}" if section else target)
    tails = {name[i:] for name in known for i in
             [0, *(at + 1 for at, letter in enumerate(name) if letter == "/")]}
    for word in (word.rstrip("/") for code in CODE.findall(text_only) for word in code.split()):
        if not PATH.fullmatch(word) or re.search("[A-Z]{3}", word):
            continue
        if "/" in word and word.split("/")[0] in known:
            if word not in known and f"{word}.cpp" not in known:
                found.append(word)
        elif SOURCE.search(word) and not document.startswith("docs/guide/"):
            if word not in tails:
                found.append(word)
    return found


def normal(path):
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def read_document(name):
    return (ROOT / name).read_text(encoding="utf-8")


class Paths(unittest.TestCase):
    def test_documents_name_what_is_there(self):
        files = tracked()
        known = known_paths(files)
        for name in files:
            if name.endswith(".md"):
                with self.subTest(name):
                    self.assertEqual([], missing(name, read_document(name), known,
                                                 read_document))


class FindsFaults(unittest.TestCase):
    def test_of_each_kind(self):
        known = known_paths(["docs/a.md", "docs/b.md", "src/base/x.cpp", "tools/test"])
        look = lambda text: missing("docs/b.md", text, known, lambda name: "## One `two`")
        self.assertEqual([], look("[a](a.md), [t](../tools/test), `src/base`, `tools/test --quick`, "
                                  "`src/base/x`, `/tmp/x`, `a/b`, [web](https://a.b/c), `x.cpp`, "
                                  "`base/x.cpp`, [1](a.md#one-two), [2](#one-two), `SIG.c`"))
        self.assertEqual([], look("```\nsrc/later/ `src/later/`\n```\n"))
        self.assertEqual(["c.md"], look("[c](c.md)"))
        self.assertEqual(["a.md#two"], look("[c](a.md#two)"))
        self.assertEqual(["src/core"], look("in `src/core/`"))
        self.assertEqual(["src/base/y.cpp"], look("`tools/test src/base/y.cpp`"))
        self.assertEqual(["y.cpp", "late/x.cpp"], look("`y.cpp`, `late/x.cpp`"))


if __name__ == "__main__":
    cases.main()
