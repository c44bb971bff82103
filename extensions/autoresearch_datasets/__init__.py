"""Episodes as data sets of other libraries: extensions, found by their entry points."""
