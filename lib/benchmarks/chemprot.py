"""ChemProt (chemicals and proteins): the corpus split into sentences as in BLURB or BLUE, and SciBERT's form of it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import product
from pathlib import Path

from lib.benchmarks.instances import Mention, Relation
from lib.benchmarks.standoff import OFFSET, locate_sentences
from lib.benchmarks.tabular import CHEMPROT_LABELS, check_label
from lib.errors import StudyError
from lib.reading import read_columns, read_json_lines

GROUPS = tuple(f"CPR:{number}" for number in range(11))
KINDS = {"CHEMICAL": "CHEMICAL", "GENE-Y": "GENE", "GENE-N": "GENE"}
RELATION_TYPES = (
    "ACTIVATOR", "AGONIST", "AGONIST-ACTIVATOR", "AGONIST-INHIBITOR", "ANTAGONIST", "DOWNREGULATOR",
    "INDIRECT-DOWNREGULATOR", "INDIRECT-UPREGULATOR", "INHIBITOR", "PRODUCT-OF", "SUBSTRATE",
    "SUBSTRATE_PRODUCT-OF", "UPREGULATOR",
)  # fmt: skip
MARKED = re.compile(r"(.*?)<< (.*?) >>(.*?)\[\[ (.*?) \]\](.*)", re.DOTALL)
UNLEARNT = (  # shown beside results that use load_unlearnt
    "ChemProt: NLTK's splitter without what its punkt has learnt, which is not at hand, makes 18,008, 11,279 and "
    "15,779 pairs; BLURB has 18,035, 11,268 and 15,745."
)
Splitter = Callable[[str], Iterable[str]]
Span = tuple[int, int]  # the start and end of a sentence
Corpus = dict[str, tuple[str, str]]  # PMID -> title and abstract
Mentions = dict[str, dict[str, Mention]]  # PMID -> id -> mention, offsets in title TAB abstract
Groups = dict[tuple[str, str, str], list[str]]  # PMID, chemical, gene -> groups in the order of the file


@cache
def load_punkt() -> Splitter:
    """Return NLTK's English sentence splitter. Raises StudyError if NLTK does not have its parameters."""
    try:
        from nltk.tokenize.punkt import PunktTokenizer  # imported here because it takes two seconds

        return PunktTokenizer("english").tokenize
    except (ImportError, LookupError):
        raise StudyError("NLTK's punkt is not at hand: python -m nltk.downloader punkt_tab") from None


def has_punkt() -> bool:
    try:
        return bool(load_punkt())
    except StudyError:
        return False


def load_unlearnt() -> Splitter:
    """Return NLTK's splitter without punkt's parameters, which needs no download but knows no abbreviations."""
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer().tokenize


def load_splitter() -> Splitter:
    return load_punkt() if has_punkt() else load_unlearnt()


def read_chemprot(
    abstracts: Path,
    entities: Path,
    relations: Path,
    split_sentences: Splitter | None = None,
    left_out: Counter | None = None,
) -> list[Relation]:
    """Read every chemical-gene pair within a sentence of ChemProt, in BLURB's form.

    Files of the corpus: abstracts (PMID, title, abstract), entities (PMID, id, type, offsets, text), relations (PMID,
    group, evaluated or not, name, Arg1:chemical, Arg2:gene). Title and abstract, joined by a tab, are split into
    sentences and then at the tab. A mention across a boundary is in no pair, and a relation across sentences is lost. A
    pair has the group of its last line if that group is evaluated (CPR:3, 4, 5, 6, 9), else `false`. Ids are
    `pmid.Tx.Ty` in text order, the gene first if both begin at the same offset.

    The splitter decides how many pairs there are. NLTK's punkt, the default, gives BLURB's pairs; UNLEARNT describes
    the fallback.

    Raises StudyError if a line is malformed, an id is repeated, an entity is not at its offsets, a relation has unknown
    entities, or the splitter changes the text. Source: Gu et al. 2021, 2.3.3; BLURB's files, which are the same byte
    for byte once masked.
    """
    cut = partial(cut_at_tab, split=split_sentences or load_splitter())

    def label(groups: list[str]) -> list[str]:
        return [groups[-1] if groups and groups[-1] in CHEMPROT_LABELS else "false"]

    return pair_up(abstracts, entities, relations, cut, label, True, left_out)


