"""The pages as HTML, made from answers. The daemon serves them; ``export --html`` writes them."""
