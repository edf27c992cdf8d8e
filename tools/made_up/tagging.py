"""Made-up files of the tagging datasets, each in the format of the real one."""

import random
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

from lib.benchmarks import metrics
from tools.made_up.files import write_lines, write_text
from tools.made_up.language import AMBIGUOUS, MEDICAL, make_sentence

Words = list[tuple[str, str]]  # a sentence: words and their kinds, empty for a word that is not a name
COLUMNS = [  # two-column datasets: folder, kind of name, type
    ("bc5cdr-disease", "disease", "Disease"), ("bc2gm", "device", "GENE"), ("linnaeus", "place", "Species"),
    ("s800", "place", ""), ("bc4chemd", "drug", "Chemical"), ("jnlpba-biobert", "device", ""),
]  # fmt: skip
SPLITS = {"train": "Training", "dev": "Development", "test": "Test"}
NCBI = {"train": "train", "dev": "develop", "test": "test"}
GENIA = ("protein", "DNA", "RNA", "cell_type", "cell_line")
PICO = {"disease": "PAR", "drug": "INT", "device": "OUT"}
I2B2 = {"disease": "problem", "device": "test", "drug": "treatment"}
RELATED = {"device": "TeRP", "drug": "TrAP", "disease": "PIP"}
NOTE = "0000{}-{:06}-DISCHARGE_SUMMARY"
TRAINING = "concept_assertion_relation_training_data"


def write(folder: Path, rng: random.Random, names: dict[str, list[str]]) -> None:
    """Write every dataset below ner/ of a data folder, about 60 sentences a split, always the same for a generator."""
    ner = folder / "ner"
    for set_name, kind, entity in COLUMNS:
        for split in SPLITS:
            name = f"{split}.tsv.gz" if (set_name, split) == ("jnlpba-biobert", "train") else f"{split}.tsv"
            write_conll(ner / set_name / name, make(rng, names, f"{set_name} {split}"), kind, entity)
    for number, split in enumerate(SPLITS):
        documents = make_documents(rng, names, f"trial {split}")
        pmids = [40_000_000 + 1000 * number + i for i in range(len(documents))]
        write_jnlpba(ner / f"jnlpba/{split}.tsv{'.gz' if split == 'train' else ''}", documents, rng)
        write_pico(ner / "ebm-nlp" / f"{split}.txt", documents, pmids, "{} NN O {}")
        write_pico(ner / "ebm-nlp-blurb" / f"{split}.tsv", documents, pmids, "{}\t{}")
        write_ebm_nlp(ner / "ebm-nlp-original", documents, pmids, "test/gold" if number == 2 else "train")
        cdr, ncbi = ner / "bc5cdr-pubtator", ner / "ncbi-disease-pubtator"
        cdr_types = {"drug": "Chemical", "disease": "Disease"}
        write_pubtator(cdr / f"CDR_{SPLITS[split]}Set.PubTator.txt", documents, pmids, cdr_types, True)
        ncbi_types = {"disease": "SpecificDisease"}
        write_pubtator(ncbi / f"NCBI{NCBI[split]}set_corpus.txt", documents, pmids, ncbi_types, False)
        if split == "dev":
            write_text(ner / "ebm-nlp-original/dev.txt", "".join(f"{pmid}\n" for pmid in pmids))
    write_i2b2(ner / "i2b2-2010", rng, names)
    write_shareclef(ner / "share-clef-2013", rng, names)


def make(rng: random.Random, names: dict[str, list[str]], series: str, size: int = 60) -> list[Words]:
    """Make sentences whose opening makes each unique and names a place, for the datasets of places."""
    return [
        [(word, "") for word in f"In {series} {number} at".split()]
        + [(rng.choice(names["place"]), "place"), (",", "")]
        + make_sentence(rng, MEDICAL + 2 * AMBIGUOUS, names)
        for number in range(size)
    ]


def make_documents(rng: random.Random, names: dict[str, list[str]], series: str) -> list[list[Words]]:
    """Make ten documents of six sentences."""
    sentences = make(rng, names, series)
    return [sentences[i : i + 6] for i in range(0, len(sentences), 6)]


