"""Records and blobs that move between this node and its peers, and who counts among them."""
