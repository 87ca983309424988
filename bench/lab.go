package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// lab is what the sides work on. Everything is made when it is first asked for, below one folder, which goes at the end.
type lab struct {
	options
	ctx      context.Context
	progress io.Writer
	self     string // this program
	tmp      string

	made    func() (string, error) // the made tree
	goTree  func() (string, error)
	program func() (string, error) // orchestrator
	large   func() (string, error) // folder with the file of ten megabytes
}

func newLab(ctx context.Context, o options, progress io.Writer) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "muster-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{options: o, ctx: ctx, progress: progress, self: self, tmp: tmp}
	l.made = sync.OnceValues(l.makeTree)
	l.goTree = sync.OnceValues(func() (string, error) {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		return strings.TrimSpace(string(root)), err
	})
	l.program = sync.OnceValues(func() (string, error) {
		file := filepath.Join(tmp, "orchestrator")
		cmd := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", file, "./cmd/orchestrator")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build orchestrator (run this in the folder bench): %w: %s", err, out)
		}
		return file, nil
	})
	l.large = sync.OnceValues(l.makeLarge)
	return l, nil
}

func (l *lab) close() {
	if err := os.RemoveAll(l.tmp); err != nil {
		fmt.Fprintln(l.progress, "bench: what was made stays:", err)
	}
}

// peer finds a program of others.
func peer(pkg string, names ...string) (string, error) {
	for _, name := range names {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: apt-get install %s", names[0], pkg)
}

// The made tree: folders of a hundred files, each of some kilobytes of lines that look like text, the same in every run. A tenth of the files is
// ignored, by rules at the root and in some folders.
const (
	rareWord    = "zanzibarQuokka"
	rareFiles   = 7
	folderFiles = 100
	fileLines   = 40
)

func (l *lab) makeTree() (string, error) {
	fmt.Fprintf(l.progress, "making a tree of %d files …\n", l.files)
	root := filepath.Join(l.tmp, "tree")
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the worker claims a job and writes its result return error nil func string value board epoch lease queue Client client CLIENT pointer of in to for with")
	var b bytes.Buffer
	for i := range l.files {
		if err := l.ctx.Err(); err != nil {
			return "", err
		}
		dir := filepath.Join(root, fmt.Sprintf("part%02d", i/folderFiles%40), fmt.Sprintf("unit%04d", i/folderFiles))
		if i%folderFiles == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", err
			}
			if i/folderFiles%10 == 0 {
				if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("/file*5.txt\n!file15.txt\n"), 0o644); err != nil {
					return "", err
				}
			}
		}
		b.Reset()
		for range fileLines {
			for range 6 + r.IntN(8) {
				b.WriteString(words[r.IntN(len(words))])
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d\n", r.IntN(1_000_000))
		}
		if i%(l.files/rareFiles) == 1 {
			b.WriteString("here is " + rareWord + "\n")
		}
		name := fmt.Sprintf("file%02d.txt", i%folderFiles)
		if i%10 == 9 {
			name = fmt.Sprintf("file%02d.log", i%folderFiles)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.log\n"), 0o644)
}

// makeLarge makes the folder of the file that is edited, and a patch for it.
func (l *lab) makeLarge() (string, error) {
	dir := filepath.Join(l.tmp, "large")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	var b bytes.Buffer
	n := 0
	for ; b.Len() < 10<<20; n++ {
		fmt.Fprintf(&b, "line %d of a large file that is edited in its middle\n", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "original"), b.Bytes(), 0o644); err != nil {
		return "", err
	}
	var p strings.Builder
	p.WriteString("--- a/file\n+++ b/file\n")
	for i := 1; i <= 10; i++ {
		at := n * i / 11
		line := func(k int) string { return fmt.Sprintf("line %d of a large file that is edited in its middle", at+k) }
		fmt.Fprintf(&p, "@@ -%d,3 +%d,3 @@\n %s\n-%s\n+changed %d\n %s\n", at+1, at+1, line(0), line(1), i, line(2))
	}
	return dir, os.WriteFile(filepath.Join(dir, "patch"), []byte(p.String()), 0o644)
}

// fresh puts the original in the place of what was edited.
func fresh(dir string) func() error {
	return func() error {
		data, err := os.ReadFile(filepath.Join(dir, "original"))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "file"), data, 0o644)
	}
}

var total = regexp.MustCompile(`^\((\d+) total`)

// ourTotal reads how much grep or glob found.
func ourTotal(t *tally) (int, error) {
	if m := total.FindSubmatch(t.begin); m != nil {
		return strconv.Atoi(string(m[1]))
	}
	if bytes.HasPrefix(t.begin, []byte("no ")) {
		return 0, nil
	}
	return 0, fmt.Errorf("no total in %.100q", t.begin)
}

// lines counts what the others print.
func lines(t *tally) (int, error) {
	if t.lines > 0 && t.last != '\n' {
		return 0, errors.New("the last line is not whole")
	}
	return t.lines, nil
}
