"""Checks of forks: one device, one sequence number, two records."""

from __future__ import annotations

from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, opened
from autoresearch.records import Merge, Network, format_id


def check_fork(one: Given, other: Given, network: Network, *, merge: Given | None = None) -> Outcome:
    """Whether a device signed two records with one number. ``merge`` is the record that may have ended the fork."""
    steps, first = opened(one, network, "one record")
    more, second = opened(other, network, "the other")
    steps += more
    if first is None or second is None:
        return failed(steps, NOT_ITS_RECORD)
    same_key = first.author == second.author
    steps += [
        Step("device", first.author.hex(), second.author.hex(), same_key),
        Step("number", str(first.seq), str(second.seq), first.seq == second.seq),
        Step("ids", format_id(first.id), format_id(second.id), first.id == second.id),
    ]
    if not same_key:
        return failed(steps, "two devices signed them")
    if first.seq != second.seq:
        return failed(steps, "they have different numbers, as they should")
    if first.id == second.id:
        return failed(steps, "it is one record")
    sentence = "the device signed two records with one number"
    if merge is None:
        return Outcome((*steps, Step("merge", "", "there is none")), holds=True, sentence=sentence)
    more, ended = opened(merge, network, "the merge")
    steps += more
    if ended is None or not isinstance(ended.body, Merge) or ended.body.device != first.author:
        return Outcome(tuple(steps), holds=True, sentence=f"{sentence}; what is said to merge them is no merge of it")
    steps.append(Step("merge", f"by root key {ended.author.hex()}", f"of {len(ended.body.heads)} branches"))
    return Outcome(
        tuple(steps), holds=True, sentence=f"{sentence}; its root key merged the branches, so nothing follows"
    )
