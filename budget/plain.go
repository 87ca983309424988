package budget

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Plain makes text of anything that a program may print: valid UTF-8 without control characters but \n and \t. Escape
// sequences are removed whole, \r and backspace are played as a terminal would, so that a progress bar leaves its
// last state, NUL is shown as ␀ and every invalid byte as U+FFFD.
func Plain(s string) string {
	clean := plainPrefix(s)
	if clean == len(s) {
		return s
	}
	p := player{out: make([]byte, 0, len(s))}
	p.text(s[:clean])
	p.play(s[clean:])
	return string(p.out)
}

// plainPrefix returns how many bytes of s need no change.
func plainPrefix(s string) int {
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			if b < ' ' && b != '\n' && b != '\t' || b == del {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || isC1(r) {
			return i
		}
		i += size
	}
	return len(s)
}

// player writes text to out. Once something moves the cursor back in the line under way, that line is held in cells,
// as a terminal would, until its newline.
type player struct {
	out    []byte
	line   int // where the line under way begins in out
	held   bool
	cells  []rune
	cursor int // in cells
}

func (p *player) play(s string) {
	for i := 0; i < len(s); {
		if !p.held {
			n := plainPrefix(s[i:])
			p.text(s[i : i+n])
			i += n
		}
		if n := escapeLen(s[i:]); n > 0 {
			p.control(s[i : i+n])
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case size == 0:
		case r == '\n':
			p.release()
			p.text("\n")
		case r == '\r':
			if !endsLine(s[i:]) {
				p.moveTo(0)
			}
		case r == '\b':
			p.hold()
			p.moveTo(p.cursor - 1)
		case r == 0:
			p.put('␀')
		case r == '\t' || r >= ' ' && r != del && !isC1(r):
			p.put(r)
		}
	}
	p.release()
}

// endsLine tells whether rest ends the line at once, as after the \r of CRLF; such a \r moves nothing that can be seen.
func endsLine(rest string) bool {
	return rest != "" && rest[0] == '\n'
}

// text writes what needs no change, while no line is held.
func (p *player) text(s string) {
	p.out = append(p.out, s...)
	if newline := strings.LastIndexByte(s, '\n'); newline >= 0 {
		p.line = len(p.out) - len(s) + newline + 1
	}
}

func (p *player) put(r rune) {
	switch {
	case !p.held:
		p.out = utf8.AppendRune(p.out, r)
	case p.cursor < len(p.cells):
		p.cells[p.cursor] = r
		p.cursor++
	default:
		p.cells = append(p.cells, r)
		p.cursor++
	}
}

// hold takes the line under way out of out and into cells.
func (p *player) hold() {
	if p.held {
		return
	}
	p.cells = append(p.cells[:0], bytes.Runes(p.out[p.line:])...)
	p.out = p.out[:p.line]
	p.cursor, p.held = len(p.cells), true
}

// release writes a held line to out.
func (p *player) release() {
	if !p.held {
		return
	}
	for _, r := range p.cells {
		p.out = utf8.AppendRune(p.out, r)
	}
	p.held = false
}

func (p *player) moveTo(column int) {
	p.hold()
	p.cursor = max(0, min(column, len(p.cells)))
}

// control plays the few escape sequences that progress bars use within a line; all others do nothing here.
func (p *player) control(seq string) {
	params, isCSI := strings.CutPrefix(seq, "\x1b[")
	if !isCSI || params == "" {
		return
	}
	final := params[len(params)-1]
	n, digits := 0, params[:len(params)-1]
	for _, b := range []byte(digits) {
		if b < '0' || b > '9' || n > 1<<20 {
			return
		}
		n = 10*n + int(b-'0')
	}
	switch final {
	case 'K':
		p.erase(n)
	case 'G':
		p.moveTo(n - 1)
	case 'D':
		p.hold()
		p.moveTo(p.cursor - max(1, n))
	case 'C':
		if p.held {
			p.moveTo(p.cursor + max(1, n))
		}
	}
}

// erase is the sequence "erase in line": 0 from the cursor on, 2 all. The rare 1, which blanks what stands before the
// cursor, is not played: its cost would grow with the line.
func (p *player) erase(part int) {
	switch {
	case part == 0 && p.held:
		p.cells = p.cells[:p.cursor]
	case part == 2:
		p.hold()
		p.cells = p.cells[:0]
		p.cursor = 0
	}
}
