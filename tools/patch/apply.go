package patch

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Result is what a patch makes of the text of one file.
type Result struct {
	Text           string
	Added, Removed int       // lines
	Already        bool      // the text is what the patch makes of it already
	Notes          []Note    // of hunks that matched only by tolerance
	Failed         []Failure // of hunks; nothing is applied then, and Text is as it was
}

// Note says what was tolerated of a hunk.
type Note struct {
	Hunk   int  // in its file, from 1
	Line   int  // where it was found
	Header int  // where its header says, 0 for nothing or the same
	Ends   bool // the file has other line ends, which stay
	Blanks bool // the file has other blanks at the ends of lines
}

// Failure is a hunk that cannot be applied.
type Failure struct {
	Hunk    int // in its file, from 1
	Header  string
	Line    int      // of the patch
	Old     []string // its old lines, without ends
	Why     string
	Places  []int // lines of the file that Why is about
	Missing bool  // its old lines are not in the file
}

// byteOrderMark begins some texts. It is no part of the first line for anybody but a patch that names it.
const byteOrderMark = "\uFEFF"

// Apply makes the new text of a file of text. What cannot be applied is no error but listed in the result; an error is only that of ctx. The text of a new
// file is made of "".
func (f *File) Apply(ctx context.Context, text string) (Result, error) {
	mark := ""
	if strings.HasPrefix(text, byteOrderMark) && !f.marked() {
		mark, text = byteOrderMark, strings.TrimPrefix(text, byteOrderMark)
	}
	g := &ground{lines: Lines(text)}
	jobs := make([]*job, len(f.Hunks))
	for i := range f.Hunks {
		jobs[i] = newJob(&f.Hunks[i], i+1)
	}
	if err := place(ctx, g, jobs); err != nil {
		return Result{}, err
	}
	apart(jobs)
	r := Result{Text: mark + text}
	done := 0
	for _, j := range jobs {
		done += count(j.already)
		if j.why != "" {
			r.Failed = append(r.Failed, j.failure())
		}
	}
	switch {
	case len(r.Failed) > 0:
		return r, nil
	case done == len(jobs) && done > 0:
		r.Already = true
		return r, nil
	case done > 0:
		for _, j := range jobs {
			if j.already {
				j.fail(j.places, "it is applied already, and other hunks of this file are not; leave it out")
				r.Failed = append(r.Failed, j.failure())
			}
		}
		return r, nil
	}
	for _, j := range jobs {
		added, removed := j.counts()
		r.Added, r.Removed = r.Added+added, r.Removed+removed
		if n, told := j.note(g); told {
			r.Notes = append(r.Notes, n)
		}
	}
	now := mark + g.with(jobs)
	if f.Op == Delete && len(jobs) > 0 && now != mark {
		j := jobs[len(jobs)-1]
		j.fail(nil, "the file has %d more lines than the patch removes with it", len(Lines(strings.TrimPrefix(now, mark))))
		r.Failed = []Failure{j.failure()}
		return r, nil
	}
	r.Already = now == r.Text && len(jobs) > 0
	r.Text = now
	return r, nil
}

// marked says that a hunk has a line with a byte order mark.
func (f *File) marked() bool {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if strings.HasPrefix(l[1:], byteOrderMark) {
				return true
			}
		}
	}
	return false
}

func (j *job) failure() Failure {
	old := make([]string, len(j.old.lines))
	for i, l := range j.old.lines {
		old[i] = Body(l)
	}
	return Failure{Hunk: j.number, Header: j.Header, Line: j.Line, Old: old, Why: j.why, Places: j.places, Missing: j.missing}
}

func (j *job) note(g *ground) (Note, bool) {
	n := Note{Hunk: j.number, Line: j.at + 1, Ends: j.level >= anyEnd, Blanks: j.level == anyBlanks}
	if n.Blanks {
		n.Ends = false
		for i, l := range j.old.lines {
			n.Ends = n.Ends || End(l) != End(g.lines[j.at+i])
		}
	}
	if j.Known && len(j.old.lines) > 0 && j.at != j.stated() {
		n.Header = j.Old
	}
	return n, n.Ends || n.Blanks || n.Header > 0
}

// apart fails hunks that change the same lines.
func apart(jobs []*job) {
	placed := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.at < 0 })
	slices.SortStableFunc(placed, func(a, b *job) int { return cmp.Compare(a.first(a.at), b.first(b.at)) })
	for i := 1; i < len(placed); i++ {
		a, b := placed[i-1], placed[i]
		end, start := a.last(a.at), b.first(b.at)
		if start < end || start == end && a.first(a.at) == end && b.last(b.at) == start { // two insertions at one place have no order
			b.fail([]int{start + 1}, "it changes the same lines as hunk %d", a.number)
		}
	}
}

// with is the text after the hunks.
func (g *ground) with(jobs []*job) string {
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.first(a.at), b.first(b.at)) })
	out := make([]string, 0, len(g.lines)+16)
	at := 0
	for _, j := range jobs {
		out = append(out, g.lines[at:j.first(j.at)]...)
		out, at = j.apply(g, out)
	}
	out = append(out, g.lines[at:]...)
	var b strings.Builder
	for i, l := range out {
		b.WriteString(l)
		if i < len(out)-1 && End(l) == "" {
			b.WriteString(NearEnd(g.lines, len(g.lines))) // it was the last line and is not any more
		}
	}
	return b.String()
}

// apply adds the changed part of a hunk to out, from its first change to its last, and says where the text goes on.
func (j *job) apply(g *ground, out []string) ([]string, int) {
	at := j.first(j.at)
	begin := at
	var added []string
	flush := func() {
		out = append(out, j.fit(g, added, begin, at)...)
		added = nil
	}
	for _, l := range j.Lines[j.lead() : len(j.Lines)-j.tail()] {
		switch l[0] {
		case '-':
			if len(added) > 0 { // what was added before is in its place already
				flush()
				begin = at
			}
			at++
		case '+':
			added = append(added, l[1:])
		default:
			flush()
			out = append(out, g.lines[at])
			at++
			begin = at
		}
	}
	flush()
	return out, at
}

// fit gives added lines, which replace those of the file from begin to end, their ends: as they are where the hunk matches byte for byte, else the file's.
func (j *job) fit(g *ground, added []string, begin, end int) []string {
	near := NearEnd(g.lines, end)
	// Without old lines a hunk does not show the line ends of its file.
	silent := len(j.old.lines) == 0 && near == "\r\n" && !slices.ContainsFunc(j.Lines, func(l string) bool { return End(l) == near })
	if j.level == byteForByte && !silent {
		return added
	}
	out := WithEnds(added, g.lines[begin:end], near)
	for i, l := range added {
		switch {
		case End(l) == "": // the patch says that the file ends there
			out[i] = l
		case out[i] == "": // an empty line is nothing without an end
			out[i] = near
		}
	}
	return out
}
