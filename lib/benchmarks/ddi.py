"""The DDI corpus: drug interactions within sentences, from its XML."""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from lib.benchmarks.instances import Mention, Relation
from lib.benchmarks.tabular import DDI_LABELS, check_label, collect
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import parse_xml, read_members, read_names

# Folders in a split list -> folders in the zip, which also has the test set of another task.
DDI = {"train_dataset": "DDICorpus/Train", "test_dataset": "DDICorpus/Test/Test for DDI Extraction task"}
DDI_FILE = re.compile(r"(train_dataset|test_dataset)(/(?:DrugBank|MedLine)/[^/\\]+\.xml)")
OFFSETS = re.compile(r"[0-9]{1,9}-[0-9]{1,9}(;[0-9]{1,9}-[0-9]{1,9})*")


def read_ddi(corpus: Path, split_list: Path) -> list[Relation]:
    """Read every drug pair of the DDI corpus in the files of a split list.

    `corpus`: the zip of XML files. `split_list`: names such as `train_dataset/DrugBank/x.xml`, separated by commas or
    line ends. Labels are `DDI-false` and the four types. A pair that is `true` without a type becomes false; the
    training files have one, DDI-DrugBank.d236.s29.p0. A mention in parts spans its first to its last character.

    BLURB used another release, the one in zhangyijia1979/hierarchical-RNNs-model-for-DDI-extraction. There that pair is
    false, DDI-DrugBank.d266.s0.p1 and p2 have each other's labels, and the texts of eight MedLine documents differ by a
    character or two, so that mentions are not at their offsets; this reader rejects them. If masked nevertheless, that
    release gives BLURB's three files byte for byte.

    Raises StudyError if the archive or XML is damaged, a mention is not at its offsets (one in parts: nor a character
    beside them), a pair has an unknown mention, or an id is repeated. Source: Herrero-Zazo et al. 2013; BLURB's
    division (Gu et al. 2021, 2.3.3).
    """
    return collect(split_list, read_drug_pairs(corpus, split_list))


def read_drug_pairs(corpus: Path, split_list: Path) -> Iterator[tuple[str, Relation]]:
    """Yield the drug pairs with their places. Raises StudyError as in read_ddi."""
    for location, document, sentence in ddi_sentences(corpus, split_list):
        text = sentence.get("text", "")
        drugs = read_drugs(location, sentence)
        for pair in sentence.iterfind("pair"):
            id, first_id, second_id = pair.get("id", ""), pair.get("e1"), pair.get("e2")
            place = f"{location}: pair {id}"
            if first_id == second_id or first_id not in drugs or second_id not in drugs:
                raise StudyError(f"{place} names an unknown entity")
            interacts = check_label(place, pair.get("ddi"), ("true", "false"))
            label = "DDI-false"
            if interacts == "true" and pair.get("type") is not None:
                label = check_label(place, f"DDI-{pair.get('type')}", DDI_LABELS)
            first, second = sorted((drugs[first_id], drugs[second_id]), key=lambda drug: drug.start)
            yield place, Relation(id, text, first, second, label, document=document)


def read_drugs(place: str, sentence: etree._Element) -> dict[str, Mention]:
    """Return the mentions of a sentence by id. Raises StudyError as in read_ddi."""
    text = sentence.get("text", "")
    drugs: dict[str, Mention] = {}
    for number, entity in enumerate(sentence.iterfind("entity"), start=1):
        location = f"{place}: sentence {sentence.get('id', '')}, entity {number}"
        id, offsets = entity.get("id", ""), entity.get("charOffset", "")
        if not id or id in drugs:
            raise StudyError(f"{location}: no id of its own")
        if not OFFSETS.fullmatch(offsets):
            raise StudyError(f"{location}: expected a charOffset such as 3-7 or 3-7;9-12")
        numbers = [int(number) for number in re.findall("[0-9]+", offsets)]
        shift = find_shift(text, numbers, entity.get("text", ""))
        if numbers != sorted(numbers) or shift is None or numbers[-1] + shift >= len(text):
            raise StudyError(f"{location}: does not stand at its offsets")
        drugs[id] = Mention(id, "DRUG", numbers[0] + shift, numbers[-1] + shift + 1)
    return drugs


def find_shift(text: str, numbers: list[int], words: str) -> int | None:
    """Return how far a mention is from its offsets: 0, for one in parts also 1 or -1; None if it is elsewhere.

    White space counts only for a mention in one part, because four of the 47 in parts have theirs changed. One of the
    47 is one character further on (DDI-DrugBank.d216.s16.e2).
    """
    if len(numbers) == 2:
        return 0 if text[numbers[0] : numbers[1] + 1] == words else None
    spans = list(zip(numbers[::2], numbers[1::2], strict=True))
    letters = "".join(words.split())
    for shift in (0, 1, -1):
        span_text = "".join(text[start + shift : end + shift + 1] for start, end in spans)
        if numbers[0] + shift >= 0 and "".join(span_text.split()) == letters:
            return shift
    return None


def read_ddi_sentences(corpus: Path, split_list: Path) -> list[str]:
    """Return the non-blank sentences of a split list's files, with or without drugs. Errors are as in read_ddi."""
    texts = (sentence.get("text", "") for _, _, sentence in ddi_sentences(corpus, split_list))
    return [text for text in texts if text.strip()]


def ddi_sentences(corpus: Path, split_list: Path) -> Iterator[tuple[str, str, etree._Element]]:
    """Yield the sentences of a split list's files with their place and document. Raises StudyError as in read_ddi."""
    names = read_names(split_list, DDI_FILE, "train_dataset/DrugBank/x.xml")
    members = [DDI[match[1]] + match[2] for match in names]
    contents = read_members(corpus, members)
    for member in members:
        location = f"{show_path(corpus)}: {member}"
        root = parse_xml(location, contents[member])
        sentences = root.findall("sentence")
        if root.tag != "document" or not sentences:
            raise StudyError(f"{location}: not a document with sentences")
        yield from ((location, root.get("id", ""), sentence) for sentence in sentences)
