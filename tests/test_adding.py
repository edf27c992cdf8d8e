"""Tests of docs/adding.md: its diffs apply, and what they add becomes part of the study."""

import json
import re
import shutil
import subprocess

from conftest import Study
from golden import write

from lib.study import paths

CHECK = """
import json
from lib.running import plan
from lib.study import open_study, published, results
study = open_study("paper")
wanted = plan.Plan("smoke", ["pubmedbert-many-masks", "lee-appendix-1", "masks-2"])
print(json.dumps({
    "vocabularies": wanted.jobs["vocabulary"],
    "tables": [(wanted.notebook("table", *key), wanted.table_key(*key)) for key in wanted.jobs["table"]],
    "runs": published.list_table_runs(study, "masks-2"),
    "masked": study.model("pubmedbert-many-masks").settings.masked_share,
    "words": [sentence.words for sentence in study.dataset("plant-names").load("train")],
    "why not": open_study("laptop").why_missing("bc2gm"),
    "epochs": study.protocol("masks", "plant-names").epochs,
    "papers": list(results.list_papers())[-1],
    "printed": study.published("lee-appendix-1")[["published", "model", "protocol"]].values.tolist(),
}))
"""


def test_every_diff_applies_and_what_it_adds_is_planned(tmp_path, monkeypatch):
    folder = tmp_path / "study"
    copy = Study(folder)
    copy.copy(paths.PARAMS.joinpath("scales/smoke.yaml").read_text())
    page = (paths.ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    diffs = re.findall(r"^```diff\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(diffs) == 4
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for diff in diffs:
        subprocess.run(["git", "apply"], cwd=folder, input=diff.encode(), check=True)
    ((source, target),) = re.findall(r"cp (notebooks/\S+) (notebooks/[^\s`]+)", page)
    shutil.copy(folder / source, folder / target)
    for split in ("train", "dev", "test"):
        for name in ("bc2gm", "plant-names"):
            write(folder / f"data/ner/{name}/{split}.tsv", "Garlic\tB\nhelps\tO\n")
    monkeypatch.setenv("STUDY_DATA", str(folder / "data"))
    answers = json.loads(copy.run_code(CHECK))
    assert ["pubmed-uncased"] in answers["vocabularies"]  # the model's vocabulary
    assert answers["tables"] == [["43_many_masks", f"table={key}"] for key in ("lee-appendix-1", "masks-2")]
    assert answers["runs"] == [[model, "bc2gm", "masks"] for model in ("pubmedbert", "pubmedbert-many-masks")]
    assert (answers["masked"], answers["words"], answers["why not"]) == (0.4, [["Garlic", "helps"]], "")
    assert answers["epochs"] and answers["papers"] == "masks-maskbert"
    assert answers["printed"] == [[88.72, "bert-general-pubmed", "lee"], [88.1, "pubmedbert-many-masks", "lee"]]
