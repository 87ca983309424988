package tools

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// lineDFA finds lines that match an expression, by one table look-up a byte. Its states are sets of positions in the compiled expression, made when
// they are first needed; package regexp, which must also say where a match is, is ten times slower. What it answers is what regexp answers: RE2
// syntax, invalid UTF-8 read as U+FFFD, the line's ends as the text's ends.
//
// Characters that the expression does not tell apart are one class. A state is a row of the table, with the row to go to for each class.
type lineDFA struct {
	prog    *syntax.Prog
	bounds  []rune // class i+1 begins at bounds[i]
	bytes   [256]uint16
	word    bool // the expression has \b or \B
	end     int  // the class of a line's end
	width   int  // of a row
	table   []int32
	states  []dfaState // by row / width
	rows    map[string]int32
	start   int32     // at the begin of a line
	idle    int32     // nothing has begun to match; -1 until it is known
	stay    [256]bool // bytes that leave idle as it is
	cells   int       // words that all states take
	resets  int
	useless bool

	marks []uint32 // by position: visited in the round
	round uint32
	stack []uint32
	next  []uint32
	key   []byte
}

// dfaState is positions before their empty steps are taken, and what those steps may need to know of the character before.
type dfaState struct {
	at        []uint32
	begin     bool // no character comes before
	afterWord bool // a word character comes before
}

// What stands in the table beside rows.
const (
	dfaUnknown = -1 // not made yet; also for bytes that are no class by themselves: line ends, parts of longer characters
	dfaMatched = -2 // a match has ended: the rest of the line need not be read
)

// Bounds of an automaton: words that all states together take, and how often it may begin anew before it gives up.
const (
	dfaCells  = 1 << 18
	dfaResets = 20
)

func newLineDFA(prog *syntax.Prog) *lineDFA {
	d := &lineDFA{prog: prog, marks: make([]uint32, len(prog.Inst))}
	d.classes()
	d.reset()
	return d
}

// classes finds where characters begin to differ for the expression.
func (d *lineDFA) classes() {
	var edges []rune
	span := func(lo, hi rune) { edges = append(edges, lo, hi+1) }
	for i := range d.prog.Inst {
		in := &d.prog.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1:
			if len(in.Rune) == 1 {
				r := in.Rune[0]
				span(r, r)
				if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
					for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
						span(f, f)
					}
				}
				continue
			}
			for j := 0; j+1 < len(in.Rune); j += 2 {
				span(in.Rune[j], in.Rune[j+1])
			}
		case syntax.InstRuneAnyNotNL:
			span('\n', '\n')
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
				d.word = true
			}
		}
	}
	if d.word {
		span('0', '9')
		span('A', 'Z')
		span('_', '_')
		span('a', 'z')
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	d.bounds = slices.DeleteFunc(edges, func(r rune) bool { return r <= 0 })
	d.end = len(d.bounds) + 1
	special := d.end + 1
	d.width = special + 1
	for b := range d.bytes {
		d.bytes[b] = uint16(special)
		if b < utf8.RuneSelf && b != '\n' && b != '\r' {
			d.bytes[b] = uint16(d.class(rune(b)))
		}
	}
}

// class is the number of bounds at or before r.
func (d *lineDFA) class(r rune) int {
	i, found := slices.BinarySearch(d.bounds, r)
	if found {
		i++
	}
	return i
}

// first is a character of a class.
func (d *lineDFA) first(class int) rune {
	if class == 0 {
		return 0
	}
	return d.bounds[class-1]
}

// reset forgets all states.
func (d *lineDFA) reset() {
	d.table, d.states, d.cells = d.table[:0], d.states[:0], 0
	d.rows = map[string]int32{}
	d.idle, d.stay = -1, [256]bool{}
	d.start = d.state([]uint32{uint32(d.prog.Start)}, true, false)
}

