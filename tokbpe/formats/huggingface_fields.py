"""The fields of a `tokenizer.json`, each with its place in the file, for messages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tokbpe import arguments
from tokbpe.formats.printable import kind


class Field(NamedTuple):
    """A value of the file and its place: `pre_tokenizer.pretokenizers[0].behavior`."""

    value: Any
    place: str

    def refused(self, why: str) -> ValueError:
        """An error that names place and value."""
        return ValueError(f"{self.place} is {self.value!r:.200}: {why}")

    def member(self, name: str) -> "Field":
        return Field(self.value[name], f"{self.place}.{name}" if self.place else name)

    def members(self, *needed: str, **defaults: Any) -> dict[str, "Field"]:
        """The fields of an object: those needed, and others that may be missing."""
        found = self.entries()
        for name, member in found.items():
            if name not in needed and name not in defaults:
                raise member.refused("this field is unknown")
        for name in needed:
            if name not in found:
                raise ValueError(f"{self.place or 'the file'} lacks the field {name!r}")
        return Field({**defaults, **self.value}, self.place).entries()

    def entries(self) -> dict[str, "Field"]:
        """The fields of an object, whatever their names."""
        if not isinstance(self.value, dict):
            place = self.place or "the file"
            raise ValueError(f"{place} must be an object, not {kind(self.value)}")
        return {name: self.member(name) for name in self.value}

    def values(self) -> list[Any]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise ValueError(f"{self.place} must be a list, not {kind(self.value)}")
        return self.value

    def item(self, index: int) -> "Field":
        return Field(self.value[index], f"{self.place}[{index}]")

    def items(self) -> list["Field"]:
        """The items of a list."""
        return [self.item(index) for index in range(len(self.values()))]

    def kind(self, *known: str) -> str:
        """The `type` of an object, one of those that can be honored."""
        if not isinstance(self.value, dict) or "type" not in self.value:
            raise self.refused(f"it must be an object with a type: {', '.join(known)}")
        return str(self.member("type").only(*known))

    def tagged(self, *known: str) -> tuple[str, "Field"]:
        """The name and the value of the single field of an object."""
        if not isinstance(self.value, dict) or len(self.value) != 1 or {*self.value} - {*known}:
            raise self.refused(f"it must be an object with one field, {' or '.join(known)}")
        [found] = self.entries().items()
        return found

    def parts(self, members: str, *known: str) -> Iterator[tuple[str, "Field"]]:
        """The parts of a place for none, one or a `Sequence` of them, in their order, each with
        its type. A sequence lists its parts, which may be sequences, in the field `members`."""
        waiting = [] if self.value is None else [self]
        while waiting:
            part = waiting.pop()
            kind = part.kind("Sequence", *known)
            if kind == "Sequence":
                waiting += reversed(part.members("type", members)[members].items())
            else:
                yield kind, part

    def only(self, *honored: Any) -> Any:
        """The value, which must be one of those that can be honored."""
        for value in honored:
            if type(self.value) is type(value) and self.value == value:
                return value
        raise self.refused(f"only {' or '.join(map(repr, honored))} can be honored")

    def flag(self) -> bool:
        return bool(self.only(False, True))

    def text(self) -> str:
        """A text that is not empty and has an encoding."""
        if not isinstance(self.value, str) or not self.value:
            raise self.refused("it must be a text that is not empty")
        try:
            self.value.encode("utf-8")
        except UnicodeEncodeError:
            raise self.refused("it holds a lone surrogate") from None
        return self.value

    def id(self) -> int:
        if type(self.value) is not int or not 0 <= self.value < arguments.LARGEST_VOCABULARY:
            highest = arguments.LARGEST_VOCABULARY - 1
            raise self.refused(f"an id must be a whole number from 0 to {highest}")
        return self.value


def byte_level(field: Field) -> dict[str, Field]:
    """The fields of a ByteLevel. As a decoder or post-processor it has no effect on ids."""
    found = field.members("type", "add_prefix_space", "trim_offsets", use_regex=True)
    for name in ("add_prefix_space", "trim_offsets", "use_regex"):
        found[name].flag()
    return found