def read_chemprot_blue(
    abstracts: Path,
    entities: Path,
    relations: Path,
    split_sentences: Splitter | None = None,
    left_out: Counter | None = None,
) -> list[Relation]:
    """Read every chemical-gene pair within a sentence of ChemProt, as close to BLUE's form as possible.

    Files and errors are those of read_chemprot. A sentence ends only if it ends in `.`, `?` or `!`, but not `i.v.`, and
    the next begins with a capital. A pair with several evaluated groups yields an instance for each, all with the id
    `pmid.chemical.gene`. BLUE splits with spaCy's small English model and converts texts to ASCII; this reader splits
    with NLTK's punkt and keeps texts unchanged. BLUE prints the number of its positives, and scores test positives
    across sentences as missed. Source: Peng et al. 2019, Table 1; their repository ncbi-nlp/BLUE_Benchmark.
    """
    cut = partial(cut_and_merge, split=split_sentences or load_splitter())

    def label(groups: list[str]) -> list[str]:
        return [group for group in dict.fromkeys(groups) if group in CHEMPROT_LABELS] or ["false"]

    return pair_up(abstracts, entities, relations, cut, label, False, left_out)


def pair_up(
    abstracts: Path,
    entities: Path,
    relations: Path,
    cut: Callable[[str, str], list[Span]],
    label: Callable[[list[str]], list[str]],
    in_text_order: bool,
    left_out: Counter | None,
) -> list[Relation]:
    """Return the pairs of every sentence, one instance per label.

    `in_text_order`: whether the two ids in a pair's id follow text order. `left_out` counts mentions across a sentence
    boundary, and related pairs that are not in one sentence.
    """
    corpus = read_pmids(abstracts)
    mentions = read_mentions(entities, corpus)
    groups = read_groups(relations, mentions)
    pairs, paired_ids, inside_count = [], set(), 0
    for pmid, parts in corpus.items():
        text = "\t".join(parts)
        for start, end in cut(pmid, text):
            sentence_mentions = [
                mention for mention in mentions[pmid].values() if start <= mention.start and mention.end <= end
            ]
            inside_count += len(sentence_mentions)
            chemicals, genes = (
                [mention for mention in sentence_mentions if mention.kind == kind] for kind in ("CHEMICAL", "GENE")
            )
            for chemical, gene in product(chemicals, genes):
                paired_ids.add((pmid, chemical.id, gene.id))
                first, second = (chemical, gene) if chemical.start < gene.start else (gene, chemical)
                ids = (first.id, second.id) if in_text_order else (chemical.id, gene.id)
                arguments = [m._replace(start=m.start - start, end=m.end - start) for m in (first, second)]
                for group in label(groups.get((pmid, chemical.id, gene.id), [])):
                    pairs.append(Relation(".".join((pmid, *ids)), text[start:end], *arguments, group, document=pmid))
    if left_out is not None:
        left_out["mentions across the end of a sentence"] += sum(map(len, mentions.values())) - inside_count
        left_out["related pairs that are not in one sentence"] += sum(
            label(pair_groups) != ["false"] for pair, pair_groups in groups.items() if pair not in paired_ids
        )
    return pairs


def cut_at_tab(pmid: str, text: str, split: Splitter) -> list[Span]:
    tab, spans = text.index("\t"), []
    for start, end in locate_sentences(split(text), text, f"ChemProt document {pmid}"):
        spans += [(start, tab), (tab + 1, end)] if start <= tab < end else [(start, end)]
    return spans


