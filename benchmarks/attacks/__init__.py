"""Tasks with one planted hole in how they are measured, their sound twins, and how many of them `task attack` tells."""
