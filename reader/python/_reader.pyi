# This interface is only for the package itself.
from typing import Any

def __getattr__(name: str) -> Any: ...
