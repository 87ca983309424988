package tools

import (
	"fmt"
	"strings"

	"muster/board"
)

// report is the text of a patch that was applied: a row a file, and what was tolerated.
func (w *patching) report() Output {
	var rows []string
	var stats []board.FileStat
	added, removed, already := 0, 0, 0
	for _, d := range w.done {
		if d.already {
			already++
			rows = append(rows, "= "+d.names()+" is so already")
			continue
		}
		added, removed = added+d.added, removed+d.removed
		rows = append(rows, d.row())
		for _, one := range d.stats() {
			stats = addStat(stats, one)
		}
	}
	if already == len(w.done) {
		rows = []string{}
		for _, d := range w.done {
			rows = append(rows, d.names())
		}
		p := page{head: "the patch is applied already; nothing was changed", rows: rows, offset: 1, total: int64(len(rows)), what: "the files", unit: "files", rest: "they are in the patch"}
		return p.output(w.call.Room)
	}
	for _, d := range w.done {
		rows = append(rows, d.remarks()...)
	}
	head := fmt.Sprintf("patched %s, +%d −%d lines", plural(int64(len(w.done)-already), "file"), added, removed)
	p := page{head: head, rows: rows, offset: 1, total: int64(len(rows)), what: "the report", unit: "lines", rest: "read_file shows the files"}
	out := p.output(w.call.Room)
	out.Facts.Files = stats
	return out
}

// addStat adds the lines of a file to those that are counted for it.
func addStat(stats []board.FileStat, one board.FileStat) []board.FileStat {
	for i := range stats {
		if stats[i].Path == one.Path {
			stats[i].Added += one.Added
			stats[i].Removed += one.Removed
			return stats
		}
	}
	return append(stats, one)
}

// names are the names of a section, for the model.
func (s *section) names() string {
	from, to := shownName(shorten(s.from, 200)), shownName(shorten(s.to, 200))
	switch {
	case s.from == "" || s.from == s.to:
		return to
	case s.to == "":
		return from
	}
	return from + " → " + to
}

func (s *section) row() string {
	return fmt.Sprintf("%s %s +%d −%d%s", s.letter, s.names(), s.added, s.removed, s.mode)
}

// stats are the facts of a section: of a rename both names.
func (s *section) stats() []board.FileStat {
	one := board.FileStat{Path: s.to, Added: s.added, Removed: s.removed}
	switch s.letter {
	case "D":
		one.Path = s.from
	case "R":
		return []board.FileStat{{Path: s.from}, one}
	}
	return []board.FileStat{one}
}

// remarks say what was tolerated, hunk by hunk, and what was done to links.
func (s *section) remarks() []string {
	var rows []string
	for _, n := range s.notes {
		var what []string
		if n.Header > 0 {
			what = append(what, fmt.Sprintf("found at line %d, its header says %d", n.Line, n.Header))
		}
		if n.Ends {
			what = append(what, "line ends kept as the file has them")
		}
		if n.Blanks {
			what = append(what, fmt.Sprintf("blanks at the ends of lines differ at line %d, and are kept as the file has them", n.Line))
		}
		rows = append(rows, fmt.Sprintf("[%s hunk %d: %s]", s.names(), n.Hunk, strings.Join(what, "; ")))
	}
	if s.link != "" {
		rows = append(rows, strings.Split(strings.TrimPrefix(s.link, "\n"), "\n")...)
	}
	return rows
}
