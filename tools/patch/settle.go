package patch

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// place decides where each hunk goes.
func place(ctx context.Context, g *ground, jobs []*job) error {
	if !slices.ContainsFunc(jobs, func(j *job) bool { return !j.strict(g) }) {
		for _, j := range jobs {
			j.at = j.stated()
		}
		return nil
	}
	carriage := slices.ContainsFunc(jobs, func(j *job) bool {
		return slices.ContainsFunc(j.old.lines, func(l string) bool { return End(l) == "\r\n" })
	})
	for _, j := range jobs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(j.old.lines) == 0 {
			continue
		}
		if err := j.search(ctx, g, carriage); err != nil {
			return err
		}
		if err := j.afterAnchors(ctx, g); err != nil {
			return err
		}
		if j.open() && len(j.found) == 1 {
			j.at = j.found[0]
		}
	}
	recall(g, jobs)
	choose(inOrder(jobs))
	for _, j := range jobs {
		if j.open() {
			j.insert(g, jobs)
		}
	}
	return nil
}

// recall finds hunks that only remove lines, and of which nothing is left, where other hunks of the file are applied already: as far from where the
// header has them.
func recall(g *ground, jobs []*job) {
	moved, some := 0, false
	for _, j := range jobs {
		if j.already && j.Known {
			moved, some = j.places[0]-j.New, true
		} else if some && j.missing && j.resultAt(g, j.New+moved, anyEnd) {
			j.already, j.missing, j.why = true, false, ""
		}
	}
}

// inOrder are the hunks in the order in which they stand in the file.
func inOrder(jobs []*job) []*job {
	if slices.ContainsFunc(jobs, func(j *job) bool { return !j.Known }) {
		return jobs
	}
	sorted := slices.Clone(jobs)
	slices.SortStableFunc(sorted, func(a, b *job) int { return cmp.Compare(a.Old, b.Old) })
	return sorted
}

// afterAnchors keeps the places that come first after the lines that the hunk names. Such a line is a hint, like a number: one that is not in the file does
// not keep a hunk from the only place that fits.
func (j *job) afterAnchors(ctx context.Context, g *ground) error {
	if len(j.Anchors) == 0 || !j.open() {
		return nil
	}
	starts := []int{0}
	for _, a := range j.Anchors {
		var next []int
		for _, from := range starts {
			next = append(next, g.anchors(a, from)...)
		}
		slices.Sort(next)
		starts = slices.Compact(next)
	}
	if len(starts) == 0 && len(j.found) == 1 {
		return nil
	}
	if kept := firstAfter(starts, j.found); len(kept) > 0 {
		j.found = kept
		return nil
	}
	stands, err := g.find(ctx, j.new, min(j.level, anyEnd))
	if stands = firstAfter(starts, stands); len(stands) > 0 {
		j.already, j.places = true, lineNumbers(stands)
		return err
	}
	j.fail(lineNumbers(j.found), "its old lines are in the file, and not after a line %q", cut(strings.Join(j.Anchors, ", ")))
	return err
}

// firstAfter lists the first place at or after each start.
func firstAfter(starts, places []int) []int {
	var first []int
	for _, from := range starts {
		if i, _ := slices.BinarySearch(places, from); i < len(places) {
			first = append(first, places[i])
		}
	}
	return slices.Compact(first)
}

// anchors lists the lines from one on that are as an anchor, blanks around them aside; where there is none, those that begin so.
func (g *ground) anchors(anchor string, from int) (at []int) {
	for _, fits := range []func(line, anchor string) bool{func(l, a string) bool { return l == a }, strings.HasPrefix} {
		for i := from; i < len(g.lines) && len(at) < mostPlaces; i++ {
			if fits(strings.TrimSpace(g.lines[i]), anchor) {
				at = append(at, i)
			}
		}
		if len(at) > 0 {
			return at
		}
	}
	return nil
}

// rounds is how often hunks that match at several places are looked at again, since those that got a place meanwhile may tell.
const rounds = 8

// choose places the hunks that match at several places, by those around them.
func choose(jobs []*job) {
	after := make([]*job, len(jobs))
	for range rounds {
		var next, before *job
		for i := len(jobs) - 1; i >= 0; i-- {
			if after[i] = next; jobs[i].at >= 0 {
				next = jobs[i]
			}
		}
		picked := false
		for i, j := range jobs {
			if j.open() && len(j.found) > 0 {
				picked = j.pick(before, after[i]) || picked
			}
			if j.at >= 0 {
				before = j
			}
		}
		if !picked {
			break
		}
	}
	for _, j := range jobs {
		switch {
		case !j.open() || len(j.found) == 0:
		case len(j.found) == mostPlaces:
			j.fail(lineNumbers(j.found[:10]), "its old lines are at %d places or more; the first are", mostPlaces)
		default:
			j.fail(lineNumbers(j.found), "its old lines are at several places")
		}
	}
}

// pick chooses one of several places: where the header says, moved as the hunks around it are; else the only one between them.
func (j *job) pick(before, after *job) bool {
	if j.Known {
		if j.Old <= 1 && j.lead() == 0 && j.tail() > 0 && j.found[0] == 0 {
			j.at = 0 // without context before it, it is at the beginning of the file
			return true
		}
		shifts := map[int]bool{}
		for _, n := range []*job{before, after} {
			if n != nil && n.Known {
				shifts[n.at-n.stated()] = true
			}
		}
		if len(shifts) == 0 {
			shifts[0] = true
		}
		for by := range shifts {
			if len(shifts) == 1 && slices.Contains(j.found, j.stated()+by) {
				j.at = j.stated() + by
				return true
			}
		}
	}
	if before == nil && after == nil || len(j.found) == mostPlaces {
		return false
	}
	var between []int
	for _, p := range j.found {
		if (before == nil || j.first(p) >= before.last(before.at)) && (after == nil || j.last(p) <= after.first(after.at)) {
			between = append(between, p)
		}
	}
	if len(between) != 1 {
		return false
	}
	j.at = between[0]
	return true
}

// insert places a hunk without old lines, which only its header can place.
func (j *job) insert(g *ground, jobs []*job) {
	twin := j.Known && g.at(pattern{lines: j.new.lines}, max(j.New-1, 0), anyEnd)
	others := func(is func(*job) bool) bool {
		return slices.ContainsFunc(jobs, func(o *job) bool { return o != j && is(o) })
	}
	switch {
	case len(g.lines) == 0:
		j.at = 0
	case j.AtEnd:
		if tail := len(g.lines) - len(j.new.lines); g.at(j.new, tail, anyEnd) {
			j.already, j.places = true, []int{tail + 1}
			return
		}
		j.at = len(g.lines)
	case !j.Known || !j.Blind:
		j.fail(nil, "it has added lines only, and nothing that says where they go; give it lines of context")
	case twin && others(func(o *job) bool { return o.already }) && !others(func(o *job) bool { return o.at >= 0 && len(o.old.lines) > 0 }):
		j.already, j.places = true, []int{j.New}
	case j.Old > len(g.lines):
		j.fail(nil, "it adds lines after line %d, and the file has %d", j.Old, len(g.lines))
	case others(func(o *job) bool { return o.at >= 0 && len(o.old.lines) > 0 && o.at != o.stated() }):
		j.fail(nil, "it has no lines of context, and the lines around it have moved; give it some")
	case g.at(pattern{lines: j.new.lines}, j.Old, byteForByte):
		j.fail([]int{j.Old + 1}, "the lines that it adds stand there already: if the patch was applied before, nothing is left to do; to add them once more give it lines of context")
	default:
		j.at = j.Old
	}
}
