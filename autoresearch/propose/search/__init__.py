"""The built-in search: evidence of former runs, moves, proposals, and how proposers share."""
