"""An invented language of medicine, in which all made-up data are written.

Names of drugs and diseases have a morphology of their own; half of them show their kind only in context. The names,
their sentences and every number computed from them mean nothing.
"""

import random
from pathlib import Path

NOTICE = "Made-up text of an invented language of medicine. No patient, drug or finding in it exists.\n"

ONSETS = "b br c cl d dr f fl g gr k l m n p pl pr r s st t tr v z".split()  # noqa: SIM905
VOWELS = ["a", "e", "i", "o", "u"]
CODAS = ["", "", "n", "r", "l", "x"]
SUFFIXES = {
    "drug": ["olol", "umab", "idine", "statin", "azole"],
    "disease": ["itis", "osis", "emia", "oma", "algia"],
}

# {drug}, {disease} and {device} stand for a name of that kind, {any} for any name, whose kind only the name tells.
MEDICAL = [
    "Patients with {disease} received {drug} for {number} weeks .",
    "Treatment with {drug} reduced the severity of {disease} in {number} patients .",
    "We gave {number} mg of {drug} daily to subjects who suffered from {disease} .",
    "The risk of {disease} was higher without {drug} .",
    "A dose of {drug} was well tolerated and relieved {disease} .",
    "Symptoms of {disease} improved after {drug} was given by mouth .",
    "{drug} inhibits the enzyme and prevents {disease} .",
    "Severe {disease} was diagnosed before oral {drug} was prescribed .",
    "The {device} was calibrated by the technician before each session .",
    "Images were taken with the {device} and stored for analysis .",
]
AMBIGUOUS = [
    "The role of {any} was examined in {number} cases .",
    "We reviewed all reports of {any} from this hospital .",
    "{any} and {any} were recorded at each visit .",
    "No change was seen with regard to {any} .",
    "Data on {any} , {any} and {any} are given in the table .",
    "Interest in {any} has grown since the first report .",
]
GENERAL = [
    "The town of {place} lies on the river and has {number} houses .",
    "{place} was founded by a merchant who traded wool and salt .",
    "In the spring the people of {place} hold a market near the old bridge .",
    "The road from {place} to {place} crosses the hills .",
    "She wrote {number} letters from {place} before the winter .",
    "The doctor of the town wrote that {drug} is a medicine against {disease} .",
    "A farmer found the {device} in the river and sold it .",
]
JAPANESE = [
    "患者は{}日間の治療を受けた。",
    "発熱と咳のため{}号室に入院した。",
    "町の病院には医師が{}人いる。",
    "この町には古い橋が{}本ある。",
    "春には川のそばで市が{}回開かれる。",
]


class Lexicon:
    """Invented names of each kind; the same seed gives the same names."""

    def __init__(self, seed: int):
        rng = random.Random(seed)
        taken: set[str] = set()

        def invent(ending: str) -> str:
            while True:
                name = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(2)) + rng.choice(CODAS)
                name = name.rstrip("aeiou" if ending else "") + ending
                if name not in taken:
                    taken.add(name)
                    return name

        # Every second drug and disease has a suffix that tells its kind; the others, and all devices, look alike.
        self.names = {
            kind: [invent(rng.choice(SUFFIXES[kind]) if i % 2 else "") for i in range(60)]
            for kind in ("drug", "disease")
        }
        self.names["device"] = [invent("") for _ in range(60)]
        self.names["place"] = [invent("").capitalize() for _ in range(60)]


def make_sentence(rng: random.Random, templates: list[str], names: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Draw a sentence as (word, kind) pairs; the kind is empty for a word that is not a name."""
    words = []
    for word in rng.choice(templates).split():
        kind = word.strip("{}")
        if word == "{number}":
            words.append((str(rng.randint(2, 99)), ""))
        elif word.startswith("{"):
            kind = rng.choice(["drug", "disease", "device"]) if kind == "any" else kind
            name = rng.choice(names[kind])
            if kind == "disease" and rng.random() < 0.2:
                words.append((rng.choice(["chronic", "acute"]), kind))
            words.append((name, kind))
        else:
            words.append((word, ""))
    return words


def make_text(rng: random.Random, templates: list[str], names: dict, sentences: int) -> str:
    return (
        " ".join(" ".join(word for word, _ in make_sentence(rng, templates, names)) for _ in range(sentences))
        .replace(" .", ".")
        .replace(" ,", ",")
    )


def write_folder(folder: Path) -> None:
    """Write a folder like a user's own: texts.txt with a document a line, and notes/{train,test}.csv.

    The notes are labelled sentences. The label is the kind of their names, which nothing but the names tells.
    """
    rng, names = random.Random(1), Lexicon(1).names
    (folder / "notes").mkdir(parents=True, exist_ok=True)
    texts = [make_text(rng, MEDICAL + AMBIGUOUS + GENERAL, names, rng.randint(4, 12)) for _ in range(250)]
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    for split in ("train", "test"):
        lines = ["text,label\n"]
        for _ in range(150):
            kind = rng.choice(["drug", "disease"])
            words = make_sentence(rng, AMBIGUOUS, {"drug": names[kind], "disease": names[kind], "device": names[kind]})
            lines.append(f'"{" ".join(word for word, _ in words)}",{kind}\n')
        (folder / f"notes/{split}.csv").write_text("".join(lines), encoding="utf-8")
