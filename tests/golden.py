"""A small handwritten file in every dataset format, with the examples it contains; and records of PubMed."""

import io
import json
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from lib.benchmarks import chemprot, conll, ddi, hallmarks, i2b2, pico, pubtator, questions, shareclef, tabular
from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence, Span

FILE = "file"  # the name used for formats with a single file
Content = str | bytes


class Golden(NamedTuple):
    read: Callable[[Path], list]  # takes the folder with the files
    files: dict[str, Content]
    expected: list


def one(reader: Callable, content: Content, *expected, **options) -> Golden:
    return Golden(lambda folder: list(reader(folder / FILE, **options)), {FILE: content}, list(expected))


def write(path: Path, content: Content) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_files(folder: Path, files: dict[str, Content | None]) -> Path:
    """Write files into a folder, deleting those whose content is None."""
    for name, content in files.items():
        if content is None:
            (folder / name).unlink()
        else:
            write(folder / name, content)
    return folder


def zipped(members: dict[str, Content]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(members: dict[str, Content], link: str = "") -> bytes:
    """Return a gzipped tar. `link`: the target of a symbolic link added as its last member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            content = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo("text/9.txt")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return buffer.getvalue()


# Relations

ABSTRACTS = "7\tIron and ferritin.\tZinc binds HBA. Opium HBA x\n"
#               0123456789012345678 9012345678901234567890123456
ENTITIES = (
    "7\tT1\tCHEMICAL\t0\t4\tIron\n7\tT2\tGENE-Y\t9\t17\tferritin\n7\tT4\tGENE-N\t30\t33\tHBA\n"
    "7\tT3\tCHEMICAL\t19\t23\tZinc\n7\tT6\tGENE-Y\t41\t44\tHBA\n7\tT5\tCHEMICAL\t35\t40\tOpium\n"
)
GROUPS = (
    "7\tCPR:3\tY \tACTIVATOR\tArg1:T3\tArg2:T4\n7\tCPR:4\tY \tINHIBITOR\tArg1:T3\tArg2:T4\n"
    "7\tCPR:2\tN \tREGULATOR\tArg1:T5\tArg2:T6\n7\tCPR:9\tY \tSUBSTRATE\tArg1:T1\tArg2:T6\n"
)
CHEMPROT = {"abstracts.tsv": ABSTRACTS, "entities.tsv": ENTITIES, "relations.tsv": GROUPS}
GAD = "In @DISEASE$ the @GENE$ is\t1\nNo @GENE$ in @DISEASE$\t0\n"
GAD_EXAMPLES = [
    Relation("0", "In @DISEASE$ the @GENE$ is", Mention("", "DISEASE", 3, 12), Mention("", "GENE", 17, 23), "1", True),
    Relation("1", "No @GENE$ in @DISEASE$", Mention("", "GENE", 3, 9), Mention("", "DISEASE", 13, 22), "0", True),
]
DDI_TEXT = "Iron, zinc and oral or\nIV gold"
DRUGS = {"6-9": "zinc", "0-3": "Iron", "15-18;26-29": "oral gold", "23-29": "IV gold", "14-17;25-28": "oral gold"}
FALSE, INT = 'ddi="false"', 'ddi="true" type="int"'
SPLIT_LIST = "train_dataset/DrugBank/a b.xml\n"


def split_sentences(text: str) -> list[str]:
    """Split made-up text after every full stop followed by a space."""
    return text.replace(". ", ".|").split("|")


def read_chemprot(folder: Path, reader: Callable = chemprot.read_chemprot, **options) -> list[Relation]:
    return reader(*(folder / name for name in CHEMPROT), **{"split_sentences": split_sentences} | options)


def lim(label="2", words="bc6entg, binds, bc6entc, .", ids="7\tT2\tT1") -> str:
    return f"{label}\t( {words.replace(',', '')} )\t{words}\t{ids}\n"


def scibert(**changes) -> str:
    return json.dumps({"text": "It << a b >>-like [[ c ]] >>.", "label": "AGONIST", "metadata": []} | changes) + "\n"


def sentence(text: str, drugs: dict[str, str], *pairs: str) -> str:
    """Return a sentence of the DDI corpus. `drugs`: offsets -> text of entities e0, e1, ...

    `pairs`: such as `e0 e1 ddi="false"`.
    """
    inner = "".join(
        f'<entity id="e{number}" charOffset="{offsets}" text={quoteattr(words)}/>'
        for number, (offsets, words) in enumerate(drugs.items())
    )
    inner += "".join(f'<pair id="p{n}" e1="{pair[:2]}" e2="{pair[3:5]}" {pair[6:]}/>' for n, pair in enumerate(pairs))
    return f'<sentence id="s" text={quoteattr(text)}>{inner}</sentence>'


def ddi_corpus(body: str, head: str = "") -> bytes:
    return zipped({"DDICorpus/Train/DrugBank/a b.xml": f"{head}<document id='d'>{body}</document>"})


def read_ddi(folder: Path, reader: Callable = ddi.read_ddi) -> list:
    return reader(folder / "ddi.zip", folder / "files.tsv")


def make_relation(id: str, text: str, ends: dict[str, tuple[int, int]], label: str, **others) -> Relation:
    """Return a relation. `ends`: the offsets of its mentions by kind and, after a space, id."""
    first, second = (Mention(name.partition(" ")[2], name.partition(" ")[0], *span) for name, span in ends.items())
    return Relation(id, text, first, second, label, **others)


def make_masked(text: str, label: str, id: str = "1.T1.T2") -> Relation:
    """Return a relation whose text stands between the dummies of a gene and a disease."""
    ends = {"GENE": (0, 6), "DISEASE": (7, 16)}
    return make_relation(id, f"@GENE$ {text} @DISEASE$", ends, label, masked=True)


CHEMPROT_EXAMPLES = [
    make_relation("7.T1.T2", "Iron and ferritin.", {"CHEMICAL T1": (0, 4), "GENE T2": (9, 17)}, "false", document="7"),
    make_relation("7.T3.T4", "Zinc binds HBA.", {"CHEMICAL T3": (0, 4), "GENE T4": (11, 14)}, "CPR:4", document="7"),
    make_relation("7.T5.T6", "Opium HBA x", {"CHEMICAL T5": (0, 5), "GENE T6": (6, 9)}, "false", document="7"),
]  # T3 and T4 keep the last of their groups; that of T5 and T6 is not evaluated; T1 and T6 share no sentence
BIOELECTRA = 'sentence\tlabel\r\nBC6OTHER , BC6ENTC and BC6ENTG\tFalse\r\n"The ""old"" BC6ENTG"\tCPR:9\r\n'
DDI_TABLE = "D.d1.s0.p0\tA @DRUG$ or @DRUG$ \tDDI-int\nD.d1.s0.p1\tA @DRUG-DRUG$\tDDI-false\n"
DDI_TABLE_EXAMPLES = [
    Relation("D.d1.s0.p0", "A @DRUG$ or @DRUG$ ", Mention("", "DRUG", 2, 8), Mention("", "DRUG", 12, 18), "DDI-int",
             True, "D.d1"),
    Relation("D.d1.s0.p1", "A @DRUG-DRUG$", *[Mention("", "DRUG", 2, 13)] * 2, "DDI-false", True, "D.d1"),
]  # fmt: skip
DDI_EXAMPLES = [
    make_relation("p0", DDI_TEXT, {"DRUG e1": (0, 4), "DRUG e0": (6, 10)}, "DDI-int", document="d"),  # in text order
    make_relation("p1", DDI_TEXT, {"DRUG e1": (0, 4), "DRUG e2": (15, 30)}, "DDI-false", document="d"),  # in two parts
    make_relation("p2", DDI_TEXT, {"DRUG e2": (15, 30), "DRUG e3": (23, 30)}, "DDI-false", document="d"),
    make_relation("p3", DDI_TEXT, {"DRUG e1": (0, 4), "DRUG e3": (23, 30)}, "DDI-false", document="d"),  # no type
    make_relation("p4", DDI_TEXT, {"DRUG e1": (0, 4), "DRUG e4": (15, 30)}, "DDI-false", document="d"),  # off by one
]
PAIRS = f"e0 e1 {INT}", f"e1 e2 {FALSE}", f"e3 e2 {FALSE}", 'e1 e3 ddi="true"', f"e1 e4 {FALSE}"
DDI_BODY = sentence(DDI_TEXT, DRUGS, *PAIRS)
DDI_FILES = {"ddi.zip": ddi_corpus(DDI_BODY + sentence(" ", {})), "files.tsv": SPLIT_LIST}

# Pairs and documents

BIOSSES = "pair_id\tsent1\tsent2\tscore\n"
BLUE = "index\tgenre\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
IDEAL = "yesno_label\tquestion\tideal_answer\n"
CANDIDATES = "label\tquestion\tanswer_candidate\n"
JMED = (
    'tag,question,optionA,optionB,answer\nfever,"Asked?\n「One.\nTwo.」",hot,"not, hot",B\nM,"Why?\n「Three」",x,y,A\n'
)
HOC = {
    "README.md": "left alone",
    "text/1.txt": "One .\nTwo .\nThree .\n",
    "labels/1.txt": "<Resisting cell death--Apoptosis ANDCellular energetics< <Resisting cell death--Necrosis--More ",
    "text/2.txt": "Four .\n",
    "labels/2.txt": "< NULL",
}
HOC_EXAMPLES = [
    Labelled("2", ("Four .",), ()),
    Labelled("1", ("One .", "Two .", "Three ."), ("cellular energetics", "cell death")),
]


def nli(**changes) -> str:
    record = {"pairID": "p1", "sentence1": "A", "sentence2": "B", "gold_label": "neutral", "annotator": 3} | changes
    return json.dumps(record) + "\n"


def pubmedqa(**changes) -> str:
    return json.dumps({"id": "1", "sentence1": "A?", "sentence2": "B.", "label": "maybe"} | changes) + "\n"


def read_hoc(folder: Path, reader: Callable = hallmarks.read_hoc, **options) -> list[Labelled]:
    return reader(folder / "corpus.tar.gz", folder / "list.tsv", **options)


# Questions


def squad(*entries: tuple) -> str:
    """Return a file in SQuAD's format. `entries`: (id, question, context, answers or None).

    Each answer is a text and its offset.
    """
    paragraphs = []
    for id, question, context, answers in entries:
        record = {"id": id, "question": question}
        if answers is not None:
            record["answers"] = [{"text": text, "answer_start": start} for text, start in answers]
        paragraphs.append({"context": context, "qas": [record]})
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})


def golden(*entries: tuple, kind: str = "factoid") -> str:
    """Return a golden file of BioASQ. `entries`: (id, question, snippets, exact answer), and a kind if not `kind`."""
    return json.dumps({"questions": [
        {"id": id, "type": kinds[0] if kinds else kind, "body": body, "snippets": [{"text": text} for text in snippets],
         "exact_answer": exact}
        for id, body, snippets, exact, *kinds in entries
    ]})  # fmt: skip


SQUAD = squad(
    ("a", "Who?", "Ann saw Bob.", [("Bob", 8), ("Bob.", 8), ("Bob", 8)]),
    ("b", "Who saw?", "Ann saw Bob.", [("Ann", 0)]),
)
BIOASQ = squad(
    ("q1_002", "What?", "It is aspirin.", [("aspirin", 6)]),
    ("q2_001", "Where?", "In Oxford.", [("Oxford", 3)]),
    ("q1_001", "What?", "Aspirin, or aspirin?", [("aspirin", 12)]),
    ("q1_010", "What?", "An oxide.", []),
)
GOLDEN = golden(("q1", "What?", ["A b", "C"], [["b"]]), ("q2", "Who?", ["D"], ["E"]), ("q3", "?", [], None, "summary"))


def read_golden(*files: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Read the answers of golden files: (id, answers)."""
    return list(questions.collect_golden({path: questions.parse_questions(path) for path in files}).items())


# Words with tags


def tagged(text: str, tags: str = "") -> Sentence:
    """Return a sentence of words between spaces, with their tags, by default all O."""
    return Sentence(text.split(), tags.split() or ["O"] * len(text.split()))


CONLL = "-DOCSTART-\tO\n\nAspirin\tB-Chemical\nhelps\tO\n-DOCSTART- (7)\n\nNo\tO\n\nb\tI-Chemical\n"
PICO_LINES = "-DOCSTART- (5)\n\nten NN O I-PAR\nmen NN O O\n\ndied NN O I-OUT\n"
PUBTATOR = (
    "12|t|Gold and gout\n12|a|It hurts.\n"
    "12\t0\t4\tGold\tChemical\tD1\n12\t9\t13\tgout\tDisease\tD2\n12\tCID\tD1\tD2\n\n"
)
I2B2_TEXT = "Secret pain after the MRI .\n\nSecret aspirin helps his pain , no rash .\n"
CONCEPTS = (
    'c="secret pain" 1:0 1:1||t="problem"\nc="the mri" 1:3 1:4||t="test"\n'
    'c="secret aspirin" 3:0 3:1||t="treatment"\nc="his pain" 3:3 3:4||t="problem"\nc="rash" 3:7 3:7||t="problem"\n'
)
RELATED = 'c="secret aspirin" 3:0 3:1||r="TrAP"||c="his pain" 3:3 3:4\n'
I2B2 = {"txt/note.txt": I2B2_TEXT, "concept/note.con": CONCEPTS, "rel/note.rel": RELATED}
I2B2_LINES = I2B2_TEXT.splitlines()[::2]
NOTE = "Atrium secretly dilated.\n\nNo\npain [**2001-1-1**] now.\n"
PIPES = "note.txt||Disease_Disorder||C0000001||0||6||16||23\nnote.txt||Disease_Disorder||CUI-less||29||33\n"
KNOWTATOR = """<?xml version="1.0" encoding="UTF-8"?>
<annotations textSource="note.txt">
<annotation><mention id="m1"/><annotator id="x">secret</annotator><span start="0" end="6"/><span start="16" end="23"/>
<spannedText>secret</spannedText></annotation>
<classMention id="m1"><hasSlotMention id="s1"/><mentionClass id="Disease_Disorder">secret</mentionClass></classMention>
<stringSlotMention id="s1"><mentionSlot id="CUI"/><stringSlotMentionValue value="C0000001"/></stringSlotMention>
<annotation><mention id="m2"/><span start="29" end="33"/></annotation>
<classMention id="m2"><mentionClass id="Disease_Disorder">secret</mentionClass></classMention>
</annotations>
"""
DISORDERS = [
    Sentence(["Atrium", "secretly", "dilated", "."], ["B-Disorder", "O", "I-Disorder", "O"], "note"),
    Sentence(["No", "pain", "PATTERN", "now", "."], ["O", "B-Disorder", "O", "O", "O"], "note"),
]
ELEMENTS = {"PAR": "participants", "INT": "interventions", "OUT": "outcomes"}


def read_share_clef(folder: Path, *names, **options) -> list[Sentence]:
    return shareclef.read_disorders(folder / "notes", folder / "gold", *names, **options)


def abstract(pmid: str, words: str, split="train", name="{}.AGGREGATED.ann", glue="\n", **labels: str) -> dict:
    """Return the files of an EBM-NLP abstract. `labels`: element -> a digit for each word."""
    files = {f"documents/{pmid}.tokens": glue.join(words.split())}
    for short, digits in labels.items():
        folder = f"annotations/aggregated/starting_spans/{ELEMENTS[short]}/{split}"
        files[f"{folder}/{name.format(pmid)}"] = glue.join(digits)
    return files


EBM_NLP = {
    **abstract("9", "ten men . given zinc died .", INT="0000100", PAR="1101110", OUT="0000011"),
    **abstract("10", "secret", INT="0", PAR="0", OUT="1"),
    **abstract("11", "test .", "test/gold", INT="10", PAR="00", OUT="00"),
}


# Raw text


def citation(pmid: int, text: str, title: str = "", version: int = 1, entered: tuple[int, ...] = ()) -> str:
    """Return a record of PubMed's XML. `entered`: year, month and day when it entered PubMed, if it says so."""
    abstract = f"<Abstract><AbstractText>{text}</AbstractText></Abstract>" if text else ""
    date = "<Year>{}</Year><Month>{}</Month><Day>{}</Day>".format(*entered) if entered else ""
    history = f'<History><PubMedPubDate PubStatus="entrez">{date}</PubMedPubDate></History>' if entered else ""
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID><Article><Journal><Title>J</Title>'
        f"</Journal><ArticleTitle>{title}</ArticleTitle>{abstract}</Article></MedlineCitation>"
        f"<PubmedData>{history}</PubmedData></PubmedArticle>\n"
    )


