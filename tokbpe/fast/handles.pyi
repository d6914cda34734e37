from typing import Any, final

@final
class Opened:
    def __new__(cls, parts: Any) -> Opened: ...
