"""The claims of the papers: how each is tested, and what comes of it. Their words are in published/claims.csv."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from IPython.display import HTML

from lib import statistics
from lib.errors import unknown
from lib.study import deciders, pairs, params, paths, results, show
from lib.study.deciders import exact, faster, follows
from lib.study.judgement import Judgement, Test
from lib.study.pairs import Pairs, all_of, paired, paired_runs
from lib.study.trends import Trend, trend

if TYPE_CHECKING:
    from lib.study import Study

VERSION = 5  # raised by hand when a test changes, or what it finds
COLUMNS = ["claim", "paper", "statement", "test", "paper_effect", "paper_effect_here", "effect", "ci_low", "ci_high",
           "n", "p", "unit", "n_sets", "n_pretrainings", "n_seeds", "floor", "verdict", "note",
           "not_tested"]  # fmt: skip
DIGITS = dict.fromkeys(["paper_effect", "paper_effect_here", "effect", "ci_low", "ci_high"], 2) | {"p": 4}
VERDICTS = {
    "holds": "hold", "fails": "fail", "points that way": "point that way",
    "points the other way": "point the other way", "undecided": "undecided", "n/a": "not measured here (n/a)",
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A line of published/claims.csv, and its test; without one `not_tested` says why, else what else it says."""

    key: str
    test: Test | None
    not_tested: str = ""


# Models and protocols that several claims compare.
BASE, SMALL = ("bert-general-pubmed", "lee"), ("bio-electra-plus", "ozyurt")
MEDBERT, JAPANESE = "BERT (prop sP + W + BC: AmpVocab)", "BERT (prop jpCR + jpW: AmpVocab) SimPT+AmpV"
NEEDS_NOTES = "pretraining on the clinical notes of MIMIC-III, which take credentials"