FORMATS = {
    "chemprot": Golden(read_chemprot, CHEMPROT, CHEMPROT_EXAMPLES),
    "chemprot-blue": Golden(
        lambda folder: read_chemprot(folder, chemprot.read_chemprot_blue), CHEMPROT,
        [CHEMPROT_EXAMPLES[0],
         make_relation("7.T3.T4", "Zinc binds HBA.", {"CHEMICAL T3": (0, 4), "GENE T4": (11, 14)}, "CPR:3",
                       document="7"),
         *CHEMPROT_EXAMPLES[1:]],  # one row per group
    ),
    "chemprot-abstracts": Golden(
        lambda folder: chemprot.read_chemprot_abstracts(folder / FILE), {FILE: ABSTRACTS + "8\tTitle only\t \n"},
        ["Iron and ferritin.", "Zinc binds HBA. Opium HBA x", "Title only"],
    ),
    "chemprot-table": one(
        tabular.read_chemprot_table, "7.T1.T2\t@CHEMICAL$ and @GENE$.\tCPR:9\n7.T2.T3\t@CHEM-GENE$ x\tfalse\n",
        make_relation("7.T1.T2", "@CHEMICAL$ and @GENE$.", {"CHEMICAL": (0, 10), "GENE": (15, 21)}, "CPR:9",
                      masked=True, document="7"),
        make_relation("7.T2.T3", "@CHEM-GENE$ x", {"CHEMICAL": (0, 11), "GENE": (0, 11)}, "false", masked=True,
                      document="7"),
    ),
    "lim": Golden(
        lambda folder: tabular.read_chemprot_lim(folder / FILE, "dev"),
        {FILE: zipped({"dev": lim() + lim("0", "x, ,, bc6entg", "7\tT1\tT3"), "other": ""})},
        [make_relation("7.T2.T1", "bc6entg binds bc6entc .", {"GENE T2": (0, 7), "CHEMICAL T1": (14, 21)}, "CPR:4",
                       masked=True, document="7"),
         # One dummy is missing, so both mentions are at the other.
         make_relation("7.T1.T3", "x , bc6entg", {"CHEMICAL T1": (4, 11), "GENE T3": (4, 11)}, "false",
                       masked=True, document="7")],
    ),
    "bioelectra": one(
        tabular.read_chemprot_bioelectra, BIOELECTRA,
        make_relation("1", "BC6OTHER , BC6ENTC and BC6ENTG", {"CHEMICAL": (11, 18), "GENE": (23, 30)}, "false",
                      masked=True),
        make_relation("2", 'The "old" BC6ENTG', {"CHEMICAL": (10, 17), "GENE": (10, 17)}, "CPR:9", masked=True),
    ),
    "scibert": one(
        chemprot.read_chemprot_scibert, scibert(),
        Relation("1", "It a b-like c >>.", Mention("", "ENTITY", 3, 6), Mention("", "ENTITY", 12, 13), "AGONIST"),
    ),
    "gad": one(tabular.read_gad, GAD, *GAD_EXAMPLES),
    "gad-archive": one(
        tabular.read_gad, tarred({"GAD/1/dev.tsv": "", "GAD/1/train.tsv": GAD}), *GAD_EXAMPLES,
        member="GAD/1/train.tsv",
    ),
    "ddi": Golden(read_ddi, DDI_FILES, DDI_EXAMPLES),
    "ddi-sentences": Golden(lambda folder: read_ddi(folder, ddi.read_ddi_sentences), DDI_FILES, [DDI_TEXT]),
    "ddi-table": one(tabular.read_ddi_table, DDI_TABLE, *DDI_TABLE_EXAMPLES),
    "biosses": one(tabular.read_biosses, BIOSSES + "9\tA b.\tC d.\t2.4\n3\tE.\tF.\t0.0\n",
                   Pair("9", "A b.", "C d.", 2.4), Pair("3", "E.", "F.", 0.0)),
    "medsts": one(tabular.read_medsts, "A\tB\t3.5 \nC\tD\t5\n", Pair("1", "A", "B", 3.5), Pair("2", "C", "D", 5.0)),
    "medsts-blue": one(tabular.read_medsts, BLUE + "0\tx\t-\t-\tA\tB\t1\n", Pair("0", "A", "B", 1.0)),
    "medsts-headed": one(tabular.read_medsts, "sentence1\tsentence2\tscore\nA\tB\t1\n", Pair("1", "A", "B", 1.0)),
    "mednli": one(tabular.read_mednli, nli(), Pair("p1", "A", "B", "neutral")),
    "pubmedqa": one(tabular.read_pubmedqa, pubmedqa(), Pair("1", "A?", "B.", "maybe")),
    # Only line ends end a line, texts keep their spaces, and a byte-order mark is not part of the text.
    "yesno": one(tabular.read_yesno, "\ufeffq1\tA?\u2028\u00a0\tB\u0085\tno\nq2\tA?\tB\tyes\n",
                 Pair("q1", "A?\u2028\u00a0", "B\u0085", "no"), Pair("q2", "A?", "B", "yes")),
    "yesno-ideal": one(tabular.read_yesno_ideal, IDEAL + "1\tA?\tB\n0\tC?\tD\n",
                       Pair("1", "A?", "B", "yes"), Pair("2", "C?", "D", "no")),
    "candidates": one(tabular.read_candidates, CANDIDATES + "0\tA?\tB\n1\tC?\tD\n1\tA?\tB\n",
                      Pair("1", "A?", "B", "0", "1"), Pair("2", "C?", "D", "1", "2"), Pair("3", "A?", "B", "1", "1")),
    "docclsjp": one(
        tabular.read_docclsjp, 'id,text,label,notes\na,"熱、咳\n「疹」",感染症,\nb,胸の痛み,循環器,-\n',
        Labelled("a", ("熱、咳\n「疹」",), ("感染症",)), Labelled("b", ("胸の痛み",), ("循環器",)),
    ),
    "jmed": one(tabular.read_jmed, JMED, Labelled("1", ("Asked?", "One.\nTwo."), ("not, hot",)),
                Labelled("2", ("Why?", "Three"), ("x",))),
    "hoc": Golden(read_hoc, {"corpus.tar.gz": tarred(HOC), "list.tsv": "2.txt,1.txt"}, HOC_EXAMPLES),
    "squad": one(
        questions.read_squad, SQUAD,
        Question("a", "Who?", ("Ann saw Bob.",), ("Bob", "Bob."), (Span(0, 8, 11), Span(0, 8, 12))),
        Question("b", "Who saw?", ("Ann saw Bob.",), ("Ann",), (Span(0, 0, 3),)),
    ),
    "bioasq": one(
        questions.read_bioasq_squad, BIOASQ,  # passages in the order of their numbers
        Question("q1", "What?", ("Aspirin, or aspirin?", "It is aspirin.", "An oxide."), ("aspirin",),
                 (Span(0, 12, 19), Span(1, 6, 13)), FILE),
        Question("q2", "Where?", ("In Oxford.",), ("Oxford",), (Span(0, 3, 9),), FILE),
    ),
    "golden": Golden(lambda folder: [answer for _, answers in read_golden(folder / FILE) for answer in answers],
                     {FILE: GOLDEN}, ["b", "E"]),
    "conll": one(
        conll.read_conll, CONLL, Sentence(["Aspirin", "helps"], ["B-Chemical", "O"]), Sentence(["No"], ["O"], "7"),
        Sentence(["b"], ["I-Chemical"], "7"),
    ),
    "conll-bioes": one(
        conll.read_conll, "# no text\na B-X O E-Y|Z\n\n#\n#hash B-X O S-X\nb B-X O O\nc B-X O L-X\nd B-X O U-X",
        Sentence(["a"], ["I-Y|Z"]), Sentence(["#hash", "b", "c", "d"], ["B-X", "O", "I-X", "B-X"]),
    ),
    "conll-spaces": one(conll.read_conll, "# text = a b\na B\n# of b\nb E\n", Sentence(["a", "b"], ["B", "I"])),
    "conll-merged": one(conll.read_merged, "a\tB-DNA\nb\tI-DNA\nc\tB-cell_line\nd\tO\n",
                        Sentence(["a", "b", "c", "d"], ["B", "I", "B", "O"])),
    "conll-pico": one(conll.read_conll, PICO_LINES, Sentence(["ten", "men"], ["I-PAR", "O"], "5"),
                      Sentence(["died"], ["I-OUT"], "5")),
    "pubtator": one(
        pubtator.read_sentences, PUBTATOR, Sentence(["Gold", "and", "gout"], ["O", "O", "B-Disease"], "12"),
        Sentence(["It", "hurts", "."], ["O"] * 3, "12"), kind="Disease",
    ),
    "pubtator-decomposed": one(
        pubtator.read_sentences,
        unicodedata.normalize("NFD", "1|t|Naïve\n1|a|Sjögren é.\n1\t7\t15\tSjögren\tDisease\tD1\n"),
        Sentence(["Naïve"], ["O"], "1"), Sentence(["Sjögren", "é", "."], ["B-Disease", "O", "O"], "1"), kind="Disease",
    ),
    "i2b2-concepts": Golden(i2b2.read_concepts, {name: I2B2[name] for name in list(I2B2)[:2]}, [
        Sentence(I2B2_LINES[0].split(), ["B-problem", "I-problem", "O", "B-test", "I-test", "O"], "note"),
        Sentence(I2B2_LINES[1].split(), ["B-treatment", "I-treatment", "O", "B-problem", "I-problem", "O", "O",
                                         "B-problem", "O"], "note"),
    ]),
    "i2b2-relations": Golden(i2b2.read_relations, I2B2, [
        make_relation("note.l0.l1", I2B2_LINES[0], {"PROBLEM l0": (0, 11), "TEST l1": (18, 25)}, "false",
                      document="note"),
        make_relation("note.l2.l3", I2B2_LINES[1], {"TREATMENT l2": (0, 14), "PROBLEM l3": (21, 29)}, "TrAP",
                      document="note"),
        make_relation("note.l2.l4", I2B2_LINES[1], {"TREATMENT l2": (0, 14), "PROBLEM l4": (35, 39)}, "false",
                      document="note"),
        make_relation("note.l3.l4", I2B2_LINES[1], {"PROBLEM l3": (21, 29), "PROBLEM l4": (35, 39)}, "false",
                      document="note"),
    ]),
    "share-clef": Golden(read_share_clef, {"notes/note.txt": NOTE, "gold/note.pipe.txt": PIPES}, DISORDERS),
    "share-clef-txt": Golden(read_share_clef, {"notes/note.txt": NOTE, "gold/note.txt": PIPES}, DISORDERS),
    "share-clef-xml": Golden(read_share_clef, {"notes/note.txt": NOTE, "gold/note.txt.knowtator.xml": KNOWTATOR},
                             DISORDERS),
    "ebm-nlp": Golden(lambda folder: pico.read_elements(folder, "train"), EBM_NLP, [
        Sentence(["ten", "men", "."], ["I-PAR", "I-PAR", "O"], "9"),
        Sentence(["given", "zinc", "died", "."], ["I-PAR", "I-INT|I-PAR", "I-OUT|I-PAR", "I-OUT"], "9"),
        Sentence(["secret"], ["I-OUT"], "10"),
    ]),
}  # fmt: skip
