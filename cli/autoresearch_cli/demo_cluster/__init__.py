"""Several daemons on this machine that make a network of their own: started, watched, shown, stopped."""
