"""Who invents the next change beside the search: a language model, or any command; and what that costs."""
