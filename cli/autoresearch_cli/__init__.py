"""The command line of autoresearch: reads the log directly, and asks the daemon over its local API for the rest."""

import gc

# A command makes many objects that live as long as itself: to look through them again and again takes a tenth of it.
gc.set_threshold(100_000, 20, 100)