def cut_and_merge(pmid: str, text: str, split: Splitter) -> list[Span]:
    text = text.replace("\t", " ")
    spans: list[Span] = []
    for start, end in locate_sentences(split(text), text, f"ChemProt document {pmid}"):
        if spans:
            previous = text[slice(*spans[-1])]
            is_complete = previous.endswith((".", "?", "!")) and not previous.endswith("i.v.")
            if not is_complete or not text[start:end][:1].isupper():
                spans[-1] = spans[-1][0], end
                continue
        spans.append((start, end))
    return spans


def read_chemprot_abstracts(abstracts: Path, *_: Path) -> list[str]:
    """Return the non-blank titles and abstracts of ChemProt, because pairs hold only some of their sentences.

    Takes all three files of a split, as the other readers do. Raises StudyError as in read_chemprot.
    """
    return [text for parts in read_pmids(abstracts).values() for text in parts if text.strip()]


def read_pmids(path: Path) -> Corpus:
    corpus: Corpus = {}
    for location, (pmid, title, abstract) in read_columns(path, 3):
        if not (pmid.isascii() and pmid.isdecimal()) or pmid in corpus:
            raise StudyError(f"{location}: no PMID of its own")
        corpus[pmid] = title, abstract
    return corpus


def read_mentions(path: Path, corpus: Corpus) -> Mentions:
    mentions: Mentions = {pmid: {} for pmid in corpus}
    for location, (pmid, id, kind, first, last, words) in read_columns(path, 6):
        if not re.fullmatch("T[0-9]{1,9}", id) or id in mentions.get(pmid, {}):
            raise StudyError(f"{location}: no entity id of its own, such as T1")
        if kind not in KINDS or not OFFSET.fullmatch(first) or not OFFSET.fullmatch(last):
            raise StudyError(f"{location}: expected {', '.join(KINDS)} and two offsets")
        start, end = int(first), int(last)
        text = "\t".join(corpus.get(pmid, ()))
        if not words or text[start:end] != words:
            raise StudyError(f"{location}: the entity is not in its document at {start} to {end}")
        mentions[pmid][id] = Mention(id, KINDS[kind], start, end)
    return mentions


def read_groups(path: Path, mentions: Mentions) -> Groups:
    groups: Groups = {}
    for location, (pmid, group, _, _, *arguments) in read_columns(path, 6):
        check_label(location, group, GROUPS)
        chemical, gene = (
            mentions.get(pmid, {}).get(argument.removeprefix(prefix))
            for prefix, argument in zip(("Arg1:", "Arg2:"), arguments, strict=True)
        )
        if not chemical or not gene or (chemical.kind, gene.kind) != ("CHEMICAL", "GENE"):
            raise StudyError(f"{location}: expected Arg1 of a chemical and Arg2 of a gene of its document")
        groups.setdefault((pmid, chemical.id, gene.id), []).append(group)
    return groups


def read_chemprot_scibert(path: Path) -> list[Relation]:
    """Read SciBERT's form of ChemProt: JSON lines of related pairs only, marked `<< first >>` and `[[ second ]]`.

    The marks are removed. They follow text order and do not distinguish the chemical from the gene, so both mentions
    have the kind ENTITY. Labels are the 13 relation names. Ids are line numbers. Raises StudyError if a line has
    another form or an unknown label. Source: Beltagy et al. 2019; the repository allenai/scibert.
    """
    pairs = []
    for location, record in read_json_lines(path):
        text, label = record.get("text"), record.get("label")
        match = MARKED.fullmatch(text) if isinstance(text, str) else None
        if not match:
            raise StudyError(f"{location}: expected a text with << >> and then [[ ]]")
        check_label(location, label, RELATION_TYPES)
        mentions = []
        for group in (1, 3):
            start = sum(map(len, match.groups()[:group]))
            mentions.append(Mention("", "ENTITY", start, start + len(match.groups()[group])))
        pairs.append(Relation(str(len(pairs) + 1), "".join(match.groups()), *mentions, label))
    return pairs
