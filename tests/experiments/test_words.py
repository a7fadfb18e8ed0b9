"""Texts as numbers of words, and the questions asked, in experiments/words.py."""

import struct
from itertools import islice

import pytest
import torch
from small_encoder import EVERYWHERE, some_words, tiny

from experiments import words
from experiments.positions.run import Setting, held_out_batches, training_batches


def test_masked_words_are_hidden_and_asked_for() -> None:
    windows = torch.arange(2, 2 + 3 * 13).view(3, 13)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = words.asked("masked", windows, draw, 4)
    read = windows[:, :-1]
    assert (tokens == words.MASK).sum(dim=1).tolist() == [4, 4, 4]
    assert torch.equal(tokens.flatten()[target_indices], torch.full((12,), words.MASK))
    assert torch.equal(tokens.flatten().scatter(0, target_indices, answers).view(3, 12), read)


def test_next_words_are_asked_for() -> None:
    windows = torch.arange(2, 2 + 3 * 13).view(3, 13)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = words.asked("next", windows, draw, 4)
    assert torch.equal(tokens, windows[:, :-1])
    assert torch.equal(answers, tokens.flatten()[target_indices] + 1)
    assert (target_indices.view(3, 4) // 12 == torch.arange(3)[:, None]).all()


def test_all_ways_see_the_same_batches() -> None:
    text = torch.arange(2, 2000)
    of_add, of_rotary = (
        next(training_batches(text, Setting(way, seed=3))) for way in ("add", "rotary")
    )
    assert all(map(torch.equal, of_add, of_rotary))


def test_the_text_is_numbered_word_by_word() -> None:
    text = words.sonnets()
    assert text.vocabulary[:2] == ["<unknown>", "<mask>"]
    assert len(text.vocabulary) <= words.VOCABULARY
    start = " ".join(text.vocabulary[i] for i in text.training[6:12])
    assert start == "from fairest creatures we desire increase"
    assert " ".join(text.vocabulary[i] for i in text.held_out[:4]) == "thus can my love"
    assert words.MASK not in text.training


@pytest.mark.parametrize(("task", "asked"), [("masked", 7), ("next", 48)])
def test_held_out_windows_lie_one_after_the_other(task: str, asked: int) -> None:
    text = torch.arange(2, 2 + 5 * 48 + 1)
    setting = Setting("add", task=task)
    ((tokens, target_indices, answers),) = held_out_batches(text, setting)
    assert answers.shape == (5 * asked,)
    read = (
        tokens.flatten().scatter(0, target_indices, answers)
        if task == "masked"
        else tokens.flatten()
    )
    assert torch.equal(read, text[:-1])
    ((fewer, _, _),) = held_out_batches(text, setting, every=2)
    assert len(fewer) == 3


def test_neighbours_are_the_word_before_the_same_and_the_next() -> None:
    """Of ALiBi's heads, with their mask, every second looks back only, and the others ahead."""
    target_indices = EVERYWHERE
    batch = words.Batch(some_words(), target_indices, some_words().flatten())
    for layer in words.neighbours(tiny("alibi"), batch):
        for head, (before, same, after) in enumerate(layer):
            assert same > 0
            assert (before > 0, after > 0) == ((True, False) if head % 2 == 0 else (False, True))


def test_each_seed_is_shown_fresh_batches() -> None:
    text = torch.arange(2, 2000)
    batches = training_batches(text, Setting("add"))
    first, second = islice(batches, 2)
    other = next(training_batches(text, Setting("add", seed=1)))
    assert not torch.equal(first.tokens, second.tokens)
    assert not torch.equal(first.tokens, other.tokens)


def test_before_asks_for_the_word_three_places_before() -> None:
    windows = torch.arange(2, 2 + 3 * 13).view(3, 13)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = words.asked("before", windows, draw, 9)
    assert torch.equal(tokens, windows[:, :-1])
    assert (target_indices.view(3, 9) % 12).sort().values.tolist() == [list(range(3, 12))] * 3
    assert torch.equal(answers, tokens.flatten()[target_indices] - 3)


def test_partners_are_another_place_for_each_and_offsets_hardly_help() -> None:
    partners = words.partners(48)
    assert sorted(partners.tolist()) == list(range(48))
    offsets = (partners - torch.arange(48)).tolist()
    assert 0 not in offsets
    assert max(map(offsets.count, offsets)) == 5  # of 48: so often is the best offset right
    windows = torch.arange(2, 2 + 2 * 49).view(2, 49)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = words.asked("partner", windows, draw, 48)
    at = target_indices % 48
    assert torch.equal(answers, tokens.flatten()[target_indices - at + partners[at]])


@pytest.mark.parametrize("task", ["before", "partner"])
def test_tasks_without_text_draw_each_word_alone(task: str) -> None:
    """So the word after the number n is not n + 1, as it is in this text."""
    text = torch.arange(2, 2000)
    (batch,) = words.training_batches(text, task, 48, seed=0, steps=1)
    follows = batch.tokens[:, 1:] == batch.tokens[:, :-1] + 1
    assert follows.double().mean() < 0.05


def test_validation_is_in_no_other_part() -> None:
    works = {name: name * 3 for name in ("a", "b", "c", "d")}
    text = words.split(works, ["b"], ["c"])
    assert [text.vocabulary[i] for i in text.training] == ["aaa", "ddd"]
    assert text.held_out.tolist() == text.validation.tolist() == [words.UNKNOWN]


def test_a_text_of_another_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of words that the pages print is checked wherever a text is read."""
    monkeypatch.setattr(words, "READ", {})
    monkeypatch.setitem(words.TEXTS, "verse", words.sonnets)
    found = len(words.sonnets().training)
    message = rf"^the text 'verse' must have 962700 words to train on, got {found}$"
    with pytest.raises(ValueError, match=message):
        words.text("verse")
    monkeypatch.setitem(words.TRAINING_WORDS, "verse", found)
    assert len(words.text("verse").training) == found
    assert words.passes("verse", steps=10, length=found) == 10 * words.BATCH


def test_strings_are_read_out_of_the_format_of_r() -> None:
    """As `serialize(c("Emma", "né"), NULL)` writes them, by hand: R Internals, chapter 1.8."""
    header = b"X\n" + struct.pack(">iii", 3, 0x40201, 0x30500) + struct.pack(">i", 5) + b"UTF-8"
    strings = b"".join(
        struct.pack(">ii", 0x40009, len(text)) + text for text in (b"Emma", "né".encode())
    )
    content = header + struct.pack(">ii", words.STRINGS, 2) + strings
    assert words.strings_of(content) == ["Emma", "né"]
    with pytest.raises(ValueError, match="must be of type 16, got 13"):
        words.strings_of(header + struct.pack(">ii", words.INTEGERS, 2) + strings)


def test_losses_of_answers_stand_where_the_answers_stand() -> None:
    model = tiny("rotary")
    batches = [words.asked("next", some_words().repeat(3, 2)[:, :13], torch.Generator(), 5)] * 2
    each, answers = words.losses_of_answers(model, batches), words.answers_of(batches)
    assert each.shape == answers.shape == (6, 5)
    scores = model(batches[0].tokens, batches[0].target_indices)
    by_hand = -scores.log_softmax(-1)[torch.arange(15), batches[0].answers].view(3, 5)
    torch.testing.assert_close(each[:3], by_hand)
    torch.testing.assert_close(words.losses(model, batches), each.mean(dim=1))


def test_batches_that_are_joined_ask_the_same_in_their_order() -> None:
    text = torch.from_numpy(words.sonnets().training)
    apart = words.held_out_batches(text, "masked", 24)
    assert len(apart) > 2
    joined = words.joined(apart)
    assert len(joined.tokens) == sum(len(batch.tokens) for batch in apart)
    assert torch.equal(joined.answers, torch.cat([batch.answers for batch in apart]))
    hidden = joined.tokens.flatten()[joined.target_indices]
    assert (hidden == words.MASK).all()
