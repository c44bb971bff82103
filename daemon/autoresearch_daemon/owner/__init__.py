"""The machine stays its owner's: when and under which conditions runs may go on. The rules are pure, ``host`` looks."""
