package tools

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/tools/workspace"
)

type grepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"text to find in a line"`
	Path       string `json:"path,omitempty" default:"." jsonschema:"folder or file"`
	Include    string `json:"include,omitempty" jsonschema:"only files whose name or path matches, such as src/**/*.{js,ts}"`
	Regex      bool   `json:"regex,omitempty" jsonschema:"pattern is an RE2 expression"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"default no"`
	Context    int64  `json:"context,omitempty" min:"0" max:"20" jsonschema:"lines around each match, default 0"`
	NoIgnore   bool   `json:"no_ignore,omitempty" jsonschema:"also ignored files, node_modules and such"`
	Offset     int64  `json:"offset,omitempty" default:"1" min:"1" jsonschema:"first match"`
}

func grep() Tool {
	return define("grep", Read,
		"Finds lines in files, literal unless regex. Returns `path:line:text` (`path-line-text` for context), sorted, with the exact total, in pages by offset. "+
			"Binary and large files are skipped and counted. To find files by name use glob.",
		runGrep)
}

func runGrep(ctx context.Context, c *Call, a grepArgs) (Output, error) {
	if strings.ContainsAny(a.Pattern, "\n") {
		return Output{}, fail(Input, "pattern holds a newline, and a match is within one line; search for one of its lines (context shows the lines around it)")
	}
	find, err := compileSearch(a.Pattern, a.Regex, a.IgnoreCase)
	if err != nil {
		return Output{}, err
	}
	s := &search{call: c, args: a, find: find}
	if err := s.only(a.Include); err != nil {
		return Output{}, err
	}
	if err := s.walk(ctx); err != nil {
		return Output{}, err
	}
	return s.output(ctx)
}

// only sets which files are searched: by name where the pattern has no slash, else by the path from the root or from where the search begins.
func (s *search) only(include string) (err error) {
	if include == "" {
		return nil
	}
	pattern := strings.TrimPrefix(include, "./")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	if s.include, err = compilePathGlob(pattern); err != nil {
		return fail(Input, "include %q: %v", shorten(include, 200), err)
	}
	s.strip, err = stripOf(s.call, s.args.Path)
	return err
}

// included tells whether a file is searched.
func (s *search) included(path string) bool {
	return s.include == nil || s.include.match(path) || s.strip < len(path) && s.include.match(path[s.strip:])
}

// searched is one file with matches.
type searched struct {
	path string
	rows int64
}

// search is one call of grep. It goes over the files twice: first all of them, side by side, only to count; then, in order, the few whose matches are
// on the page, to show them. So totals are exact and memory is that of a page, whatever the offset.
type search struct {
	call    *Call
	args    grepArgs
	find    *searchPlan
	include *pathGlob // nil: all files
	strip   int       // bytes of a path before where the search begins

	lanes   [workspace.Lanes]searchLane
	skipped workspace.Skipped
	files   []searched // sorted
	total   int64
	changed int // files that were not the same when they were read again
}

// searchLane is what one goroutine of the walk counts.
type searchLane struct {
	loader
	find   *lineFinder
	files  []searched
	looked int
	ruled  int      // left out, since rules keep them from the agent
	_      [64]byte // lanes do not share a cache line
}

// walkOptions are the bounds of every walk of a tool.
func walkOptions(c *Call, noIgnore bool) workspace.WalkOptions {
	return workspace.WalkOptions{
		NoIgnore: noIgnore,
		Prune:    c.set.cfg.Prune,
		MaxFiles: c.Caps.WalkFiles,
		MaxTime:  time.Duration(c.Caps.WalkSecs) * time.Second,
	}
}

// walk is the first pass.
func (s *search) walk(ctx context.Context) error {
	for i := range s.lanes {
		s.lanes[i].limit = s.call.Caps.GrepFileBytes
	}
	var err error
	kept := s.call.leftOut("grep", s.args.Path)
	s.skipped, err = s.call.Tree.Walk(ctx, s.args.Path, walkOptions(s.call, s.args.NoIgnore), func(w workspace.Walked) error {
		l := &s.lanes[w.Lane]
		if !s.included(w.Path) {
			return nil
		}
		if kept != nil && kept(w.Path) {
			l.ruled++
			return nil
		}
		data, ok := l.open(w)
		if !ok {
			return nil
		}
		l.looked++
		if l.find == nil {
			l.find = s.find.finder()
		}
		if n := l.find.count(data); n > 0 {
			l.files = append(l.files, searched{w.Path, n})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.lanes {
		s.files = append(s.files, s.lanes[i].files...)
	}
	slices.SortFunc(s.files, func(x, y searched) int { return cmp.Compare(x.path, y.path) })
	for _, f := range s.files {
		s.total += f.rows
	}
	return nil
}

// output is the second pass and the text.
func (s *search) output(ctx context.Context) (Output, error) {
	rows, cuts, err := s.page(ctx)
	if err != nil {
		return Output{}, err
	}
	if s.total == 0 {
		return s.nothing(), nil
	}
	if s.args.Offset > s.total {
		return Output{}, fail(Input, "offset %d is past the end: %s in %s; give an offset of at most %d", s.args.Offset,
			plural(s.total, "match"), plural(int64(len(s.files)), "file"), s.total)
	}
	p := page{
		head: s.head(int64(len(rows))), rows: rows, offset: s.args.Offset, total: s.total,
		what: fmt.Sprintf("%q", shorten(s.args.Pattern, 60)), unit: "matches", foot: s.foot(),
	}
	out := p.output(s.call.Room)
	shown := int64(len(rows))
	if len(out.Facts.Cuts) > 0 {
		shown = out.Facts.Cuts[0].Shown
	}
	out.Text = s.head(shown) + strings.TrimPrefix(out.Text, p.head)
	for _, c := range cuts {
		if c.row < int(shown) {
			out.Facts.Cuts = append(out.Facts.Cuts, c.cut)
		}
	}
	out.Facts.Seen = s.seen()
	return out, nil
}

// head is the first line: the totals, and which matches follow.
func (s *search) head(shown int64) string {
	counts := fmt.Sprintf("%d total in %s", s.total, plural(int64(len(s.files)), "file"))
	switch {
	case shown == s.total:
		return "(" + counts + ")"
	case s.args.Offset == 1:
		return fmt.Sprintf("(%s, showing first %d)", counts, shown)
	}
	return fmt.Sprintf("(%s, showing %d to %d)", counts, s.args.Offset, s.args.Offset+shown-1)
}

// nothing is the answer without a match.
func (s *search) nothing() Output {
	looked := 0
	for i := range s.lanes {
		looked += s.lanes[i].looked
	}
	text := fmt.Sprintf("no matches for %q in %s", shorten(s.args.Pattern, 200), plural(int64(looked), "file"))
	if s.include != nil {
		text += fmt.Sprintf(" that include %q allows", shorten(s.args.Include, 100))
	}
	if !s.args.Regex && regexp.QuoteMeta(s.args.Pattern) != s.args.Pattern {
		text += "; the pattern was taken literally, regex: true takes it as a regular expression"
	}
	if foot := s.foot(); foot != "" {
		text += "\n" + foot
	}
	return Output{Text: text, Facts: Facts{Seen: s.seen()}}
}

func (s *search) seen() int64 {
	n := int64(0)
	for i := range s.lanes {
		n += s.lanes[i].bytes
	}
	return n
}

// foot says what was not searched, by reason, and where the walk stopped.
func (s *search) foot() string {
	var large, binary, unreadable, ruled int
	for i := range s.lanes {
		l := &s.lanes[i]
		large, binary, unreadable, ruled = large+l.large, binary+l.binary, unreadable+l.unreadable, ruled+l.ruled
	}
	var files []string
	if large > 0 {
		files = append(files, fmt.Sprintf("%d too large (over %d bytes; read_file with offset reads them)", large, s.call.Caps.GrepFileBytes))
	}
	if binary > 0 {
		files = append(files, fmt.Sprintf("%d binary", binary))
	}
	if unreadable > 0 {
		files = append(files, fmt.Sprintf("%d unreadable", unreadable))
	}
	if ruled > 0 {
		files = append(files, fmt.Sprintf("%d that rules keep from you", ruled))
	}
	if s.changed > 0 {
		files = append(files, fmt.Sprintf("%d changed meanwhile", s.changed))
	}
	return walkFoot(s.skipped, files, s.args.NoIgnore)
}

// walkFoot says what a walk left out, after what its tool left out, and how far it got where it stopped; empty where there is nothing to say.
func walkFoot(skipped workspace.Skipped, files []string, noIgnore bool) string {
	var lines []string
	if reasons := append(files, skipped.Reasons()...); len(reasons) > 0 {
		text := "[skipped: " + strings.Join(reasons, ", ")
		if !noIgnore && (len(skipped.Pruned) > 0 || skipped.Ignored > 0) {
			text += "; no_ignore searches pruned and ignored ones too"
		}
		lines = append(lines, text+"]")
	}
	if skipped.Stopped != "" {
		lines = append(lines, "[stopped early, "+skipped.Stopped+"; the totals are of these; give a path further down]")
	}
	return strings.Join(lines, "\n")
}
