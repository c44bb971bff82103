"""Measurements that print tables: ``python -m benchmarks`` lists them. They never assert on time."""
