"""grammar.py: the text of the task, from a probabilistic grammar whose entropy is known exactly. Nobody edits it.

There are cheap things to learn (spelling, frequencies, word order) and dear ones (agreement across a clause, nouns
that depend on the topic, objects that depend on the verb, names that live for one document, recalling a number,
quoting an earlier sentence, adding). Every choice can be read back off the text, so the exact code length of every
document is known.

    write_documents(grammar, seed, count)      documents of DOC bytes, each with its cost in bits
    code_length_bits(grammar, text)            the cost of a document, from the document alone
"""
import bisect, math

DOC = 256              # bytes in a document

# --- randomness: integers only, so that the bytes are the same on every machine

class Random:
    """splitmix64."""
    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return ((z ^ (z >> 31)) * n) >> 64

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items

class Choice:
    """Strings to choose from, none of them the beginning of another, with integer weights."""
    def __init__(self, *groups):
        self.options = [option for group in groups for option, _ in group]
        self.weights = [weight for group in groups for _, weight in group]
        self.bounds, self.total = [], 0
        for weight in self.weights:
            self.total += weight
            self.bounds.append(self.total)
        self.bits = [math.log2(self.total / weight) for weight in self.weights]

def weighted(options, weights, times=1):
    return [(option, weight * times) for option, weight in zip(options, weights)]

