package patch

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// level is how much two lines may differ and still be the same.
type level int

const (
	byteForByte level = iota
	anyEnd            // but for line ends
	anyBlanks         // but for blanks at the ends of lines too
	levels
)

// key is what must be equal of two lines.
func (v level) key(line string) string {
	switch v {
	case byteForByte:
		return line
	case anyEnd:
		return Body(line)
	}
	return strings.TrimRight(Body(line), " \t")
}

// mostPlaces is up to how many places a hunk is looked for: with so many, its header must say which.
const mostPlaces = 100

// ground is the text that hunks are placed on.
type ground struct {
	lines []string
	index [levels]map[string][]int // lines by key, made when first needed
}

// pattern is lines to be found.
type pattern struct {
	lines []string
	toEnd bool // nothing may follow them
}

// at says whether the pattern stands at line p, from 0.
func (g *ground) at(pat pattern, p int, v level) bool {
	end := p + len(pat.lines)
	if p < 0 || end > len(g.lines) || pat.toEnd && end < len(g.lines) {
		return false
	}
	for i, l := range pat.lines {
		if v.key(l) != v.key(g.lines[p+i]) {
			return false
		}
	}
	return true
}

// find lists where the pattern stands, up to mostPlaces. It looks where the rarest of its lines is.
func (g *ground) find(ctx context.Context, pat pattern, v level) ([]int, error) {
	if len(pat.lines) == 0 || len(pat.lines) > len(g.lines) {
		return nil, nil
	}
	if g.index[v] == nil {
		g.index[v] = make(map[string][]int, len(g.lines))
		for i, l := range g.lines {
			k := v.key(l)
			g.index[v][k] = append(g.index[v][k], i)
		}
	}
	rarest, offset := g.index[v][v.key(pat.lines[0])], 0
	for i, l := range pat.lines[1:] {
		if where := g.index[v][v.key(l)]; len(where) < len(rarest) {
			rarest, offset = where, i+1
		}
	}
	var found []int
	for n, i := range rarest {
		if n%1024 == 1023 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if g.at(pat, i-offset, v) {
			if found = append(found, i-offset); len(found) == mostPlaces {
				break
			}
		}
	}
	return found, nil
}

// job is a hunk and where it goes.
type job struct {
	*Hunk
	number   int // in its file, from 1
	old, new pattern
	level    level
	found    []int // places that are possible
	at       int   // the place, -1 for none yet
	already  bool  // its new lines stand there
	missing  bool  // its old lines stand nowhere
	why      string
	places   []int // lines, from 1, that why or already is about
}

func newJob(h *Hunk, number int) *job {
	j := &job{Hunk: h, number: number, at: -1, old: pattern{lines: h.side('-')}, new: pattern{lines: h.side('+')}}
	unended := func(lines []string) bool { return len(lines) > 0 && End(lines[len(lines)-1]) == "" }
	j.old.toEnd = h.AtEnd || unended(j.old.lines) || unended(j.new.lines)
	j.new.toEnd = j.old.toEnd
	return j
}

// stated is the place that the header says.
func (j *job) stated() int {
	if !j.Known {
		return -1
	}
	return j.Old - 1
}

func (j *job) open() bool { return j.at < 0 && !j.already && j.why == "" }

func (j *job) fail(places []int, format string, a ...any) {
	j.places, j.why = places, fmt.Sprintf(format, a...)
}

// lead and tail are how many lines of context stand before the first change and after the last.
func (j *job) lead() int {
	return slices.IndexFunc(j.Lines, func(l string) bool { return l[0] != ' ' })
}

func (j *job) tail() int {
	n := 0
	for i := len(j.Lines) - 1; i >= 0 && j.Lines[i][0] == ' '; i-- {
		n++
	}
	return n
}

// done says that around place p, where the old lines stand, the new ones do too: the hunk has been applied, or the lines are so alike that nobody can tell.
func (j *job) done(g *ground, p int) bool {
	more := len(j.new.lines) - len(j.old.lines)
	for q := p - more; more > 0 && q <= p; q++ {
		if g.at(j.new, q, min(j.level, anyEnd)) {
			return true
		}
	}
	return false
}

