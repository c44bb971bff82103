"""What a hostile author writes into every text: characters that steer, turn, hide or break lines, and markup."""

# Escapes and controls (C0, delete, C1), zero width, direction of writing, separators, a tag, a selector, fillers.
CONTROLS = "\x00\x07\x08\r\x7f\x85\x9b"
UNSEEN = "\u00ad\u200b\u200e\u202e\u2028\u2029\u2066\ufeff\u3164\ufe0f\u2800\U000e0041"
STEERING = "\x1b[5;41m"
# A line that looks as if this program had written it.
FORGED = "FORGED"
NASTY = f"{STEERING}{CONTROLS}{UNSEEN}\n{FORGED}\t[b]x[/c]"


def harms(text: str) -> set[str]:
    """Which of those characters are there."""
    return {character for character in "\x1b" + CONTROLS + UNSEEN if character in text}
