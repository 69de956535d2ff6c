"""The walks of docs/architecture.md ("One record's life"): the files through which one thing goes."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^## One record's life$(.*?)^## ", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
STEP = re.compile(r"^(?:\d+\.|  ) .*$", re.MULTILINE)
PATH = re.compile(r"`((?:include|src|reader|writer_shim)/[\w./-]+\.(?:h|hpp|cpp|S))`")


def read(text=None):
    """{the walk's name, which is the bold text that it begins with: the files that its steps name}."""
    text = text if text is not None else (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = SECTION.search(text)
    if section is None:
        return {}
    heads = [*HEAD.finditer(section.group(1)), None]
    walks = {}
    for head, following in zip(heads, heads[1:]):
        end = following.start() if following else len(section.group(1))
        steps = "\n".join(STEP.findall(section.group(1)[head.end():end]))
        walks[head.group(1)] = set(PATH.findall(steps))
    return walks


def files_of(name):
    """The files of one walk. Error: KeyError, there is no such walk."""
    return read()[name]
