"""Write made-up/: data in the real formats, so that the whole study runs without any download.

python -m tools.made_up [FOLDER]
"""

import random
import sys
from pathlib import Path

from lib import artefacts
from lib.places import ROOT, show_path
from tools.made_up import corpora, language, relations, tagging, texts
from tools.made_up.language import AMBIGUOUS, MEDICAL, NOTICE, Lexicon, make_sentence


def write(folder: Path, seed: int = 20) -> None:
    """Write the whole data folder of scale smoke; the same seed gives the same bytes."""
    rng = random.Random(seed)
    names = Lexicon(seed).names
    with artefacts.whole_folder(folder) as new:
        (new / "README.md").write_text(NOTICE)
        test_texts = []
        # Training sets use a third of the names and test sets all, so that knowing names from pretraining helps.
        seen = {kind: rng.sample(all_names, len(all_names) // 3) for kind, all_names in names.items()}
        for key, kind, entity in (("bc5cdr-chem", "drug", "Chemical"), ("ncbi-disease", "disease", "Disease")):
            for split, size, split_names in (("train", 150, seen), ("dev", 100, names), ("test", 200, names)):
                # The opening makes each sentence unique, so that no pretraining text holds it by chance.
                sentences = [
                    [(word, "") for word in f"In series {split} {number} ,".split()]
                    + make_sentence(rng, MEDICAL + 2 * AMBIGUOUS, split_names)
                    for number in range(size)
                ]
                tagging.write_conll(new / "ner" / key / f"{split}.tsv", sentences, kind, entity)
                if split == "test":
                    test_texts += [
                        " ".join(word for word, _ in sentence) for sentence in sentences if len(sentence) > 12
                    ]
        corpora.write(new / "corpora", rng, names, test_texts)
        for module in (tagging, relations, texts):
            module.write(new, rng, names)
        language.write_folder(new / "own")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "made-up"
    write(folder)
    print(f"made-up data written to {show_path(folder)}")
