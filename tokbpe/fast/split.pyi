from tokbpe.arguments import Buffer
from tokbpe.patterns import Pattern

VARIANTS: tuple[str, ...]
VARIANT: str

def split(text: str | Buffer, pattern: str | Pattern | None = None) -> list[bytes]: ...
def use_variant(name: str) -> None: ...