def write_conll(path: Path, sentences: list[Words], kind: str, entity: str) -> None:
    """Write BIO tags for the names of one kind, without a type if `entity` is empty; words in a row are one entity."""
    lines = []
    for sentence in sentences:
        previous_kind = ""
        for word, word_kind in sentence:
            letter = "O" if word_kind != kind else "I" if previous_kind == kind else "B"
            lines.append(f"{word}\t{letter}-{entity}" if entity and letter != "O" else f"{word}\t{letter}")
            previous_kind = word_kind
        lines.append("")
    write_lines(path, lines)


def write_jnlpba(path: Path, documents: list[list[Words]], rng: random.Random) -> None:
    """Write two columns with a mark before each document; every word of a name is a mention of one of five types."""
    lines = []
    for document in documents:
        lines += ["-DOCSTART-\tO", ""]
        for sentence in document:
            lines += [f"{word}\t{f'B-{rng.choice(GENIA)}' if kind else 'O'}" for word, kind in sentence] + [""]
    write_lines(path, lines)


def write_pico(path: Path, documents: list[list[Words]], pmids: list[int], form: str) -> None:
    """Write SciBERT's or BLURB's file, one element a word. `form`: the template of a word and its tag."""
    lines = []
    for pmid, document in zip(pmids, documents, strict=True):
        lines += [f"-DOCSTART- ({pmid})", ""]
        for sentence in document:
            tags = (f"I-{PICO[kind]}" if kind in PICO else "O" for _, kind in sentence)
            lines += [*(form.format(word, tag) for (word, _), tag in zip(sentence, tags, strict=True)), ""]
    write_text(path, "\n".join(lines) + "\n")


def write_ebm_nlp(folder: Path, documents: list[list[Words]], pmids: list[int], split: str) -> None:
    """Write the release's tree. Participant spans include two words before and after, so that elements overlap."""
    for pmid, document in zip(pmids, documents, strict=True):
        words = [word for sentence in document for word, _ in sentence]
        kinds = [PICO.get(kind, "") for sentence in document for _, kind in sentence]
        write_text(folder / f"documents/{pmid}.tokens", "\n".join(words) + "\n")
        for element, name in metrics.PICO.items():
            reach = 2 if element == "PAR" else 0
            labels = ["1" if element in kinds[max(0, i - reach) : i + reach + 1] else "0" for i in range(len(kinds))]
            spans_folder = folder / "annotations/aggregated/starting_spans" / name / split
            write_text(spans_folder / f"{pmid}.AGGREGATED.ann", "\n".join(labels) + "\n")