def zipf(n, shift=1):
    return [720720 // (rank + shift) for rank in range(n)]

# --- grammar: words, and the tables that are chosen from

CONSONANTS, VOWELS = "ptkbdgmnslrvzfh", "aeiou"
ONSETS = list(CONSONANTS) * 3 + ["st", "br", "kl", "tr", "gl", "fr", "sp", "dr"]
CODAS = [""] * 6 + ["n", "r", "s", "l", "m", "k"]
GENDERS, TOPICS, KINDS, NOUNS, VERBS, ADJECTIVES = 3, 8, 5, 150, 45, 36
NOUN_PLURAL = ["en", "ash", "im"]                                    # by gender
ADJECTIVE_ENDING = [["a", "ane"], ["u", "une"], ["i", "ine"]]        # by gender, number
VERB_ENDING = ["it", "ont"]                                          # by the number of the subject

class Grammar:
    capital = Choice([(c.upper() + v, 1) for c in CONSONANTS for v in VOWELS])
    syllable = Choice([(c + v, 1) for c in CONSONANTS for v in VOWELS])
    count = Choice([("1 ", 1), ("2 ", 1)])
    number = Choice([("%02d" % i, 1) for i in range(50)])
    mark = Choice([("- ", 18), ("= ", 2), ("+ ", 1), ("@ ", 2), ('" ', 1)])
    first_mark = Choice([("- ", 18), ("= ", 2), ("+ ", 1), ("@ ", 2)])

    def __init__(self, seed=20260101):
        self.random, self.used = Random(seed), {"ke", "il", "and", "so", "now"}
        determiners = [self._word(1) for _ in range(2 * GENDERS * 2)]
        self.topic = Choice(weighted([self._word(2) + " " for _ in range(TOPICS)], zipf(TOPICS, 3)))
        prepositions = [self._word(1) + " " for _ in range(6)]
        [self._word(2) for _ in range(12)]                           # reserved
        nouns = [(self._word(1 + self.random.below(2), ["", NOUN_PLURAL[gender]]), gender, i // GENDERS % KINDS)
                 for i in range(NOUNS) for gender in [i % GENDERS]]
        verbs = [(self._word(1 + self.random.below(2), VERB_ENDING), i % KINDS) for i in range(VERBS)]
        adjectives = [self._word(1 + self.random.below(2), sum(ADJECTIVE_ENDING, [])) for _ in range(ADJECTIVES)]

        meanings = [(n, g, d) for n in range(2) for g in range(GENDERS) for d in range(2)]
        self.agreement = [(n, g) for n, g, _ in meanings]            # of each determiner
        self.determiners = [(word + " ", (3, 2)[n] * (4, 3, 2)[g] * (3, 1)[d])
                            for word, (n, g, d) in zip(determiners, meanings)]
        self.prepositions, total = len(prepositions), sum(zipf(6))
        self.after_clause = Choice(weighted(prepositions, zipf(6), 9), [(". ", total * 18), (".\n", total * 3)])
        self._noun_tables(nouns, adjectives)
        self._verb_tables(verbs)

    def _word(self, syllables, endings=("",)):
        while True:
            parts = [part for _ in range(syllables) for part in (ONSETS, VOWELS, CODAS)]
            stem = "".join(part[self.random.below(len(part))] for part in parts)
            forms = {stem + ending for ending in endings}
            if 3 <= len(stem) <= 9 and not forms & self.used:
                self.used |= forms
                return stem

    def _noun_tables(self, nouns, adjectives):
        """By topic, gender, kind (None: any) and number: each topic has its own frequent nouns."""
        self.noun, self.noun_or_adjective = {}, {}
        keys = [(g, k, n) for g in range(GENDERS) for k in (*range(KINDS), None) for n in range(2)]
        for topic in range(TOPICS):
            order = [nouns[i] for i in self.random.shuffled(range(NOUNS))]
            for gender, kind, number in keys:
                ending = NOUN_PLURAL[gender] + " " if number else " "
                words = [stem + ending for stem, g, k in order if g == gender and kind in (k, None)]
                ending = ADJECTIVE_ENDING[gender][number] + " "
                described = weighted([stem + ending for stem in adjectives], zipf(ADJECTIVES), sum(zipf(len(words))))
                plain = weighted(words, zipf(len(words)), 2 * sum(zipf(ADJECTIVES)))
                self.noun[topic, gender, kind, number] = Choice(weighted(words, zipf(len(words))))
                self.noun_or_adjective[topic, gender, kind, number] = Choice(plain, described)

    def _verb_tables(self, verbs):
        """By topic and number of the subject; "ke" opens a relative clause."""
        self.verb, self.verb_or_ke, self.object_kind = {}, {}, []
        for topic in range(TOPICS):
            order = [verbs[i] for i in self.random.shuffled(range(VERBS))]
            self.object_kind.append([kind for _, kind in order])
            for number in range(2):
                words = [stem + VERB_ENDING[number] + " " for stem, _ in order]
                self.verb[topic, number] = Choice(weighted(words, zipf(VERBS)))
                self.verb_or_ke[topic, number] = Choice(weighted(words, zipf(VERBS), 5), [("ke ", sum(zipf(VERBS)))])

# --- documents: the same walk through the grammar writes a text and reads one

class Full(Exception):
    """The document has its 256 bytes."""

class Writer:
    """Makes the choices at random and adds up what they cost: bits is the exact -log2 p(text)."""
    def __init__(self, random):
        self.random, self.parts, self.length, self.bits = random, [], 0, 0.0

    def text(self, start=0):
        return "".join(self.parts)[start:]

    def say(self, text):
        """Append what follows without a choice, or as much of it as fits."""
        text = text[:DOC - self.length]
        self.parts.append(text)
        self.length += len(text)
        if self.length == DOC:
            raise Full

    def choose(self, choice):
        """Append one of the options; return its index."""
        return self._take(choice, bisect.bisect_right(choice.bounds, self.random.below(choice.total)))

    def _take(self, choice, i):
        room, option = DOC - self.length, choice.options[i]
        if len(option) < room:
            self.bits += choice.bits[i]
        else:                                                        # cut off: all options that look alike are charged
            alike = sum(w for o, w in zip(choice.options, choice.weights) if o.startswith(option[:room]))
            self.bits += math.log2(choice.total / alike)
        self.say(option)
        return i

class Reader(Writer):
    """Reads the choices off a finished text: the proof that the text alone determines them, and so its cost."""
    def __init__(self, text):
        super().__init__(random=None)
        self.given = text

    def say(self, text):
        if not self.given.startswith(text[:DOC - self.length], self.length):
            raise ValueError(f"byte {self.length}: the grammar says {text!r}")
        super().say(text)

    def choose(self, choice):
        rest = self.given[self.length:]
        fitting = [i for i, option in enumerate(choice.options) if rest.startswith(option[:len(rest)])]
        if not fitting or (len(fitting) > 1 and any(len(choice.options[i]) < len(rest) for i in fitting)):
            raise ValueError(f"byte {self.length}: {len(fitting)} readings")
        return self._take(choice, fitting[0])

class Document:
    """A header (topic, names and their numbers), then sentences until the bytes are full."""
    def __init__(self, grammar, pen):
        self.grammar, self.choose, self.say, self.pen, self.said = grammar, pen.choose, pen.say, pen, []
        kinds = self.statement, self.sum, self.sum_of_names, self.recall, self.quote
        try:
            self.header()
            while True:
                kinds[self.choose(grammar.mark if self.said else grammar.first_mark)]()
        except Full:
            pass

    def header(self):
        g, weights = self.grammar, {}
        self.topic = self.choose(g.topic)
        count = 1 + self.choose(g.count)
        self.number = {}                                             # of two names alike, the later number holds
        for i in range(count):
            name = g.capital.options[self.choose(g.capital)] + g.syllable.options[self.choose(g.syllable)]
            self.say(" ")
            self.number[name] = self.choose(g.number)
            self.say("\n" if i == count - 1 else ", ")
            weights[name] = weights.get(name, 0) + (6, 3)[i]
        self.names = sorted(weights)
        self.name = Choice([(name, weights[name]) for name in self.names])
        total = sum(weight for _, weight in g.determiners)
        self.determiner_or_name = Choice([(word, weight * 7 * self.name.total) for word, weight in g.determiners],
                                         [(name + " ", weights[name] * total) for name in self.names])

    def statement(self):
        start = self.pen.length
        self.clause()
        while self.choose(self.grammar.after_clause) < self.grammar.prepositions:
            self.noun_phrase(None)
        self.said.append(self.pen.text(start))

    def clause(self):
        number, kinds = self.noun_phrase(None), self.grammar.object_kind[self.topic]
        verb = self.choose(self.grammar.verb_or_ke[self.topic, number])
        if verb == len(kinds):                                       # "ke": a relative clause, then the main verb
            self.noun_phrase(kinds[self.choose(self.grammar.verb[self.topic, number])])
            verb = self.choose(self.grammar.verb[self.topic, number])
        self.noun_phrase(kinds[verb])

    def noun_phrase(self, kind):
        """A name, or a determiner, perhaps an adjective, and a noun of this kind; returns its number."""
        i = self.choose(self.determiner_or_name)
        if i >= len(self.grammar.determiners):
            return 0
        number, gender = self.grammar.agreement[i]
        noun = self.grammar.noun[self.topic, gender, kind, number]
        if self.choose(self.grammar.noun_or_adjective[self.topic, gender, kind, number]) >= len(noun.options):
            self.choose(noun)
        return number

    def sum(self):
        a = self.choose(self.grammar.number)
        self.say("+")
        self.say("=%02d. " % (a + self.choose(self.grammar.number)))

    def sum_of_names(self):
        a = self.number[self.names[self.choose(self.name)]]
        self.say("+")
        self.say("=%02d. " % (a + self.number[self.names[self.choose(self.name)]]))

    def recall(self):
        self.say("=%02d. " % self.number[self.names[self.choose(self.name)]])

    def quote(self):
        self.choose(Choice([(text, self.said.count(text)) for text in sorted(set(self.said))]))

def write_documents(grammar, seed, count):
    """Yields (text, its code length in bits)."""
    for i in range(count):
        pen = Writer(Random((seed << 32) + i * 0x9E37 + 1))
        Document(grammar, pen)
        yield pen.text(), pen.bits

def code_length_bits(grammar, text):
    """The exact -log2 p(text) of one document; ValueError when the grammar cannot have written it."""
    pen = Reader(text)
    Document(grammar, pen)
    return pen.bits
