package rules

import (
	"path"
	"strings"
)

// In the text of a word of a command, unknown stands for any text at all: what an expansion gives is known only when the command runs. In a
// word of a rule, star stands for a * that was not quoted. Neither character gets in from outside: control characters are refused.
const (
	unknown = "\x00"
	star    = "\x01"
)

// word is one word of a command after its quotes are removed.
type word struct {
	text     string
	many     bool // any number of words, also none
	prefixed bool // of many: every one of them begins with what stands before the first unknown (a glob, braces)
	digits   bool // whatever is unknown of it, it is a number
}

func literal(text string) word { return word{text: text} }

// anyWords is what may be any number of any words.
func anyWords() word { return word{text: unknown, many: true} }

// known says that the word is one, and which.
func (w word) known() bool { return !w.many && !strings.Contains(w.text, unknown) }

func allKnown(ws []word) bool {
	for _, w := range ws {
		if !w.known() {
			return false
		}
	}
	return true
}

// show writes words as one may read them; what is not known is …
func show(ws []word) string {
	var b strings.Builder
	for i, w := range ws {
		if i > 0 {
			b.WriteByte(' ')
		}
		text := strings.ReplaceAll(w.text, unknown, "…")
		if text == "" || strings.ContainsAny(text, " \t\n;&|<>()'\"$`") {
			text = "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		}
		b.WriteString(text)
		if b.Len() > 4*shownChars {
			break
		}
	}
	return short(b.String())
}

// shownChars bounds what a decision shows of a command, a path or a rule.
const shownChars = 120

// short is one line of at most shownChars characters.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > shownChars {
		text = string(r[:shownChars-1]) + "…"
	}
	return text
}

// systemFolders are where the programs of a machine are; nobody whose commands are judged can write there.
func inSystemFolder(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin":
		return true
	}
	return false
}

// programOf is the one form of a command's name: bare for what is in the system's folders, absolute or beginning with ./ or ../ for other files.
func programOf(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	clean := path.Clean(name)
	switch dir := path.Dir(clean); {
	case inSystemFolder(dir):
		return path.Base(clean)
	case path.IsAbs(clean), strings.HasPrefix(clean, "../"):
		return clean
	}
	return "./" + clean
}

// commandPattern is the words of a rule for commands. A word that is star alone stands for any number of words, also none.
type commandPattern []string

// How sure a match must be.
const (
	surely  = iota // holds whatever the unknown parts of the command are: for rules that deny or ask
	granted        // as surely, and nothing that the pattern's stars cover may lead elsewhere: for rules that allow
	maybe          // could hold
)

// match goes over the words, of which a command has at least one, with the set of places in the pattern that they may have led to.
func (p commandPattern) match(ws []word, how int) bool {
	if len(ws) == 0 || p[0] != star && !ws[0].many && !matchName(p[0], ws[0], how) {
		return false
	}
	at := make([]bool, len(p)+1)
	at[0] = true
	p.skipStars(at)
	for i, w := range ws {
		next := make([]bool, len(p)+1)
		some := false
		for j, here := range at {
			if !here {
				continue
			}
			if w.many && how == maybe { // it may be none
				next[j] = true
			}
			if j == len(p) {
				continue
			}
			switch {
			case p[j] == star:
				next[j] = next[j] || i > 0 || how != granted || w.known()
				if w.many && how == maybe {
					p.several(next, j, w)
				}
			case w.many && how == maybe:
				p.several(next, j, w)
			case w.many:
			case i == 0 && matchName(p[j], w, how), i > 0 && matchWord(p[j], w, how):
				next[j+1] = true
			}
		}
		p.skipStars(next)
		for _, here := range next {
			some = some || here
		}
		if at = next; !some {
			return false
		}
	}
	return at[len(p)]
}

// several follows all the words that w may be, from place j on.
func (p commandPattern) several(next []bool, j int, w word) {
	for ; j < len(p); j++ {
		if w.prefixed && p[j] != star && !couldBe(p[j], w.text) {
			return
		}
		next[j+1] = true
	}
}

// skipStars adds the places after stars, since a star may stand for no word.
func (p commandPattern) skipStars(at []bool) {
	for j := range p {
		if at[j] && p[j] == star {
			at[j+1] = true
		}
	}
}

// words is the pattern as a command of which the stars are not known: what covers it covers all that the pattern matches.
func (p commandPattern) words() []word {
	ws := make([]word, len(p))
	for i, t := range p {
		ws[i] = word{text: strings.ReplaceAll(t, star, unknown), many: t == star}
	}
	return ws
}

// String is the pattern as it is written.
func (p commandPattern) String() string { return strings.ReplaceAll(strings.Join(p, " "), star, "*") }

// matchName matches the name of a command. What allows means the program that the system has by that name; what denies means it wherever it stands.
func matchName(pattern string, w word, how int) bool {
	if !strings.ContainsAny(pattern, star+"/") && !strings.ContainsAny(w.text, unknown+"/") { // most names are plain, and most rules are for others
		return pattern == w.text || how != granted && strings.EqualFold(pattern, w.text)
	}
	pattern = programOf(pattern)
	name := programOf(w.text)
	if how == granted {
		return w.known() && glob(pattern, name) && strings.Count(pattern, "/") == strings.Count(name, "/")
	}
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	test := glob
	if how == maybe {
		test = couldBe
	}
	return test(pattern, name) || test(pattern, path.Base(name))
}

func matchWord(pattern string, w word, how int) bool {
	switch how {
	case maybe:
		return couldBe(pattern, w.text)
	case granted:
		return w.known() && glob(pattern, w.text) && (!strings.Contains(pattern, star) || ups(w.text) <= ups(pattern))
	}
	return glob(pattern, w.text)
}

// ups counts the parts of a path that go up: a * inside a word does not.
func ups(text string) int {
	n := 0
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '=' || r == ':' || r == ',' }) {
		if part == ".." {
			n++
		}
	}
	return n
}

// glob matches a text with a pattern whose star stands for any text. An unknown part of the text is matched by a star only.
func glob(pattern, text string) bool {
	p, t, back, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == star[0]:
			back, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t] && text[t] != unknown[0]:
			p++
			t++
		case back >= 0:
			mark++
			p, t = back+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], star) == ""
}

// wideText is the length of a text from which couldBe does not look any more: both lengths multiply.
const wideText = 4096

// couldBe says whether some text in place of the unknown parts makes the pattern match.
func couldBe(pattern, text string) bool {
	if !strings.Contains(text, unknown) {
		return glob(pattern, text)
	}
	if len(text) > wideText {
		return true
	}
	row := make([]bool, len(text)+1)
	for i := 0; i <= len(pattern); i++ {
		diagonal := false
		for j := 0; j <= len(text); j++ {
			above := row[j]
			switch {
			case i == 0 && j == 0:
				row[j] = true
			case i == 0:
				row[j] = row[j-1] && text[j-1] == unknown[0]
			case pattern[i-1] == star[0]:
				row[j] = above || j > 0 && row[j-1]
			case j == 0:
				row[j] = false
			case text[j-1] == unknown[0]:
				row[j] = above || row[j-1]
			default:
				row[j] = diagonal && pattern[i-1] == text[j-1]
			}
			diagonal = above
		}
	}
	return row[len(text)]
}
