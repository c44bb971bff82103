"""From a request to an outcome: harness, referee, evaluator, packages and costs."""
