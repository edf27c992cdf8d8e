"""What pretraining predicts: batches of packed, masked blocks, and the loss on them."""

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lib import vocabularies

UNMASKED = -100  # the label that cross-entropy ignores


class MaskedBlocks:
    """Batches for masked language modelling; batch i depends on the seed and on i alone, so a run can resume.

    Each item is a dict of `input_ids` and `labels`, both (batch, length) of int64; labels are UNMASKED where
    nothing is to be predicted. Blocks come in a new random order in every epoch, with new masks.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        tokenizer: PreTrainedTokenizerBase,
        *,
        length: int,
        batch_size: int,
        steps: int,
        masked_share: float,
        whole_words: bool,
        seed: int,
        shuffle: bool = True,
    ):
        """`tokens`: one long row of piece ids, cut into blocks of `length` less [CLS] and [SEP]."""
        self.tokens, self.tokenizer = tokens, tokenizer
        self.width = length - 2
        self.blocks = len(tokens) // self.width
        if self.blocks < 1:
            raise ValueError(f"{len(tokens)} tokens do not fill one block of {self.width}")
        self.batch_size, self.steps, self.seed, self.shuffle = batch_size, steps, seed, shuffle
        self.masked_share = masked_share
        flags = np.array(vocabularies.continuation_flags(tokenizer))
        self.continues = flags if whole_words else np.zeros_like(flags)
        self.maskable = np.ones(len(tokenizer), dtype=bool)
        self.maskable[tokenizer.all_special_ids] = False

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        first = step * self.batch_size
        rng = np.random.default_rng([self.seed, step])
        rows = np.stack([self.block(n) for n in range(first, first + self.batch_size)])
        inputs, labels = zip(*(self.mask(row, rng) for row in rows), strict=True)
        return {"input_ids": torch.from_numpy(np.stack(inputs)), "labels": torch.from_numpy(np.stack(labels))}

    def block(self, n: int) -> np.ndarray:
        """The n-th block in the order of training, with [CLS] and [SEP]."""
        epoch, position = divmod(n, self.blocks)
        index = self.order(epoch)[position] if self.shuffle else position
        inner = self.tokens[index * self.width : (index + 1) * self.width].astype(np.int64)
        return np.concatenate([[self.tokenizer.cls_token_id], inner, [self.tokenizer.sep_token_id]])

    def order(self, epoch: int) -> np.ndarray:
        """The order of the blocks in an epoch, kept until another epoch is asked for."""
        if getattr(self, "_order", (None,))[0] != epoch:
            rng = np.random.default_rng([self.seed, epoch, 1])
            self._order = (epoch, rng.permutation(self.blocks))
        return self._order[1]

    def mask(self, row: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Choose words at random until the share of pieces is reached; of the chosen pieces 80% become [MASK],
        10% a random piece, 10% stay (Devlin et al. 2019, section 3.1). A word is chosen whole or not at all."""
        starts = np.flatnonzero(self.maskable[row] & ~self.continues[row])
        ends = np.append(starts[1:], len(row))
        wanted = max(1, round(self.masked_share * int(self.maskable[row].sum())))
        chosen: list[int] = []
        for word in rng.permutation(len(starts)):
            pieces = [i for i in range(starts[word], ends[word]) if self.maskable[row[i]]]
            if len(chosen) + len(pieces) <= wanted:
                chosen += pieces
            if len(chosen) == wanted:
                break
        inputs, labels = row.copy(), np.full_like(row, UNMASKED)
        labels[chosen] = row[chosen]
        draw = rng.random(len(chosen))
        random_pieces = rng.integers(0, len(self.tokenizer), len(chosen))
        inputs[chosen] = np.where(
            draw < 0.8, self.tokenizer.mask_token_id, np.where(draw < 0.9, random_pieces, row[chosen])
        )
        return inputs, labels


def masked_lm_loss(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross-entropy at the masked positions. Logits are computed there only: the output layer is most of
    the work of a small model, and 85% of it would be thrown away."""
    hidden = model.base_model(batch["input_ids"]).last_hidden_state
    masked = batch["labels"] != UNMASKED
    return functional.cross_entropy(model.cls(hidden[masked]).float(), batch["labels"][masked])
