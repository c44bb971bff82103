"""What commands do beyond one question: exports, checks, task folders, joining a network."""