# In the order of published/claims.csv. Margins are in points, and were set before any result that they judge; that of a
# ratio of times is a fifth of it.
CLAIMS = (
    Claim("gu-vocab-whole", exact("gu-1")),
    Claim("gu-shorter-input", Test(deciders.decide_shorter_inputs, tables=("gu-8",))),
    Claim("gu-scratch-beats-continual",
          paired("gu-9", ("PubMed, PubMed vocab", "Wiki+Books then PubMed, Wiki+Books vocab"))),
    Claim("gu-half-compute",
          paired("gu-9", ("PubMed (half time), PubMed vocab", "Wiki+Books then PubMed, Wiki+Books vocab"),
                 relation="as good as", margin=1)),
    Claim("gu-vocab-matters",
          paired("gu-7", ("PubMed vocab, word-piece masking", "Wiki+Books vocab, word-piece masking"),
                 ("PubMed vocab, whole-word masking", "Wiki+Books vocab, whole-word masking")),
          "the vocabulary alone, since models of the general one continue BERT and see less of PubMed"),
    Claim("gu-whole-word",
          paired("gu-7", ("Wiki+Books vocab, whole-word masking", "Wiki+Books vocab, word-piece masking"),
                 ("PubMed vocab, whole-word masking", "PubMed vocab, word-piece masking"))),
    Claim("gu-general-first-no-gain",
          paired("gu-9", ("PubMed, PubMed vocab", "Wiki+Books then PubMed, PubMed vocab"),
                 relation="as good as", margin=0.5)),
    Claim("gu-full-text-no-gain",
          all_of(paired("gu-10", ("PubMed", "PubMed+PMC"), relation="as good as", margin=0.5),
                 paired("gu-10", ("PubMed+PMC (longer training)", "PubMed")))),
    Claim("gu-adversarial-no-gain",
          all_of(paired("gu-11", ("PubMedBERT", "PubMedBERT + adversarial")),
                 paired("gu-11", ("PubMedBERT + adversarial", "PubMedBERT"), only=["BIOSSES"]))),
    Claim("gu-linear-head",
          paired("gu-12", ("Linear layer", "Bi-LSTM"), unit="checkpoint", relation="as good as", margin=0.5),
          "the CRF, of which the paper prints no score"),
    Claim("gu-tagging-scheme",
          paired("gu-13", ("BIO", "BIOUL"), ("BIO", "IO"), unit="checkpoint", relation="equals", margin=0.5)),
    Claim("gu-original-text-fails",
          all_of(paired("gu-14", ("entity dummification / [CLS]", "original / [CLS]"),
                        ("entity dummification / MENTION", "original / [CLS]"),
                        ("original / MENTION", "original / [CLS]"), ("entity markers / [CLS]", "original / [CLS]"),
                        ("entity markers / MENTION", "original / [CLS]"),
                        ("entity markers / ENTITY START", "original / [CLS]"), unit="checkpoint"),
                 paired("gu-14", ("entity dummification / [CLS]", "entity markers / [CLS]"),
                        ("entity dummification / MENTION", "entity markers / MENTION"), unit="checkpoint",
                        relation="equals", margin=1))),
    Claim("gu-attention-shattering", Test(deciders.decide_shattered, tables=("gu-figure-3",))),
    Claim("gu-clinical-notes-no-help", None, NEEDS_NOTES),
    Claim("gu-general-corpus-size", paired("gu-6", ("PubMedBERT uncased", "RoBERTa cased"))),
    Claim("gu-blurb-arithmetic", follows("gu-pubmedbert", "average")),
    Claim("lee-beats-bert-ner", paired("lee-4", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="F1", ahead=9)),
    Claim("lee-beats-bert-re", paired("lee-5", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="F1")),
    Claim("lee-beats-bert-qa", paired("lee-6", ("BioBERT (+PubMed)", "BERT (Wiki+Books)"), metric="MRR")),
    Claim("lee-corpus-size", trend(Trend("lee-figure-2")), "that it levels off"),
    Claim("lee-steps", trend(Trend("lee-figure-3")), "that it levels off"),
    Claim("lee-small-sets-gain",
          trend(Trend("lee-figure-4", only=("BioBERT (+PubMed+PMC)",), falls=True),
                Trend("lee-figure-4-one-set", falls=True)),
          "that the gains are large"),
    Claim("lee-bio-beats-bioes",
          paired_runs(BASE, ("bert-general-pubmed", "lee-bioes"),
                      ["ncbi-disease", "bc5cdr-disease", "bc5cdr-chem", "bc2gm"], unit="checkpoint")),
    # With their own words; the paper's ChemProt has dummies in its files.
    Claim("lee-anonymise-beats-tags",
          paired_runs(BASE, ("bert-general-pubmed", "lee-markers"), ["chemprot", "ddi"], unit="checkpoint")),
    Claim("lee-squad-first",
          paired_runs(BASE, ("bert-general-pubmed", "lee-no-squad"),
                      ["bioasq-4b-factoid", "bioasq-5b-factoid", "bioasq-6b-factoid", "bioasq-7b-factoid"],
                      unit="checkpoint")),
    Claim("lee-averages", follows("lee-biobert", "F1", "average", "difference")),
    Claim("wada-amplified-terms", Test(deciders.decide_whole_words, vocabularies=deciders.WHOLE, by_interval=True)),
    Claim("wada-core-share", Test(deciders.decide_core_share, tables=("wada-figure-3",))),
    Claim("wada-simpt-beats-continual",
          all_of(paired("wada-6", (JAPANESE, "BERT (jpW/ jpCR: jpWVocab)"), relation="as good as", margin=1),
                 paired("wada-7", (MEDBERT, "BERT (W + BC/ sP: BaseVocab)"), relation="as good as", margin=1))),
    Claim("wada-small-only-worst",
          all_of(paired("wada-7", (MEDBERT, "BERT (sP: BaseVocab)")),
                 paired("wada-7", ("BERT (W + BC/ sP: BaseVocab)", "BERT (sP: BaseVocab)")))),
    Claim("wada-amplified-helps",
          all_of(paired("wada-6", (JAPANESE, "BERT (prop jpCR + jpW) SimPT only")),
                 paired("wada-8", ("BERT (prop fP+oP) SimPT+AmpV", "BERT (prop fP+oP) SimPT only"),
                        relation="as good as", margin=0.5))),
    Claim("wada-transformers-beat-baselines",
          all_of(*(paired("wada-6", (encoder, "TF-IDF + SVM"), (encoder, "CNN"), (encoder, "biLSTM with SA"))
                   for encoder in (JAPANESE, "BERT (jpW: jpWVocab)")))),
    Claim("wada-totals", follows("wada-oubiobert", "average", "difference")),
    Claim("naseem-beats-albert",
          paired_runs(("bioalbert-base1", "naseem"), ("albert-base", "naseem"),
                      ["bc5cdr-disease", "bc5cdr-chem", "jnlpba-biobert", "linnaeus", "ncbi-disease", "s800", "bc2gm",
                       "ddi", "euadr", "gad-biobert", "biosses", "hoc-blue"], ahead=12)),
    Claim("naseem-size", Test(deciders.decide_sizes, tables=("parameters",))),
    Claim("naseem-faster", faster("step-times", ["bioalbert-base1", "bioalbert-large1"], than="bert-general-pubmed")),
    Claim("naseem-mimic-hurts", None, NEEDS_NOTES),
    Claim("naseem-large-best", paired("naseem-7", ("Large1", "Base1"), ("Large1", "Base2"), ("Large1", "Large2"))),
    Claim("naseem-ner-gain", Test(deciders.decide_entity_gain, unit="recipe", tables=("protocols",), by_interval=True)),
    Claim("naseem-arithmetic", follows("naseem-bioalbert", "average", "difference", "text")),
    Claim("ozyurt-small-comparable",
          all_of(paired_runs(SMALL, ("bert-general", "ozyurt-bert"),
                             ["bioasq-8b-factoid", "bioasq-8b-yesno", "chemprot-bioelectra", "gad-bioelectra"],
                             relation="as good as", margin=1),
                 paired("ozyurt-5", ("Bio-ELECTRA++", "BERT Base"), relation="as good as", margin=0.01))),
    Claim("ozyurt-second-stage",
          paired_runs(SMALL, ("bio-electra", "ozyurt"),
                      ["bc4chemd", "bc2gm", "ncbi-disease", "linnaeus", "bioasq-8b-factoid", "bioasq-8b-yesno",
                       "bioasq-reranker", "chemprot-bioelectra", "gad-bioelectra"], ahead=8)),
    Claim("ozyurt-steps", trend(Trend("ozyurt-figure-1"))),
    # Above the mean of both: nearer to BERT than to what it was.
    Claim("ozyurt-tuning",
          paired("ozyurt-7", ("Bio-ELECTRA++ opt", "Bio-ELECTRA++", "BERT"), metric="F1",
                 only=["BC4CHEMD", "BC2GM", "NCBI disease", "LINNAEUS"])),
    Claim("ozyurt-inference", faster("inference-times", ["bio-electra"], than="bert-uncased", ratio=8, margin=1.6)),
    Claim("ozyurt-weighted-loss",
          paired("ozyurt-5", ("ELECTRA Small++", "ELECTRA Small++ (weighted)"),
                 ("Bio-ELECTRA", "Bio-ELECTRA (weighted)"), ("Bio-ELECTRA++", "Bio-ELECTRA++ (weighted)"),
                 unit="checkpoint", relation="as good as", margin=0.01)),
    Claim("ozyurt-one-class-runs", None, "runs that collapse are marked, and not counted by the answer that they give"),
    Claim("ozyurt-sample-efficiency", None, "no two models here differ in their objective alone"),
    Claim("ozyurt-arithmetic", follows("ozyurt-bioelectra", "F1", "two tables")),
)  # fmt: skip
NOT_TESTED = {claim.key: claim.not_tested for claim in CLAIMS}


