"""BIO tags: letters and types, other schemes, entities."""

from collections.abc import Iterator, Sequence

SCHEMES = {"BIO": "BI", "BIOUL": "BILU", "IO": "I"}  # letters of each scheme, besides O
UNTYPED = "entity"  # the type of entities whose tags have none
PLAIN = {"U": "B", "L": "I"}  # letters of BIOUL -> letters of BIO


def respell(tags: Sequence[str], scheme: str) -> list[str]:
    """Convert BIO tags to another scheme; an I without a B before it begins an entity, as in conlleval.

    BIOUL: B, I and L (last) for entities of several words, U for those of one word (Gu et al. 2021, 2.4.2, has U and L
    the other way round); Lee et al. 2020 call it BIOES. IO: neighbouring entities of one type are merged.
    """
    respelt_tags = []
    for i, tag in enumerate(tags):
        letter, kind = split_tag(tag)
        if letter != "O":
            begins = letter == "B" or i == 0 or split_tag(tags[i - 1]) not in (("B", kind), ("I", kind))
            ends = i + 1 == len(tags) or split_tag(tags[i + 1]) != ("I", kind)
            if scheme == "IO":
                letter = "I"
            elif scheme == "BIOUL" and ends:
                letter = "U" if begins else "L"
            else:
                letter = "B" if begins else "I"
        respelt_tags.append(join_tag(letter, kind))
    return respelt_tags


def to_bio(tags: Sequence[str]) -> list[str]:
    """Convert predicted tags of any scheme to BIO's letters."""
    return [join_tag(PLAIN.get(letter, letter), kind) for letter, kind in map(split_tag, tags)]


def split_tag(tag: str) -> tuple[str, str]:
    """Split a tag into its letter and type; the type may be empty."""
    letter, _, kind = tag.partition("-")
    return letter, kind


def join_tag(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


def add_type(tag: str) -> str:
    """Add UNTYPED to a tag that lacks a type and is not O, because libraries expect one."""
    letter, kind = split_tag(tag)
    return tag if letter == "O" else join_tag(letter, kind or UNTYPED)


def keep_types(tags: list[str], types: Sequence[str] | None) -> list[str]:
    """Replace tags of types other than `types` by O; None keeps all."""
    return tags if types is None else [tag if split_tag(tag)[1] in types else "O" for tag in tags]


def locate_entities(tags: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield type, first and last word of each entity in BIO tags; UNTYPED for tags without a type."""
    for number, tag in enumerate(respell(tags, "BIOUL")):
        letter, kind = split_tag(tag)
        if letter in ("B", "U"):
            first = number
        if letter in ("L", "U"):
            yield kind or UNTYPED, first, number