// find returns where the first matching line begins, from at on, which is where one begins; -1 for none. ok is false where the automaton is of no use for this
// expression: then the lines before line do not match.
func (d *lineDFA) find(data []byte, at int) (line int, ok bool) {
	line = at
	if d.useless {
		return line, false
	}
	s := d.start
	for i := at; i < len(data); {
		if s == d.idle {
			for i < len(data) && d.stay[data[i]] {
				i++
			}
			if i == len(data) {
				break
			}
		}
		b := data[i]
		class := int(d.bytes[b])
		to := d.table[int(s)+class]
		if to >= 0 {
			s = to
			i++
			continue
		}
		size := 1
		ends := b == '\n'
		if to == dfaUnknown {
			switch {
			case ends:
				class = d.end
			case b == '\r' && i+1 < len(data) && data[i+1] == '\n':
				class, size, ends = d.end, 2, true
			case b >= utf8.RuneSelf:
				var r rune
				r, size = utf8.DecodeRune(data[i:])
				class = d.class(r)
			case b == '\r':
				class = d.class('\r')
			}
			if to = d.step(s, class); d.useless {
				return line, false
			}
		}
		i += size
		switch {
		case to == dfaMatched:
			return line, true
		case ends:
			s, line = d.start, i
		default:
			s = to
		}
	}
	if line < len(data) && d.step(s, d.end) == dfaMatched {
		return line, true
	}
	return -1, true
}

// step returns the successor of a state, made where it is not known. Where there are too many states it forgets all others.
func (d *lineDFA) step(from int32, class int) int32 {
	if to := d.table[int(from)+class]; to != dfaUnknown {
		return to
	}
	s := d.states[int(from)/d.width]
	end := class == d.end
	var r rune
	isWord := false
	if !end {
		r = d.first(class)
		isWord = d.word && syntax.IsWordChar(r)
	}
	d.next = d.next[:0]
	if d.closure(s.at, d.flags(s, isWord, end), r, end) {
		d.table[int(from)+class] = dfaMatched
		return dfaMatched
	}
	if end {
		return d.start // the next line; not kept, since a reset moves it
	}
	d.next = append(d.next, uint32(d.prog.Start)) // a match may begin at any character
	slices.Sort(d.next)
	d.next = slices.Compact(d.next)
	if d.cells > dfaCells {
		d.resets++
		d.useless = d.resets > dfaResets
		d.reset()
		return d.state(d.next, false, isWord)
	}
	to := d.state(d.next, false, isWord)
	d.table[int(from)+class] = to
	if !d.word && len(d.next) == 1 {
		d.idle = to
		if from == to {
			for b := range d.stay {
				d.stay[b] = d.stay[b] || int(d.bytes[b]) == class
			}
		}
	}
	return to
}

// flags are the empty-width conditions that hold between the character before s and the next one.
func (d *lineDFA) flags(s dfaState, isWord, end bool) syntax.EmptyOp {
	var f syntax.EmptyOp
	if s.begin {
		f |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if end {
		f |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if s.afterWord != isWord {
		return f | syntax.EmptyWordBoundary
	}
	return f | syntax.EmptyNoWordBoundary
}

// closure takes all empty steps from some positions under flags, and the steps over r of what is reached into d.next. It tells whether a match is reached.
func (d *lineDFA) closure(from []uint32, flags syntax.EmptyOp, r rune, end bool) bool {
	d.round++
	d.stack = append(d.stack[:0], from...)
	for len(d.stack) > 0 {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.marks[at] == d.round {
			continue
		}
		d.marks[at] = d.round
		in := &d.prog.Inst[at]
		switch in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if !end && in.MatchRune(r) {
				d.next = append(d.next, in.Out)
			}
		}
	}
	return false
}

// state returns the row of the state of some sorted positions.
func (d *lineDFA) state(at []uint32, begin, afterWord bool) int32 {
	var bits byte
	if begin {
		bits |= 1
	}
	if afterWord {
		bits |= 2
	}
	d.key = append(d.key[:0], bits)
	for _, p := range at {
		d.key = binary.LittleEndian.AppendUint32(d.key, p)
	}
	if row, ok := d.rows[string(d.key)]; ok {
		return row
	}
	row := int32(len(d.table))
	for range d.width {
		d.table = append(d.table, dfaUnknown)
	}
	d.states = append(d.states, dfaState{slices.Clone(at), begin, afterWord})
	d.rows[string(d.key)] = row
	d.cells += d.width + 2*len(at)
	return row
}
