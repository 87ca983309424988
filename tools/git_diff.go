package tools

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"muster/board"
	"muster/budget"
	"muster/tools/git"
)

type gitDiffArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"file or folder"`
	Staged bool   `json:"staged,omitempty" jsonschema:"the index instead"`
	Ref    string `json:"ref,omitempty" jsonschema:"commit, or a..b"`
}

func gitDiff() Tool {
	return define("git_diff", Read,
		"Diff of unstaged changes, of the index, or of a ref. Binary files are named. New files: git_status.",
		func(ctx context.Context, c *Call, a gitDiffArgs) (Output, error) {
			return c.withGit(ctx, a.Path, func(ctx context.Context, g *gitCall) (Output, error) { return runGitDiff(ctx, g, a) })
		})
}

func runGitDiff(ctx context.Context, g *gitCall, a gitDiffArgs) (Output, error) {
	var revs []string
	if a.Ref != "" {
		s, err := g.revisions(ctx, a.Ref)
		if err != nil {
			return Output{}, err
		}
		revs = s.sides()
		if a.Staged && s.dots != "" {
			return Output{}, fail(Input, "ref %q names two commits, and staged compares with one; leave one of them out", shorten(a.Ref, 100))
		}
	}
	files := a.Ref == "" || !strings.Contains(a.Ref, "..")
	if g.bare && files {
		return Output{}, g.noFiles()
	}
	if files {
		if err := g.useIndexCopy(); err != nil {
			return Output{}, err
		}
	}
	if a.Staged {
		revs = append([]string{"--cached"}, revs...)
	}
	d := &diff{g: g, stat: changes{most: g.Caps.ListEntries}, text: budget.NewCapture(g.Caps.GitBytes, 100)}
	if err := g.records(ctx, d.stat.record, append(diffFlags(g.base, revs, "--numstat", "-z"), g.limit()...)...); err != nil {
		return Output{}, err
	}
	if d.stat.total == 0 {
		return g.noDiff(ctx, a, files)
	}
	if err := g.git(ctx, d.text, append(diffFlags(g.base, revs, "--patch"), g.limit()...)...); err != nil {
		return Output{}, err
	}
	if files && !a.Staged {
		var err error
		if d.note, err = g.filterNote(ctx, d.stat.paths); err != nil {
			return Output{}, err
		}
	}
	return d.output(), nil
}

// sides are the commits of a range as git diff takes them.
func (s revisions) sides() []string {
	switch s.dots {
	case "":
		return []string{s.to}
	case "...":
		return []string{s.from + "..." + s.to}
	}
	return []string{s.from, s.to}
}

// diffFlags are the arguments of a diff in one of its forms. Paths are those of the workspace.
func diffFlags(base string, revs []string, form ...string) []string {
	prefix := ""
	if base != "." {
		prefix = base + "/"
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--submodule=short", "--ignore-submodules=dirty",
		"--src-prefix=a/" + prefix, "--dst-prefix=b/" + prefix}
	return append(append(args, form...), revs...)
}

// noDiff says what there is instead.
func (g *gitCall) noDiff(ctx context.Context, a gitDiffArgs, files bool) (Output, error) {
	text := "no differences"
	if g.spec != "." {
		text += " in " + g.shown(g.spec)
	}
	if !files {
		return Output{Text: text}, nil
	}
	st, err := g.status(ctx)
	if err != nil {
		return Output{}, err
	}
	var hints []string
	if st.staged.total > 0 && !a.Staged && a.Ref == "" {
		hints = append(hints, fmt.Sprintf("%d staged, which staged: true shows", st.staged.total))
	}
	if st.unstaged.total > 0 && a.Staged {
		hints = append(hints, fmt.Sprintf("%d not staged, which staged: false shows", st.unstaged.total))
	}
	if st.untracked.total > 0 {
		hints = append(hints, fmt.Sprintf("%d untracked, which git_status lists", st.untracked.total))
	}
	if len(hints) > 0 {
		text += "; there are " + strings.Join(hints, ", and ")
	}
	return Output{Text: text}, nil
}

// changes are the files of a diff with their counts of lines, as git prints them for programs.
type changes struct {
	total, added, removed int64
	files                 []board.FileStat // the first of them, with the paths of the repository
	old                   []string         // beside files: the name before a rename, or ""
	paths                 []string
	most                  int

	counts []string // of a rename that waits for its names
	before string
	last   string // path
}

// record takes "added TAB removed TAB path", or for a rename that with no path and then the old and the new name.
func (c *changes) record(s string) {
	switch {
	case c.counts != nil && c.before == "":
		c.before = s
		return
	case c.counts != nil:
		c.add(c.counts, s, c.before)
		c.counts, c.before = nil, ""
		return
	}
	fields := strings.SplitN(s, "\t", 3)
	if len(fields) != 3 {
		return
	}
	if fields[2] == "" {
		c.counts = fields[:2]
		return
	}
	c.add(fields, fields[2], "")
}

func (c *changes) add(counts []string, path, old string) {
	f := board.FileStat{Path: path, Added: lineCount(counts[0]), Removed: lineCount(counts[1])}
	if path == c.last && path != "" { // in conflict: once as such, once beside one side
		c.total--
		c.files, c.old, c.paths = c.files[:min(len(c.files), int(c.total))], c.old[:min(len(c.old), int(c.total))], c.paths[:min(len(c.paths), int(c.total))]
	}
	c.last = path
	c.total++
	c.added += int64(max(0, f.Added))
	c.removed += int64(max(0, f.Removed))
	if len(c.files) < c.most {
		c.files, c.old, c.paths = append(c.files, f), append(c.old, old), append(c.paths, path)
	}
}

// lineCount reads a count of lines; "-" is for a binary file, -1.
func lineCount(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// sum is "2 files, +10 −3".
func (c *changes) sum() string {
	return fmt.Sprintf("%s, +%d −%d", plural(c.total, "file"), c.added, c.removed)
}

// rows are the files, a line each.
func (c *changes) rows(g *gitCall) []string {
	rows := make([]string, len(c.files))
	for i, f := range c.files {
		name := g.shown(f.Path)
		if c.old[i] != "" {
			name = g.shown(c.old[i]) + " → " + name
		}
		if f.Added < 0 {
			rows[i] = name + "  binary"
		} else {
			rows[i] = fmt.Sprintf("%s  +%d −%d", name, f.Added, f.Removed)
		}
	}
	return rows
}

// diff is a diff on its way into a result.
type diff struct {
	g    *gitCall
	stat changes
	text *budget.Capture
	note string
}

// output is the whole diff, or its files and its first lines.
func (d *diff) output() Output {
	snap := d.text.Snapshot()
	text := string(snap.Head)
	if snap.Dropped > 0 {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	rows, cuts := d.lines(strings.TrimSuffix(text, "\n"))
	p := page{head: d.stat.sum(), rows: rows, offset: 1, total: snap.SeenLines, what: "the diff", unit: "lines", foot: d.note, rest: "ask for one of the files with path"}
	out := p.output(d.g.Room)
	if len(out.Facts.Cuts) > 0 && d.stat.total > 1 {
		list := page{head: d.stat.sum() + ":", rows: d.stat.rows(d.g), offset: 1, total: d.stat.total, what: "the diff", unit: "files", rest: "ask for a folder with path"}
		files := list.output(d.g.Room / 4)
		p.head = files.Text
		out = p.output(d.g.Room)
		out.Facts.Cuts = append(out.Facts.Cuts, files.Facts.Cuts...)
	}
	shown := int64(len(rows))
	if len(out.Facts.Cuts) > 0 {
		shown = out.Facts.Cuts[0].Shown
	}
	for _, c := range cuts {
		if c.line <= shown {
			out.Facts.Cuts = append(out.Facts.Cuts, c.Cut)
		}
	}
	out.Facts.Seen, out.Facts.Kept = snap.Seen, int64(len(snap.Head))
	return out
}

// lineCut is a line of a diff, counted from 1, that is not shown whole.
type lineCut struct {
	line int64
	budget.Cut
}

// lines shapes the lines of a diff: names in headers readable, contents visible and none longer than a line may be.
func (d *diff) lines(text string) (lines []string, cuts []lineCut) {
	most := min(d.g.Caps.ReadLineChars, d.g.Room/2-len("… (+9999999999 chars)"))
	lines = strings.Split(text, "\n")
	header := false
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "diff --"):
			header = true
		case strings.HasPrefix(l, "@@"):
			header = false
		}
		if header {
			l = git.Header(l)
		}
		l, _, _ = visible(l)
		if chars := budget.Chars(l); chars > most {
			l = fmt.Sprintf("%s… (+%d chars)", headChars(l, most), chars-most)
			cuts = append(cuts, lineCut{int64(i + 1), budget.Cut{What: fmt.Sprintf("line %d of the diff", i+1), Unit: "characters", Shown: int64(most), Total: int64(chars)}})
		}
		lines[i] = l
	}
	return lines, cuts
}
