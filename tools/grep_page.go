package tools

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"muster/budget"
)

// rowCut is a line of the page that was cut.
type rowCut struct {
	row int
	cut budget.Cut
}

// page reads the files again that have the matches from offset on, and renders them. Where a file is no longer what it was when it was counted, the
// totals follow what it is now.
func (s *search) page(ctx context.Context) (rows []string, cuts []rowCut, err error) {
	again := loader{limit: s.call.Caps.GrepFileBytes}
	limit := s.call.Caps.GrepMatches
	room := s.call.Room // characters; the page is cut exactly later
	before := int64(0)  // matches before the file
	for i := range s.files {
		f := &s.files[i]
		if len(rows) >= limit || room < 0 {
			break
		}
		if before+f.rows < s.args.Offset {
			before += f.rows
			continue
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		r := rowWriter{search: s, name: shownName(f.path), from: s.args.Offset - before, limit: limit - len(rows), first: len(rows)}
		if len(rows) > 0 {
			r.from = 1
		}
		if reading, err := s.call.Tree.Reopen(f.path); err == nil {
			if data, ok := again.load(reading); ok {
				r.write(data)
			}
			reading.Close()
		}
		if r.seen != f.rows {
			s.changed++
			s.total += r.seen - f.rows
			f.rows = r.seen
		}
		before += f.rows
		rows, cuts = append(rows, r.rows...), append(cuts, r.cuts...)
		for _, row := range r.rows {
			room -= utf8.RuneCountInString(row) + 1
		}
	}
	return rows, cuts, nil
}

// rowWriter renders matches of one file, from the from-th on.
type rowWriter struct {
	*search
	name  string
	from  int64
	limit int
	first int // rows on the page before these

	data  []byte
	seen  int64 // matches so far
	shown int   // number of the last line that is shown, 0 for none
	rows  []string
	cuts  []rowCut
}

// match is a matching line: its number, where it is in the data, and where what matched is in it.
type match struct {
	line             int
	start, end, next int
}

// write goes over all matches, since they are counted, and renders some.
func (r *rowWriter) write(data []byte) {
	find := r.find.finder()
	r.data = data
	var now, before match // the match to be rendered, and the one before it
	at, line := 0, 1
	for {
		hit := find.next(data, at)
		following := match{start: len(data)}
		if hit >= 0 {
			following.start, following.end, following.next = lineAt(data, hit)
			following.line = line + bytes.Count(data[at:following.start], []byte{'\n'})
		}
		if now.line > 0 {
			r.render(now, before, following)
		}
		if hit < 0 {
			return
		}
		r.seen++
		before, now = now, following
		at, line = following.next, following.line+1
		if at >= len(data) {
			r.render(now, before, match{start: len(data)})
			return
		}
	}
}

// render adds a row for m unless it is not on the page. Context lines are never matches themselves: they end where the match before or after is.
func (r *rowWriter) render(m, before, following match) {
	if r.seen < r.from || len(r.rows) >= r.limit {
		return
	}
	var b strings.Builder
	row := r.first + len(r.rows)
	around := int(r.args.Context)
	start, line := m.start, m.line
	for n := 0; n < around && start > before.next && line-1 > r.shown; n++ {
		start = bytes.LastIndexByte(r.data[:start-1], '\n') + 1
		line--
	}
	if around > 0 && row > 0 && (r.shown == 0 || line > r.shown+1) {
		b.WriteString("--\n")
	}
	for ; line < m.line; line++ {
		end, next := lineFrom(r.data, start)
		text, _, _ := cutAround(string(r.data[start:end]), 0, 0, r.call.Caps.GrepLineChars)
		fmt.Fprintf(&b, "%s-%d-%s\n", r.name, line, text)
		start = next
	}
	whole := string(r.data[m.start:m.end])
	from, to := r.find.span(whole)
	text, kept, chars := cutAround(whole, from, to, r.call.Caps.GrepLineChars)
	fmt.Fprintf(&b, "%s:%d:%s", r.name, m.line, text)
	if kept < chars {
		r.cuts = append(r.cuts, rowCut{row, budget.Cut{What: fmt.Sprintf("%s line %d", r.name, m.line), Unit: "characters",
			Shown: int64(kept), Total: int64(chars)}})
	}
	r.shown = m.line
	for start = m.next; around > 0 && start < following.start; around-- {
		end, next := lineFrom(r.data, start)
		r.shown++
		text, _, _ := cutAround(string(r.data[start:end]), 0, 0, r.call.Caps.GrepLineChars)
		fmt.Fprintf(&b, "\n%s-%d-%s", r.name, r.shown, text)
		start = next
	}
	r.rows = append(r.rows, b.String())
}

// cutAround makes a line safe to show and cuts it to limit characters, ellipses included, so that what is from byte from to byte to is in it. It
// says how many of how many characters it kept.
func cutAround(line string, from, to, limit int) (text string, kept, chars int) {
	chars = budget.Chars(line)
	if chars <= limit {
		text, _, _ = visible(line)
		return text, chars, chars
	}
	lead := budget.Chars(line[:from])
	wide := budget.Chars(line[from:to])
	// The match stands in the middle; one that is wider than the room begins at a quarter.
	begin := lead - max(limit/4, (limit-wide)/2)
	if wide > limit/2 {
		begin = lead - limit/4
	}
	begin = max(0, min(begin, chars-limit+1))
	keep := limit - 1 // one ellipsis at least
	if begin > 0 && begin+keep < chars {
		keep--
	}
	rest := line[len(headChars(line, begin)):]
	text, _, _ = visible(headChars(rest, keep))
	if begin > 0 {
		text = "…" + text
	}
	if begin+keep < chars {
		text += "…"
	}
	return text, keep, chars
}
