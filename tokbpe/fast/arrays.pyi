from typing import final

@final
class Ids:
    def __new__(cls) -> Ids: ...
