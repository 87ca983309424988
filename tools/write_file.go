package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"muster/board"
	"muster/tools/workspace"
)

// diffBytes is the size up to which added and removed lines of an overwritten file are counted by a real diff; over it all old lines count as removed
// and all new ones as added.
const diffBytes = 256 << 10

type writeArgs struct {
	Path    string `json:"path" jsonschema:"file, workspace-relative or absolute; folders are made"`
	Content string `json:"content" empty:"ok" jsonschema:"whole content, stored as given"`
}

func writeFile() Tool {
	return define("write_file", Write,
		"Creates a file, or replaces a whole one that you have read and that is unchanged since; returns lines and bytes. To change a part use edit_file.",
		runWrite)
}

func runWrite(ctx context.Context, c *Call, a writeArgs) (Output, error) {
	name := shownName(shorten(relName(c, a.Path), 200))
	data := []byte(a.Content)
	sum := sha256.Sum256(data)
	old, err := c.current(ctx, a.Path)
	if err != nil {
		return Output{}, err
	}
	if old.exists {
		switch known, ok := c.set.reads.known(c.Tree, a.Path); {
		case old.sum == sum:
			c.set.reads.remember(c.Tree, a.Path, sum)
			return Output{Text: fmt.Sprintf("%s already holds exactly this content; nothing was written", name)}, nil
		case !ok:
			return Output{}, fail(Conflict, "%s exists and you have not read it; read_file it first, or change a part of it with edit_file", name)
		case known != old.sum:
			return Output{}, fail(Conflict, "%s changed since you read it; read_file it again before you replace it", name)
		}
	}
	step := workspace.Step{Deed: workspace.Create, Path: a.Path, Data: data}
	if old.exists {
		step.Deed, step.Was = workspace.Put, &old.sum
	}
	w, err := c.Tree.Commit(ctx, []workspace.Step{step})
	if err != nil {
		return Output{}, err
	}
	c.set.reads.remember(c.Tree, a.Path, sum)
	stat := board.FileStat{Path: relName(c, a.Path), Added: int(countLines(data))}
	verb := "created"
	if old.exists {
		verb = "overwrote"
		stat.Added, stat.Removed = old.changed(data)
	}
	text := fmt.Sprintf("%s %s: %s, %s", verb, name, plural(countLines(data), "line"), plural(int64(len(data)), "byte"))
	return Output{Text: text + linkNotes(w[0], name), Facts: Facts{Files: []board.FileStat{stat}}}, nil
}

// linkNotes says what a write did to other names of the file.
func linkNotes(w workspace.Written, name string) string {
	var b strings.Builder
	if target := shownName(shorten(w.Path, 200)); target != name && w.Path != "" {
		fmt.Fprintf(&b, "\n[%s is a link; its target %s was changed]", name, target)
	}
	if w.InPlace {
		b.WriteString("\n[written in place: its other names show the change too]")
	}
	if w.Detached {
		b.WriteString("\n[its other hard links keep the old content]")
	}
	return b.String()
}

// present is a file as it is now.
type present struct {
	exists bool
	sum    [sha256.Size]byte
	lines  int64
	data   []byte // up to diffBytes, else nil
}

// current hashes the file at path; a path that does not exist is no error.
func (c *Call) current(ctx context.Context, path string) (present, error) {
	f, size, err := openText(c, path)
	if errors.Is(err, fs.ErrNotExist) {
		return present{}, nil
	} else if err != nil {
		return present{}, err
	}
	defer f.Close()
	p := present{exists: true}
	h := sha256.New()
	src := &counted{r: f, h: h, ctx: ctx}
	if size <= diffBytes {
		if p.data, err = io.ReadAll(io.LimitReader(src, diffBytes)); err != nil {
			return p, fmt.Errorf("read %s: %w", path, err)
		}
		p.lines = countLines(p.data)
	}
	n := &lineEnder{}
	if _, err := io.Copy(n, src); err != nil {
		return p, fmt.Errorf("read %s: %w", path, err)
	}
	p.lines += n.total()
	h.Sum(p.sum[:0])
	return p, nil
}

// changed counts the lines that data adds and removes.
func (p present) changed(data []byte) (added, removed int) {
	if p.data == nil && p.lines > 0 || len(data) > diffBytes {
		return int(countLines(data)), int(p.lines)
	}
	diff := udiff.Unified("a", "b", string(p.data), string(data))
	return diffStat(diff)
}

// diffStat counts the changed lines of a unified diff.
func diffStat(diff string) (added, removed int) {
	for i, l := range strings.Split(diff, "\n") {
		switch {
		case i < 2: // the two names
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return added, removed
}

// lineEnder counts the lines of what is written to it.
type lineEnder struct {
	ends int64
	open bool
}

func (l *lineEnder) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.open = p[len(p)-1] != '\n'
		l.ends += countLines(p)
		if l.open {
			l.ends--
		}
	}
	return len(p), nil
}

func (l *lineEnder) total() int64 {
	if l.open {
		return l.ends + 1
	}
	return l.ends
}