def find(key: str) -> Claim:
    """A claim by its key; StudyError with the nearest names for no such one."""
    found = next((claim for claim in CLAIMS if claim.key == key), None)
    if found is None:
        raise unknown("claim", key, NOT_TESTED)
    return found


def list_runs(study: "Study") -> list[params.RunKey]:
    """Every run that claims compare and no table names, where it can be made."""
    parts = [part for claim in CLAIMS if claim.test for part in claim.test.parts]
    shown = [pairs.tabulate_pairs(part, study) for part in parts if isinstance(part, Pairs) and part.runs]
    made = [cells[cells["why_not"] == ""][["model", "dataset", "protocol"]] for cells in shown]
    return list(dict.fromkeys(run for runs in made for run in runs.itertuples(index=False, name=None)))


def judge(study: "Study") -> pd.DataFrame:
    """Every claim of the papers with its test, effects, interval and verdict: a line each, of COLUMNS.

    `p` is corrected for all the claims that an interval decides, whether or not they have been measured; a verdict that
    does not survive it is weakened.
    """
    lines = [judge_alone(claim, study) for claim in CLAIMS]
    family = [line for line, claim in zip(lines, CLAIMS, strict=True) if claim.test and claim.test.by_interval]
    ps = statistics.correct([1.0 if np.isnan(line["p"]) else line["p"] for line in family])
    for line, p in zip(family, ps, strict=True):
        if not np.isnan(line["p"]):
            line["p"] = p
            if line["verdict"] in ("holds", "fails") and p >= statistics.SIGNIFICANT:
                line["verdict"] = statistics.weaken(line["verdict"])
                line["note"] = f"not after correction for {len(family)} claims; {line['note']}"
    return tabulate(lines)


