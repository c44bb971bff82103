"""What to try next: a deterministic search over annotated source, and the lint for code from elsewhere."""

from autoresearch.proposers.catalogue import PATCHES, Patch
from autoresearch.proposers.edits import Block, EditError, apply_blocks, constants, set_constants
from autoresearch.proposers.effects import Effect, Seen, differences, effects, ranked
from autoresearch.proposers.evidence import Candidate, Evidence, PastRun, gather
from autoresearch.proposers.guard import HARNESS_CALLS, IMPORTS, static_guard
from autoresearch.proposers.known_names import named_in
from autoresearch.proposers.mixing import Brought, choose, shares
from autoresearch.proposers.parameters import Parameter
from autoresearch.proposers.proposal import LiveClaim, NothingToTry, Problem, Proposal, ProposalKind, nothing_to_change
from autoresearch.proposers.ranges import LARGEST, Constant, Range, Value
from autoresearch.proposers.reply import BadReply, Change, Rules, check_program, read_reply
from autoresearch.proposers.reply_parts import parts_of
from autoresearch.proposers.search import best_run, propose
from autoresearch.proposers.space import Space, space_of

__all__ = [
    "HARNESS_CALLS",
    "IMPORTS",
    "LARGEST",
    "PATCHES",
    "BadReply",
    "Block",
    "Brought",
    "Candidate",
    "Change",
    "Constant",
    "EditError",
    "Effect",
    "Evidence",
    "LiveClaim",
    "NothingToTry",
    "Parameter",
    "PastRun",
    "Patch",
    "Problem",
    "Proposal",
    "ProposalKind",
    "Range",
    "Rules",
    "Seen",
    "Space",
    "Value",
    "apply_blocks",
    "best_run",
    "check_program",
    "choose",
    "constants",
    "differences",
    "effects",
    "gather",
    "named_in",
    "nothing_to_change",
    "parts_of",
    "propose",
    "ranked",
    "read_reply",
    "set_constants",
    "shares",
    "space_of",
    "static_guard",
]
