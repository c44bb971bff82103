"""grammar.py: the text of the task, from a probabilistic grammar whose entropy is known exactly. Nobody edits it.

There is a family of such grammars: each seed gives another language, with its own letters, words, frequencies, endings,
word order and arithmetic. The task's own text is in the language of HOME; who checks a program draws other ones.

There are cheap things to learn (spelling, frequencies, word order) and dear ones (agreement across a clause, nouns
that depend on the topic, objects that depend on the verb, names that live for one document, recalling a number,
quoting an earlier sentence, adding). Every choice can be read back off the text, so the exact code length of every
document is known.

    Grammar(seed)                              a language; Grammar() is the task's own
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

# --- languages: what differs between the grammars of the family

HOME = 20260101        # the seed of the task's own language

class Language:
    """The letters, endings, marks and rules of one language. The attributes below are those of HOME."""
    consonants, vowels = "ptkbdgmnslrvzfh", "aeiou"
    clusters = ["st", "br", "kl", "tr", "gl", "fr", "sp", "dr"]
    codas = ["n", "r", "s", "l", "m", "k"]
    genders, topics, kinds, nouns, verbs, adjectives = 3, 8, 5, 150, 45, 36
    noun_plural = ["en", "ash", "im"]                                # by gender
    adjective_ending = [["a", "ane"], ["u", "une"], ["i", "ine"]]    # by gender, number
    verb_ending = ["it", "ont"]                                      # by the number of the subject
    order = "SVO"                                                    # of subject, verb and object
    who = "ke"                                                       # opens a relative clause
    marks, mark_weights = '-=+@"', (18, 2, 1, 2, 1)                  # statement, sum, sum of names, recall, quote
    factors, modulus = (1, 1), 100                                   # "=" follows (a * 1 + b * 1) % 100
    number_weights, gender_weights, name_weights = (3, 2), (4, 3, 2), (6, 3)
    names_share, clause_weights, verb_weight = 7, (9, 18, 3), 5

    def __init__(self, random, seed):
        if seed != HOME:
            self._draw(random)

    def _draw(self, random):
        """Other letters, endings, marks, order and arithmetic, as many of each: so that all are about equally hard."""
        def letters(alphabet, count):
            return "".join(random.shuffled(alphabet)[:count])

        def like(words):
            """Different words of the same lengths, vowels where those have vowels."""
            drawn = []
            while len(drawn) < len(words):
                word = "".join(letters(self.vowels if c in Language.vowels else self.consonants, 1)
                               for c in words[len(drawn)])
                drawn += [] if word in drawn else [word]
            return drawn

        self.consonants, self.vowels = letters("bcdfghjklmnpqrstvwxz", 15), letters("aeiouy", 5)
        self.clusters, self.codas = [letters(self.consonants, 2) for _ in Language.clusters], letters(self.consonants, 6)
        self.codas, self.noun_plural, self.verb_ending = list(self.codas), like(self.noun_plural), like(self.verb_ending)
        endings = like(sum(Language.adjective_ending, []))
        self.adjective_ending = [endings[i:i + 2] for i in range(0, len(endings), 2)]
        self.order, (self.who,) = random.shuffled(["SVO", "SOV", "VSO"])[0], like([Language.who])
        self.marks = "".join(random.shuffled('-=+@"%#*'))[:5]
        self.factors, self.modulus = (1 + random.below(3), 1 + random.below(3)), 80 + random.below(21)
        self.number_weights, self.gender_weights = random.shuffled((3, 2)), random.shuffled((4, 3, 2))
        self.mark_weights = (18, *random.shuffled((2, 1, 2)), 1)

# --- grammar: words, and the tables that are chosen from

class Grammar:
    number = Choice([("%02d" % i, 1) for i in range(50)])
    count = Choice([("1 ", 1), ("2 ", 1)])

    def __init__(self, seed=HOME):
        self.random = Random(seed)
        self.language = language = Language(self.random, seed)
        self.used = {language.who, "il", "and", "so", "now"}
        self.capital = Choice([(c.upper() + v, 1) for c in language.consonants for v in language.vowels])
        self.syllable = Choice([(c + v, 1) for c in language.consonants for v in language.vowels])
        marks = [(mark + " ", weight) for mark, weight in zip(language.marks, language.mark_weights)]
        self.mark, self.first_mark = Choice(marks), Choice(marks[:-1])
        determiners = [self._word(1) for _ in range(4 * language.genders)]
        self.topic = Choice(weighted([self._word(2) + " " for _ in range(language.topics)], zipf(language.topics, 3)))
        prepositions = [self._word(1) + " " for _ in range(6)]
        [self._word(2) for _ in range(12)]                           # reserved
        nouns = [(self._word(1 + self.random.below(2), ["", language.noun_plural[gender]]), gender,
                  i // language.genders % language.kinds)
                 for i in range(language.nouns) for gender in [i % language.genders]]
        verbs = [(self._word(1 + self.random.below(2), language.verb_ending), i % language.kinds)
                 for i in range(language.verbs)]
        adjectives = [self._word(1 + self.random.below(2), sum(language.adjective_ending, []))
                      for _ in range(language.adjectives)]

        meanings = [(n, g, d) for n in range(2) for g in range(language.genders) for d in range(2)]
        self.agreement = [(n, g) for n, g, _ in meanings]            # of each determiner
        self.determiners = [(word + " ", language.number_weights[n] * language.gender_weights[g] * (3, 1)[d])
                            for word, (n, g, d) in zip(determiners, meanings)]
        self.prepositions, total = len(prepositions), sum(zipf(6))
        on, stop, line = language.clause_weights
        self.after_clause = Choice(weighted(prepositions, zipf(6), on), [(". ", total * stop), (".\n", total * line)])
        self._noun_tables(nouns, adjectives)
        self._verb_tables(verbs)

    def _word(self, syllables, endings=("",)):
        language = self.language
        onsets = list(language.consonants) * 3 + language.clusters
        codas = [""] * len(language.codas) + language.codas
        while True:
            parts = [part for _ in range(syllables) for part in (onsets, language.vowels, codas)]
            stem = "".join(part[self.random.below(len(part))] for part in parts)
            forms = {stem + ending for ending in endings}
            if 3 <= len(stem) <= 9 and not forms & self.used:
                self.used |= forms
                return stem

    def _noun_tables(self, nouns, adjectives):
        """By topic, gender, kind (None: any) and number: each topic has its own frequent nouns."""
        language = self.language
        self.noun, self.noun_or_adjective, self.noun_kinds = {}, {}, {}
        keys = [(g, k, n) for g in range(language.genders) for k in (*range(language.kinds), None) for n in range(2)]
        for topic in range(language.topics):
            order = [nouns[i] for i in self.random.shuffled(range(language.nouns))]
            for gender, kind, number in keys:
                ending = language.noun_plural[gender] + " " if number else " "
                fitting = [(stem, k) for stem, g, k in order if g == gender and kind in (k, None)]
                words = [stem + ending for stem, _ in fitting]
                ending = language.adjective_ending[gender][number] + " "
                described = weighted([stem + ending for stem in adjectives], zipf(language.adjectives),
                                     sum(zipf(len(words))))
                plain = weighted(words, zipf(len(words)), 2 * sum(zipf(language.adjectives)))
                self.noun[topic, gender, kind, number] = Choice(weighted(words, zipf(len(words))))
                self.noun_or_adjective[topic, gender, kind, number] = Choice(plain, described)
                self.noun_kinds[topic, gender, kind, number] = [k for _, k in fitting]

    def _verb_tables(self, verbs):
        """By topic and number of the subject; one word opens a relative clause instead."""
        language = self.language
        self.verb, self.verb_or_who, self.object_kind, self.verb_for, self.first_verb = {}, {}, [], {}, []
        who = (language.who + " ", sum(zipf(language.verbs)))
        for topic in range(language.topics):
            order = [verbs[i] for i in self.random.shuffled(range(language.verbs))]
            self.object_kind.append([kind for _, kind in order])
            forms = []
            for number in range(2):
                words = [stem + language.verb_ending[number] + " " for stem, _ in order]
                forms.append(weighted(words, zipf(language.verbs), language.number_weights[number]))
                self.verb[topic, number] = Choice(weighted(words, zipf(language.verbs)))
                self.verb_or_who[topic, number] = Choice(weighted(words, zipf(language.verbs), language.verb_weight),
                                                         [who])
                for kind in (*range(language.kinds), None):          # where the object comes before the verb
                    said = [word for word, (_, k) in zip(words, order) if kind in (k, None)]
                    self.verb_for[topic, number, kind] = Choice(weighted(said, zipf(len(said))))
            self.first_verb.append(Choice(*forms))                   # where the verb comes before the subject

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
        g, language, weights = self.grammar, self.grammar.language, {}
        self.topic = self.choose(g.topic)
        count = 1 + self.choose(g.count)
        self.number = {}                                             # of two names alike, the later number holds
        for i in range(count):
            name = g.capital.options[self.choose(g.capital)] + g.syllable.options[self.choose(g.syllable)]
            self.say(" ")
            self.number[name] = self.choose(g.number)
            self.say("\n" if i == count - 1 else ", ")
            weights[name] = weights.get(name, 0) + language.name_weights[i]
        self.names = sorted(weights)
        self.name = Choice([(name, weights[name]) for name in self.names])
        total = sum(weight for _, weight in g.determiners)
        words = [(word, weight * language.names_share * self.name.total) for word, weight in g.determiners]
        names = [(name + " ", weights[name] * total) for name in self.names]
        said = list(zip(words + names, g.agreement + [(0, None)] * len(names)))
        self.first_words = {}                                        # of a noun phrase: by its number (None: any), who
        for number in (0, 1, None):
            fitting = [(option, meant) for option, meant in said if number in (meant[0], None)]
            options, total = [option for option, _ in fitting], sum(weight for (_, weight), _ in fitting)
            for who in (False, True):
                choice = Choice(options) if not who else Choice(
                    [(word, weight * language.verb_weight) for word, weight in options], [(language.who + " ", total)])
                self.first_words[number, who] = choice, [meant for _, meant in fitting]

    def statement(self):
        start = self.pen.length
        self.clause()
        while self.choose(self.grammar.after_clause) < self.grammar.prepositions:
            self.noun_phrase(None)
        self.said.append(self.pen.text(start))

    def clause(self):
        getattr(self, self.grammar.language.order)()

    def SVO(self):
        number, _ = self.noun_phrase(None)
        kinds = self.grammar.object_kind[self.topic]
        verb = self.choose(self.grammar.verb_or_who[self.topic, number])
        if verb == len(kinds):                                       # a relative clause, then the main verb
            self.noun_phrase(kinds[self.choose(self.grammar.verb[self.topic, number])])
            verb = self.choose(self.grammar.verb[self.topic, number])
        self.noun_phrase(kinds[verb])

    def SOV(self):
        number, _ = self.noun_phrase(None)
        if (found := self.noun_phrase(None, who=True)) is None:
            _, kind = self.noun_phrase(None)
            self.choose(self.grammar.verb_for[self.topic, number, kind])
            found = self.noun_phrase(None)
        self.choose(self.grammar.verb_for[self.topic, number, found[1]])

    def VSO(self):
        kinds = self.grammar.object_kind[self.topic]
        number, verb = divmod(self.choose(self.grammar.first_verb[self.topic]), len(kinds))
        self.noun_phrase(None, number)
        if self.noun_phrase(kinds[verb], who=True) is None:
            self.noun_phrase(kinds[self.choose(self.grammar.verb[self.topic, number])])
            self.noun_phrase(kinds[verb])

    def noun_phrase(self, kind, number=None, who=False):
        """A name, or a determiner, perhaps an adjective, and a noun of this kind; returns its number and kind.

        None with who, where a relative clause opens instead.
        """
        choice, meanings = self.first_words[number, who]
        i = self.choose(choice)
        if i == len(meanings):
            return None
        number, gender = meanings[i]
        if gender is None:                                           # a name
            return 0, None
        noun = self.grammar.noun[self.topic, gender, kind, number]
        i = self.choose(self.grammar.noun_or_adjective[self.topic, gender, kind, number])
        if i >= len(noun.options):
            i = self.choose(noun)
        return number, self.grammar.noun_kinds[self.topic, gender, kind, number][i]

    def result(self, a, b):
        (first, second), modulus = self.grammar.language.factors, self.grammar.language.modulus
        return "=%02d. " % ((first * a + second * b) % modulus)

    def sum(self):
        a = self.choose(self.grammar.number)
        self.say("+")
        self.say(self.result(a, self.choose(self.grammar.number)))

    def sum_of_names(self):
        a = self.number[self.names[self.choose(self.name)]]
        self.say("+")
        self.say(self.result(a, self.number[self.names[self.choose(self.name)]]))

    def recall(self):
        self.say("=%02d. " % self.number[self.names[self.choose(self.name)]])

    def quote(self):
        self.choose(Choice([(text, self.said.count(text)) for text in sorted(set(self.said))]))

def write_documents(grammar, seed, count):
    """Yields (text, its code length in bits). The same seed is other text in another language."""
    for i in range(count):
        pen = Writer(Random((seed << 32) + i * 0x9E37 + 1))
        Document(grammar, pen)
        yield pen.text(), pen.bits

def code_length_bits(grammar, text):
    """The exact -log2 p(text) of one document; ValueError when the grammar cannot have written it."""
    pen = Reader(text)
    Document(grammar, pen)
    return pen.bits