// strict says that the hunk stands where its header says, as the format has it.
func (j *job) strict(g *ground) bool {
	if len(j.old.lines) == 0 || !g.at(j.old, j.stated(), j.level) {
		return false
	}
	if j.tail() > 0 || j.stated()+len(j.old.lines) == len(g.lines) {
		return true
	}
	// Without context after it, a hunk is at the end of the file. Elsewhere an addition would match again and again.
	return !j.done(g, j.stated()) && !j.torn(g)
}

// torn says that the number of a hunk and its form say different places: a line in the middle, and the end of the file.
func (j *job) torn(g *ground) bool {
	last := len(g.lines) - len(j.old.lines)
	return j.lead() > 0 && j.tail() == 0 && j.stated() != last && g.at(j.old, j.stated(), j.level) && g.at(j.old, last, j.level)
}

// search finds the places where a hunk may go, or that it is applied already.
func (j *job) search(ctx context.Context, g *ground, carriage bool) error {
	for j.level = byteForByte; j.level < levels; j.level++ {
		found, err := g.find(ctx, j.old, j.level)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			j.found = found
			j.weigh(g, carriage)
			return nil
		}
		if stands, err := j.stands(ctx, g); stands || err != nil {
			j.already = stands
			return err
		}
	}
	j.level = anyEnd // there is no level left
	j.missing = true
	j.fail(nil, "its old lines are not in the file")
	return nil
}

// resultAt says that the new lines stand at a line, from 1.
func (j *job) resultAt(g *ground, line int, v level) bool {
	if !j.Known || len(j.new.lines) == 0 || !j.result(g, line-1, v) {
		return false
	}
	j.places = []int{line}
	return true
}

// result says that the new lines stand at place p. Blanks at their ends may differ in context only.
func (j *job) result(g *ground, p int, v level) bool {
	if !g.at(j.new, p, v) {
		return false
	}
	for _, l := range j.Lines {
		if l[0] == '+' && v == anyBlanks && Body(l[1:]) != Body(g.lines[p]) {
			return false
		}
		if l[0] != '-' {
			p++
		}
	}
	return true
}

// stands says that the new lines are where the old ones are missed.
func (j *job) stands(ctx context.Context, g *ground) (bool, error) {
	if len(j.new.lines) == 0 {
		return false, nil
	}
	if j.resultAt(g, j.New, j.level) {
		return true, nil
	}
	if added, _ := j.counts(); added == 0 {
		return false, nil // what stands around a removed line proves little elsewhere
	}
	found, err := g.find(ctx, j.new, j.level)
	if len(found) != 1 || !j.result(g, found[0], j.level) {
		return false, err
	}
	j.places = []int{found[0] + 1}
	return true, err
}

// weigh looks at the places that were found, whether they are to be trusted.
func (j *job) weigh(g *ground, carriage bool) {
	done := slices.DeleteFunc(slices.Clone(j.found), func(p int) bool { return !j.done(g, p) })
	switch {
	case j.level == anyBlanks && len(j.found) > 1:
		j.fail(lineNumbers(j.found), "its old lines differ from the file's in blanks at the ends of lines, and match so at several places")
	case j.strict(g):
	case len(done) == len(j.found) && (j.lead() == 0 || j.tail() == 0):
		j.already, j.places = true, lineNumbers(done)
	case len(done) > 0:
		j.fail(lineNumbers(j.found), "its lines repeat, so that it matches the file as it was before the hunk and as it is after it")
	case j.torn(g):
		j.fail([]int{j.Old, len(g.lines) - len(j.old.lines) + 1}, "it has no context after its last change, as at the end of the file, and its old lines are there and at the line that it says")
	case j.level == byteForByte && !carriage && g.at(j.old, j.stated(), anyEnd):
		j.fail(append(lineNumbers(j.found), j.Old), "its old lines are at the line that it says with other line ends, and elsewhere with these")
	case j.resultAt(g, j.New, j.level):
		j.fail(append(j.places, lineNumbers(j.found)...), "it seems to be applied already at line %d, and its old lines stand elsewhere too", j.New)
	}
}

// first and last are where the changed lines begin and end if the hunk is at place p.
func (j *job) first(p int) int { return p + j.lead() }

func (j *job) last(p int) int { return p + len(j.old.lines) - j.tail() }

// lineNumbers are places counted from 1.
func lineNumbers(places []int) []int {
	out := make([]int, len(places))
	for i, p := range places {
		out[i] = p + 1
	}
	return out
}
