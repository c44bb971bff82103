"""The sandbox: how a program is walled in, bounded and judged from outside."""
