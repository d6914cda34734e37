"""Into which symbols a piece falls before anything is merged."""

UNITS = ("byte", "character", "word")
MARKER = b" "  # glued to the last character of a word


def symbols(piece: bytes, unit: str) -> list[bytes]:
    """The symbols of a piece: its bytes, its characters, or those with the last one marked.

    (b"low", "word") -> [b"l", b"o", b"w "]

    A byte that is no UTF-8 is a symbol of its own, which no alphabet of characters holds.
    """
    if unit == "byte":
        return [piece[i : i + 1] for i in range(len(piece))]
    text = piece.decode("utf-8", "surrogateescape")
    characters = [character.encode("utf-8", "surrogateescape") for character in text]
    if unit == "word":
        characters[-1] += MARKER
    return characters