def find_names(document: list[Words], glue: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Return a document's text, its sentences joined by `glue`, and its names as (start, end, kind) in characters."""
    text, spans = "", []
    for number, sentence in enumerate(document):
        text += glue if number else ""
        previous_kind = ""
        for i, (word, kind) in enumerate(sentence):
            text += " " if i and word not in ".," else ""
            if kind and kind == previous_kind:
                spans[-1] = (spans[-1][0], len(text) + len(word), kind)
            elif kind:
                spans.append((len(text), len(text) + len(word), kind))
            text += word
            previous_kind = kind
    return text, spans


def write_pubtator(
    path: Path, documents: list[list[Words]], pmids: list[int], types: dict[str, str], related: bool
) -> None:
    """Write PubTator records whose titles are the first sentences.

    `related`: with relations; without them, the first record is repeated at the end.
    """
    records = []
    for pmid, document in zip(pmids, documents, strict=True):
        text, spans = find_names(document, " ")
        length = len(find_names(document[:1], " ")[0])
        lines = [f"{pmid}|t|{text[:length]}", f"{pmid}|a|{text[length + 1 :]}"]
        mentions = [(start, end, kind) for start, end, kind in spans if kind in types]
        for start, end, kind in mentions:
            lines.append(f"{pmid}\t{start}\t{end}\t{text[start:end]}\t{types[kind]}\t{concept(text[start:end])}")
        concepts = {kind: concept(text[start:end]) for start, end, kind in mentions}
        if related and len(concepts) == 2:
            lines.append(f"{pmid}\tCID\t{concepts['drug']}\t{concepts['disease']}")
        records.append("\n".join(lines))
    if not related:
        records.append(records[0])
    write_text(path, "\n\n".join(records) + "\n\n")


def concept(name: str) -> str:
    """Return a made-up identifier, the same for the same name."""
    return f"D{sum(ord(letter) * 31**i for i, letter in enumerate(name)) % 1_000_000:06}"


def write_i2b2(folder: Path, rng: random.Random, names: dict[str, list[str]]) -> None:
    """Write texts, concepts and relations in the folders of the release."""
    reference = folder / "reference_standard_for_test_data"
    for number, (texts, concepts, relations) in enumerate(
        [(folder / TRAINING / site / "txt", folder / TRAINING / site / "concept", folder / TRAINING / site / "rel")
         for site in ("beth", "partners")]
        + [(folder / "test_data", reference / "concepts", reference / "rel")]
    ):  # fmt: skip
        for i, document in enumerate(make_documents(rng, names, f"ward {number}")):
            name = f"record-{number}{i}"
            write_text(
                texts / f"{name}.txt", "\n".join(" ".join(word for word, _ in sentence) for sentence in document) + "\n"
            )
            mentions = [mention for line, sentence in enumerate(document, 1) for mention in find_places(line, sentence)]
            write_text(
                concepts / f"{name}.con", "".join(f'{mention}||t="{I2B2[kind]}"\n' for mention, kind, _ in mentions)
            )
            related = (
                f'{first}||r="{RELATED[kind]}"||c={second[2:]}\n'
                for (first, kind, line), (second, second_kind, second_line) in pairwise(mentions)
                if line == second_line and second_kind == "disease"
            )
            write_text(relations / f"{name}.rel", "".join(related))


def find_places(line: int, sentence: Words) -> list[tuple[str, str, int]]:
    """Return the concepts of a line as (`c="text" line:word line:word`, kind, line)."""
    places, end = [], 0
    for kind, run in groupby(sentence, key=itemgetter(1)):
        words = [word.lower() for word, _ in run]
        start, end = end, end + len(words)
        if kind in I2B2:
            places.append((f'c="{" ".join(words)}" {line}:{start} {line}:{end - 1}', kind, line))
    return places


def write_shareclef(folder: Path, rng: random.Random, names: dict[str, list[str]]) -> None:
    """Write notes and annotations in the release's folders, XML for training, lines for the test, with split lists."""
    training = folder / "Task1TrainSetCorpus199/ALLREPORTS", folder / "Task1TrainSetGOLD199knowtatorehost"
    test = folder / "Task1TestSetCorpus100/ALLREPORTS", folder / "Task1Gold_SN2012/Gold_SN2012"
    for number, (notes, annotations) in enumerate((training, test)):
        for i, document in enumerate(make_documents(rng, names, f"clinic {number}")):
            name = NOTE.format(number, i)
            text, spans = find_names(document, "\n\n")
            disorders = [((start, end),) for start, end, kind in spans if kind == "disease"]
            if len(disorders) > 2:  # one mention in two parts
                disorders[:2] = [disorders[0] + disorders[1]]
            write_text(notes / f"{name}.txt", text + "\n")
            if number:
                write_text(annotations / f"{name}.pipe.txt", make_pipes(name, disorders))
            else:
                write_text(annotations / f"{name}.txt.knowtator.xml", make_knowtator(name, disorders))
    for split, numbers in (("dev", range(3)), ("train", range(3, 10))):
        write_text(folder / f"{split}.txt", "".join(f"{NOTE.format(0, i)}\n" for i in numbers))


def make_pipes(name: str, disorders: list[tuple[tuple[int, int], ...]]) -> str:
    lines = []
    for spans in disorders:
        offsets = "||".join(f"{start}||{end}" for start, end in spans)
        lines.append(f"{name}.txt||Disease_Disorder||C{spans[0][0]:07}||{offsets}\n")
    return "".join(lines)


def make_knowtator(name: str, disorders: list[tuple[tuple[int, int], ...]]) -> str:
    parts = []
    for i, spans in enumerate(disorders):
        elements = "".join(f'<span start="{start}" end="{end}"/>' for start, end in spans)
        parts.append(
            f'<annotation><mention id="m{i}"/>{elements}</annotation>\n'
            f'<classMention id="m{i}"><hasSlotMention id="s{i}"/><mentionClass id="Disease_Disorder"/></classMention>\n'
            f'<stringSlotMention id="s{i}"><mentionSlot id="CUI"/>'
            f'<stringSlotMentionValue value="C{spans[0][0]:07}"/></stringSlotMention>\n'
        )
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<annotations textSource="{name}.txt">\n'
    return f"{start}{''.join(parts)}</annotations>\n"
