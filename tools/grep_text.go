package tools

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// bytesFinder finds the positions in a text where a line may match, from at on; -1 for none. It remembers what it has seen of the text: at only grows,
// until begin says that another text follows.
type bytesFinder interface {
	begin()
	find(data []byte, at int) int
}

// literalFinder finds a text by its rarest byte, as long as that is rare in what is searched too.
type literalFinder struct {
	text []byte
	at   int // of the byte
}

func newLiteralFinder(text string) *literalFinder {
	l := &literalFinder{text: []byte(text)}
	for i, b := range l.text {
		if commonness(b) < commonness(l.text[l.at]) {
			l.at = i
		}
	}
	return l
}

func (l *literalFinder) begin() {}

func (l *literalFinder) find(data []byte, at int) int {
	rare, first := l.text[l.at], l.text[0]
	for i, missed := at+l.at, 0; i < len(data); i++ {
		j := bytes.IndexByte(data[i:], rare)
		if j < 0 {
			return -1
		}
		i += j
		start := i - l.at
		if data[start] == first && bytes.HasPrefix(data[start:], l.text) {
			return start
		}
		if missed++; missed > 8+(i-at)/32 {
			return offset(bytes.Index(data[start+1:], l.text), start+1)
		}
	}
	return -1
}

// anyFinder finds the first of several texts. Each is looked for only beyond where it was found last, so that one that never comes costs one look at
// all of the data.
type anyFinder struct {
	finders []bytesFinder
	next    []int // where each text is next; -1 until it is looked for, len(data) for nowhere
}

func (a *anyFinder) begin() {
	for i, f := range a.finders {
		f.begin()
		a.next[i] = -1
	}
}

func (a *anyFinder) find(data []byte, at int) int {
	first := len(data)
	for i, f := range a.finders {
		if a.next[i] < at {
			if a.next[i] = f.find(data, at); a.next[i] < 0 {
				a.next[i] = len(data)
			}
		}
		first = min(first, a.next[i])
	}
	if first == len(data) {
		return -1
	}
	return first
}

// mustHold is a text that a match holds.
type mustHold struct {
	text string
	fold bool // in any case
}

// Bounds of what is worth a search of its own.
const (
	mustChars = 2 // the shortest text
	mustTexts = 8
)

// finderOf makes a finder of the texts of which every match holds one; nil where that is of no use.
func finderOf(texts []mustHold) bytesFinder {
	if shortest(texts) < mustChars {
		return nil
	}
	all := &anyFinder{next: make([]int, len(texts))}
	for _, t := range texts {
		var f bytesFinder = newLiteralFinder(t.text)
		if t.fold {
			fold := newFoldFinder(t.text)
			if fold == nil {
				return nil
			}
			f = fold
		}
		all.finders = append(all.finders, f)
	}
	if len(all.finders) == 1 {
		return all.finders[0]
	}
	return all
}

// shortest is the length of the shortest text in characters, 0 for none.
func shortest(texts []mustHold) int {
	least := 0
	for i, t := range texts {
		if n := utf8.RuneCountInString(t.text); i == 0 || n < least {
			least = n
		}
	}
	return least
}

// requiredTexts returns texts of which every match of an expression holds at least one, as long as can be; none where none are seen.
func requiredTexts(tree *syntax.Regexp) []mustHold {
	switch tree.Op {
	case syntax.OpLiteral:
		if !slices.Contains(tree.Rune, utf8.RuneError) { // that one matches any invalid byte too
			return []mustHold{{string(tree.Rune), tree.Flags&syntax.FoldCase != 0}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredTexts(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return requiredTexts(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []mustHold
		for _, sub := range tree.Sub {
			if texts := requiredTexts(sub); shortest(texts) > shortest(best) {
				best = texts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []mustHold
		for _, sub := range tree.Sub {
			texts := requiredTexts(sub)
			if len(texts) == 0 || len(all)+len(texts) > mustTexts {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	}
	return nil
}
