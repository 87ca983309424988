package tools

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster/tools/workspace"
)

type globArgs struct {
	Pattern  string `json:"pattern" jsonschema:"* ? […] {a,b} within a level, **/ for any levels"`
	Path     string `json:"path,omitempty" default:"." jsonschema:"folder"`
	NoIgnore bool   `json:"no_ignore,omitempty" jsonschema:"also ignored files, node_modules and such"`
	Offset   int64  `json:"offset,omitempty" default:"1" min:"1" jsonschema:"first file"`
}

func glob() Tool {
	return define("glob", Read,
		"Finds files (not folders or links) by their path below path: *.go is the top folder only, **/*.go any. Returns sorted paths and the exact total, in pages by offset. "+
			"To search in files use grep.",
		runGlob)
}

func runGlob(ctx context.Context, c *Call, a globArgs) (Output, error) {
	start, pattern, err := globStart(c, a)
	if err != nil {
		return Output{}, err
	}
	match, err := compilePathGlob(pattern)
	if err != nil {
		return Output{}, fail(Input, "pattern %q: %v", shorten(a.Pattern, 200), err)
	}
	strip, err := stripOf(c, start)
	if err != nil {
		return Output{}, err
	}
	var lanes [workspace.Lanes]smallest
	for i := range lanes {
		lanes[i].want = int(min(a.Offset-1, int64(c.Caps.WalkFiles))) + c.Caps.GlobFiles
	}
	var skipped workspace.Skipped
	if isFolder(c, start) { // else the pattern begins with a folder that is not there, and nothing matches
		kept := c.leftOut("glob", start)
		o := walkOptions(c, a.NoIgnore)
		o.MaxDepth = match.levels()
		skipped, err = c.Tree.Walk(ctx, start, o, func(w workspace.Walked) error {
			switch l := &lanes[w.Lane]; {
			case !match.match(w.Path[strip:]):
			case kept != nil && kept(w.Path):
				l.ruled++
			default:
				l.add(w.Path)
			}
			return nil
		})
	}
	if err != nil {
		return Output{}, err
	}
	all := &lanes[0]
	for i := 1; i < len(lanes); i++ {
		all.merge(&lanes[i])
	}
	return globOutput(c, a, pattern, all, skipped)
}

func isFolder(c *Call, path string) bool {
	info, err := c.Tree.Stat(path)
	return err == nil && info.IsDir()
}

// globStart splits a pattern into the folder it begins with, which is named and so looked into whatever ignores it, and the rest.
func globStart(c *Call, a globArgs) (start, pattern string, err error) {
	start, pattern = a.Path, a.Pattern
	if info, err := c.Tree.Stat(start); err != nil {
		return "", "", err
	} else if !info.IsDir() {
		return "", "", fail(Input, "path %q is a file, not a folder; give a folder, or the file's folder", shorten(a.Path, 200))
	}
	if path.IsAbs(pattern) {
		rest, ok := strings.CutPrefix(pattern, strings.TrimSuffix(c.Tree.Dir, "/")+"/")
		if !ok {
			return "", "", fail(Permission, "pattern %q leads outside the workspace; give one relative to its root", shorten(pattern, 200))
		}
		start, pattern = ".", rest
	}
	elements := strings.Split(pattern, "/")
	kept := elements[:0]
	for i, e := range elements {
		if e == ".." {
			return "", "", fail(Input, "pattern %q holds \"..\"; name the folder as path and give the pattern below it", shorten(a.Pattern, 200))
		}
		if e != "." && (e != "" || i == len(elements)-1) {
			kept = append(kept, e)
		}
	}
	folders := 0
	for folders < len(kept)-1 && !strings.ContainsAny(kept[folders], globMeta) {
		folders++
	}
	if folders > 0 {
		start = path.Join(start, path.Join(kept[:folders]...))
	}
	return start, strings.Join(kept[folders:], "/"), nil
}

// stripOf is how many bytes the paths below a folder have before what a pattern is matched against.
func stripOf(c *Call, start string) (int, error) {
	shown, err := c.Tree.Rel(start)
	if err != nil || shown == "." {
		return 0, err
	}
	return len(strings.TrimSuffix(shown, "/")) + 1, nil
}

func globOutput(c *Call, a globArgs, pattern string, all *smallest, skipped workspace.Skipped) (Output, error) {
	var left []string
	if all.ruled > 0 {
		left = append(left, fmt.Sprintf("%d that rules keep from you", all.ruled))
	}
	foot := walkFoot(skipped, left, a.NoIgnore)
	if all.total == 0 {
		text := fmt.Sprintf("no files match %q", shorten(a.Pattern, 200))
		switch {
		case strings.HasSuffix(a.Pattern, "/"):
			text += "; glob finds files, not folders: end it with **"
		case !strings.Contains(a.Pattern, "/"):
			text += fmt.Sprintf(" in the folder itself; **/%s looks in all folders below", shorten(a.Pattern, 200))
		}
		if foot != "" {
			text += "\n" + foot
		}
		return Output{Text: text}, nil
	}
	if a.Offset > all.total {
		return Output{}, fail(Input, "offset %d is past the end: %s match; give an offset of at most %d", a.Offset, plural(all.total, "file"), all.total)
	}
	paths := all.sorted()
	paths = paths[min(int(a.Offset-1), len(paths)):]
	paths = paths[:min(len(paths), c.Caps.GlobFiles)]
	rows := make([]string, len(paths))
	for i, p := range paths {
		rows[i] = shownName(p)
	}
	p := page{
		heading: func(shown int64) string { return globHead(a.Offset, shown, all.total) }, rows: rows, offset: a.Offset, total: all.total,
		what: fmt.Sprintf("%q", shorten(a.Pattern, 60)), unit: "files", foot: foot,
	}
	return p.output(c.Room), nil
}

// globHead is the first line: the total, and which files follow.
func globHead(offset, shown, total int64) string {
	switch {
	case shown == total:
		return fmt.Sprintf("(%d total)", total)
	case offset == 1:
		return fmt.Sprintf("(%d total, showing first %d)", total, shown)
	}
	return fmt.Sprintf("(%d total, showing %d to %d)", total, offset, offset+shown-1)
}

// smallest keeps the first paths, in order, of all that are added, and counts all.
type smallest struct {
	want  int
	paths []string
	limit string // a path from here on is not among the first; empty until there are enough
	total int64
	ruled int64    // left out, since rules keep them from the agent
	_     [64]byte // lanes do not share a cache line
}

func (s *smallest) add(p string) {
	s.total++
	if s.limit != "" && p >= s.limit {
		return
	}
	s.paths = append(s.paths, p)
	if len(s.paths) >= 2*s.want+1000 {
		s.cut()
	}
}

// cut forgets what is not among the first.
func (s *smallest) cut() {
	slices.Sort(s.paths)
	if len(s.paths) > s.want {
		clear(s.paths[s.want:])
		s.paths = s.paths[:s.want]
		s.limit = s.paths[s.want-1]
	}
}

func (s *smallest) merge(o *smallest) {
	s.total += o.total
	s.ruled += o.ruled
	s.paths = append(s.paths, o.paths...)
}

func (s *smallest) sorted() []string {
	s.cut()
	return s.paths
}
