package tools

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// foldFinder finds a text in any case, by Unicode's simple folding, as (?i) does. It looks for one character of the text, the anchor, in its two cases
// and compares what is around it. The anchor is an ASCII character that has no third case outside ASCII, as k and s have (K, ſ), and as rare as the
// text allows.
type foldFinder struct {
	before, after []rune // of the anchor, folded
	upper, lower  byte   // the anchor; equal where it has no case
	beside        int    // where the neighbour is that is looked at first, 1 or -1; 0 for nowhere
	neighbour     byte   // in lower case

	next [2]int // where the anchor stands next in lower and upper case; -1 until it is looked for, len(data) for nowhere
}

// newFoldFinder returns nil where the text has no character that can be the anchor.
func newFoldFinder(text string) *foldFinder {
	runes := []rune(text)
	best, rank := -1, 1<<30
	for i, r := range runes {
		if r >= utf8.RuneSelf || foldRune(r) == 'K' || foldRune(r) == 'S' {
			continue
		}
		if n := commonness(byte(r)); n < rank {
			best, rank = i, n
		}
	}
	if best < 0 {
		return nil
	}
	f := &foldFinder{}
	for i, r := range runes {
		switch folded := foldRune(r); {
		case i < best:
			f.before = append(f.before, folded)
		case i > best:
			f.after = append(f.after, folded)
		default:
			f.upper = byte(folded)
			f.lower = byte(unicode.ToLower(folded))
		}
	}
	if len(f.after) > 0 && singleASCII(f.after[0]) {
		f.beside, f.neighbour = 1, byte(unicode.ToLower(f.after[0]))
	} else if n := len(f.before); n > 0 && singleASCII(f.before[n-1]) {
		f.beside, f.neighbour = -1, byte(unicode.ToLower(f.before[n-1]))
	}
	f.begin()
	return f
}

// singleASCII tells whether a folded character is a letter that has no third case outside ASCII.
func singleASCII(r rune) bool {
	return r >= 'A' && r <= 'Z' && r != 'K' && r != 'S'
}

// commonness orders ASCII by how often it stands in source text, rarest first; it need only be roughly so.
func commonness(b byte) int {
	const common = "zqjxkvbywgpfmucdhlnosrait e"
	lower := byte(unicode.ToLower(rune(b)))
	if i := bytes.IndexByte([]byte(common), lower); i >= 0 {
		return i + 2
	}
	if b >= utf8.RuneSelf || b >= '0' && b <= '9' || bytes.IndexByte([]byte("\t.,()_-/\"=;:*{}"), b) >= 0 {
		return 14
	}
	return 1
}

// foldRune is the least of the characters that are the same in any case.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

func (f *foldFinder) begin() { f.next = [2]int{-1, -1} }

func (f *foldFinder) find(data []byte, at int) int {
	from, _ := f.span(data, at)
	return from
}

// span returns where the text begins and ends, from -1 where it is not.
func (f *foldFinder) span(data []byte, at int) (from, to int) {
	for i := f.anchor(data, at); i < len(data); i = f.anchor(data, i+1) {
		if f.beside != 0 {
			const lowerBit = 'a' - 'A'
			if j := i + f.beside; j < at || j >= len(data) || data[j]|lowerBit != f.neighbour {
				continue
			}
		}
		if from, to, ok := f.around(data, i, at); ok {
			return from, to
		}
	}
	return -1, -1
}

// anchor returns where the anchor is from at on, len(data) for nowhere. Each case is looked for only beyond where it was found last, so that one that
// never comes costs one look at all of the data.
func (f *foldFinder) anchor(data []byte, at int) int {
	if f.next[0] < at {
		f.next[0] = indexFrom(data, at, f.lower)
	}
	if f.upper == f.lower {
		return f.next[0]
	}
	if f.next[1] < at {
		f.next[1] = indexFrom(data, at, f.upper)
	}
	return min(f.next[0], f.next[1])
}

// indexFrom is where b stands in data from at on, len(data) for nowhere.
func indexFrom(data []byte, at int, b byte) int {
	if at < len(data) {
		if i := bytes.IndexByte(data[at:], b); i >= 0 {
			return at + i
		}
	}
	return len(data)
}

// around compares the text with what is around an anchor, from least on.
func (f *foldFinder) around(data []byte, at, least int) (from, to int, ok bool) {
	to = at + 1
	for _, want := range f.after {
		if to >= len(data) {
			return 0, 0, false
		}
		r, size := rune(data[to]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[to:])
		}
		if r != want && foldRune(r) != want {
			return 0, 0, false
		}
		to += size
	}
	from = at
	for i := len(f.before) - 1; i >= 0; i-- {
		if from == least {
			return 0, 0, false
		}
		r, size := rune(data[from-1]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeLastRune(data[least:from])
		}
		if r != f.before[i] && foldRune(r) != f.before[i] {
			return 0, 0, false
		}
		from -= size
	}
	return from, to, true
}
