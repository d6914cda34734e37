from tokbpe.arguments import Buffer
from tokbpe.patterns import Pattern

def split(text: str | Buffer, pattern: str | Pattern | None = None) -> list[bytes]: ...