def judge_one(study: "Study", key: str) -> pd.Series:
    """The line of one claim as of `judge`, before p is corrected for the number of claims; StudyError for none such."""
    return tabulate([judge_alone(find(key), study)]).iloc[0]


def show_of(study: "Study", table: str) -> HTML:
    """The claims that are tested by a published table or figure: a line each, with the paper's effect beside ours."""
    rows = []
    for claim in (one for one in CLAIMS if one.test and one.test.parts and table in one.test.tables):
        line = judge_one(study, claim.key)
        interval = "" if np.isnan(line["ci_low"]) else f"{line['ci_low']:+.2f} to {line['ci_high']:+.2f}"
        rows.append({"claim": line["statement"], "paper, all its sets": line["paper_effect"],
                     "paper, our sets": line["paper_effect_here"], "ours": line["effect"], "95% interval": interval,
                     "runs": line["n"], "verdict before correction": line["verdict"],
                     "not tested": claim.not_tested})  # fmt: skip
    return show.table(rows)


def judge_alone(claim: Claim, study: "Study") -> dict:
    """The line of one claim, its p not corrected and its verdict not limited."""
    test = claim.test
    judged = test.decide(study) if test else Judgement(note="not tested yet")
    if test and test.parts and judged.n and claim.not_tested:
        judged = replace(judged, note=f"{judged.note}; not tested: {claim.not_tested}")
    if test and study.budget.made_up:
        judged = replace(judged, verdict="n/a", note=results.MADE_UP)
    printed = results.read_claims().set_index("claim").loc[claim.key, ["paper", "statement", "test"]].to_dict()
    said = {"unit": test.unit if test else "", "not_tested": claim.not_tested}
    return {"claim": claim.key} | printed | asdict(judged) | said


def tabulate(lines: list[dict]) -> pd.DataFrame:
    """Lines as a table, numbers rounded and verdicts limited."""
    for line in lines:
        line["verdict"] = statistics.limit(line["verdict"], line["unit"] == "recipe", line["n_pretrainings"])
    return pd.DataFrame(lines, columns=COLUMNS).round(DIGITS)


def read(scale: str) -> pd.DataFrame:
    """The claims as they were judged; without verdicts before notebook 01 has run."""
    found = results.find_table(paths.table(scale, "claims"))
    return results.read_claims().assign(n=0, verdict="n/a", note="") if found is None else found


def describe_verdict(claim: dict) -> str:
    """A verdict as a sentence has it: that a claim holds is said of what of it was tested, and of few sets of these."""
    said = {"fails": "does not hold"}.get(claim["verdict"], claim["verdict"])
    if claim["verdict"] in ("holds", "fails") and 0 < claim["n_sets"] < statistics.SETS:
        said += " on these sets"
    in_part = NOT_TESTED.get(claim["claim"]) and claim["verdict"] in ("holds", "points that way")
    return f"{said} as far as tested" if in_part else said


def list_recipes(judged: pd.DataFrame) -> list[str]:
    """What was found of each claim about recipes of pretraining that was measured, a line each (Markdown)."""
    papers = results.list_papers()
    measured = judged.reindex(columns=COLUMNS).query("unit == 'recipe' and n_sets > 0")
    return [
        f"- *{claim['statement']}* ({papers[claim['paper']]}): **{describe_verdict(claim)}**, {claim['effect']:+.2f} "
        f"points ({claim['ci_low']:+.2f} to {claim['ci_high']:+.2f}), {claim['n_pretrainings']} pretrainings a side; "
        f"the paper prints {claim['paper_effect_here']:+.2f} on these sets and {claim['paper_effect']:+.2f} on all of "
        f"its own. Corrected p {claim['p']:.3f}; {claim['note']}."
        for claim in measured.to_dict("records")
    ]


def tally(judged: pd.DataFrame) -> pd.DataFrame:
    """The claims by verdict, of each paper and of all."""
    lines = []
    for paper, name in [*results.list_papers().items(), (None, "all")]:
        verdicts = judged.loc[judged["paper"].eq(paper) | (paper is None), "verdict"].tolist()
        counts = {words: verdicts.count(verdict) for verdict, words in VERDICTS.items()}
        lines.append({"paper": name, "claims": len(verdicts)} | counts)
    return pd.DataFrame(lines)


def describe(judged: pd.DataFrame) -> str:
    """The claims by verdict in one sentence (Markdown)."""
    counts = judged["verdict"].value_counts()
    said = [f"{counts.get(verdict, 0)} {name}" for verdict, name in VERDICTS.items()]
    return f"Of {len(judged)} claims in five papers: {', '.join(said)}."
