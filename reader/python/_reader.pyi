# Nobody's interface but the package's own.
from typing import Any

def __getattr__(name: str) -> Any: ...
