package tools

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// bytesFinder finds the first position where a line may match; -1 for none.
type bytesFinder interface {
	find(data []byte) int
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

func (l *literalFinder) find(data []byte) int {
	rare := l.text[l.at]
	for i, missed := l.at, 0; i < len(data); i++ {
		j := bytes.IndexByte(data[i:], rare)
		if j < 0 {
			return -1
		}
		i += j
		start := i - l.at
		if bytes.HasPrefix(data[start:], l.text) {
			return start
		}
		if missed++; missed > 8+i/32 {
			return offset(bytes.Index(data[start+1:], l.text), start+1)
		}
	}
	return -1
}

// anyFinder finds the first of several texts.
type anyFinder struct {
	finders []bytesFinder
	overlap int // the most bytes that one of them is long
}

// find looks at parts that grow, so that a text that never comes costs no more than the way to the next.
func (a *anyFinder) find(data []byte) int {
	for at, size := 0, 4<<10; ; size *= 2 {
		end := min(at+size+a.overlap, len(data))
		part, first := data[at:end], -1
		for _, f := range a.finders {
			if i := f.find(part); i >= 0 {
				first = i
				part = part[:min(first+a.overlap, len(part))]
			}
		}
		if first >= 0 {
			return at + first
		}
		if end == len(data) {
			return -1
		}
		at += size
	}
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
	all := &anyFinder{}
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
		all.overlap = max(all.overlap, utf8.UTFMax*utf8.RuneCountInString(t.text))
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
