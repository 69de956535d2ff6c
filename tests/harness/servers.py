"""Servers of Debian's packages that tests start."""

import shutil

# The multi-call program that redis-server is, in the package that starts no service.
_REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")


def has_redis():
    """Whether redis, its benchmark and its client are installed."""
    return None not in (_REDIS, shutil.which("redis-benchmark"), shutil.which("redis-cli"))


def redis_server(directory):
    """The path of the server: a link in the directory, whose name makes the multi-call
    program a server."""
    link = directory / "redis-server"
    if not link.is_symlink():
        link.symlink_to(_REDIS)
    return link
