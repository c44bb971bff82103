"""Questions about runs: tables, boards, headlines, differences, progress."""
