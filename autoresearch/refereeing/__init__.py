"""The referee: measures a trained model whose code nobody trusts, in sandboxes of its own."""

from autoresearch.refereeing.referee import MOST_BITS, Evaluation, Examinee, Floats, Tokens, as_documents, referee

__all__ = ["MOST_BITS", "Evaluation", "Examinee", "Floats", "Tokens", "as_documents", "referee"]
