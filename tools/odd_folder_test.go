package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
	"muster/tools/skills"
)

// odd is a workspace of everything that is no ordinary file. The paths are those that JSON can carry.
type odd struct {
	*Set
	special []string // can be neither read nor written
	plain   []string
	device  bool
	locked  bool // there is a folder that cannot be entered
}

// newOdd makes the workspace, with all tools on it that need no server.
func newOdd(t *testing.T) odd {
	var o odd
	o.Set = agentSet(t, func(c *Config, _ *board.Job) {
		dir := filepath.Join(c.Tree.Dir, ".claude", "skills", "tide")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(skillFile("tide", "rises")), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Skills, _ = skills.Find(c.Tree, nil)
	})
	ws := o.cfg.Tree.Dir
	bash(t, o.Set, "git init -q -b main .")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mkfifo(filepath.Join(ws, "pipe"), 0o600))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	t.Cleanup(func() { unix.Close(socket) })
	t.Chdir(ws) // an address of a socket is short
	must(unix.Bind(socket, &unix.SockaddrUnix{Name: "sock"}))
	must(os.Symlink("loop", "loop"))
	must(os.Symlink("..", "up"))
	must(os.Symlink("pipe", "to-pipe"))
	o.special = []string{"pipe", "sock", "loop", "up", "to-pipe", "pipe/below", "loop/below"}
	if unix.Mknod("zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) == nil {
		o.device, o.special = true, append(o.special, "zero")
	}
	put(t, o.Set, "here/self/needle.txt", "needle\n")
	must(os.Symlink(".", "here/round"))
	for _, name := range []string{"new\nline.txt", "bad\xff.txt", "esc\x1b[31m.txt", "-rf", "中文.txt"} {
		put(t, o.Set, name, "needle\n")
	}
	o.plain = []string{"new\nline.txt", "esc\x1b[31m.txt", "-rf", "中文.txt", "here/round/round/self/needle.txt", "here", ".", "nowhere"}
	put(t, o.Set, "locked/inside.txt", "needle\n")
	must(os.Chmod("locked", 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(ws, "locked"), 0o755) })
	_, err = os.ReadDir("locked")
	o.locked = err != nil
	o.plain = append(o.plain, "locked", "locked/inside.txt")
	return o
}

// argsFor are the arguments of calls of a tool at a path, by its schema alone: what is required, and whatever takes a path.
func argsFor(tool Tool, path string) []any {
	var pairs []any
	for _, name := range order(tool.shape) {
		var v any
		switch p := tool.shape.Properties[name]; {
		case name == "path":
			v = path
		case name == "paths":
			v = []string{path}
		case name == "workdir":
			v = path
		case !contains(tool.shape.Required, name):
			continue
		case name == "diff":
			v = fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-needle\n+thread\n", path, path)
		case name == "pattern" && tool.Name == "glob":
			v = "**"
		case name == "command":
			v = "true"
		case name == "task":
			v = "say:done"
		case p.Type == "integer":
			v = 1
		case p.Type == "array":
			v = []string{}
		default:
			v = "needle"
		}
		pairs = append(pairs, name, v)
	}
	return pairs
}

// Every tool answers on a folder of everything that is no ordinary file: none waits, none breaks, each keeps its caps, and no special file is ever
// read or written.
func TestEveryToolInAnOddFolder(t *testing.T) {
	o := newOdd(t)
	for _, tool := range o.tools {
		paths := append(append([]string{}, o.special...), o.plain...)
		if args := argsFor(tool, "x"); !strings.Contains(fmt.Sprint(args...), "x") {
			paths = []string{"x"} // it takes no path
		}
		for i, path := range paths {
			begun := time.Now()
			r := next(t, o.Set, tool.Name, argsFor(tool, path)...)
			if d := time.Since(begun); d > patience {
				t.Errorf("%s of %q took %v", tool.Name, path, d)
			}
			checkText(t, r, o.cfg.Caps.OutputChars)
			if strings.Contains(r.Text, " broke: ") {
				t.Errorf("%s of %q: %s", tool.Name, path, r.Text)
			}
			if ofPath := tool.shape.Properties["path"] != nil && !strings.HasPrefix(tool.Name, "git_"); ofPath && len(paths) > 1 && i < len(o.special) &&
				(r.OK || r.Class != Input && r.Class != Permission) {
				t.Errorf("%s of %q: ok %v, class %s: %s", tool.Name, path, r.OK, r.Class, r.Text)
			}
		}
	}
	if info, err := os.Lstat("pipe"); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the FIFO is now %v, %v", info, err)
	}
}

// What goes through a folder says what it passed over, by reason and with its exact number.
func TestSearchesSayWhatIsOdd(t *testing.T) {
	o := newOdd(t)
	special := 2
	if o.device {
		special++
	}
	want := []string{"1 pruned .git", "4 symlinks", fmt.Sprintf("%d FIFOs, sockets or devices", special)}
	files := 8 // two of the skill and the folder here, five with odd names, one behind the lock
	if o.locked {
		want = append(want, "1 unreadable folder")
		files--
	}
	for tool, r := range map[string]Reply{"grep": next(t, o.Set, "grep", "pattern", "e"), "glob": next(t, o.Set, "glob", "pattern", "**")} {
		for _, w := range want {
			if !r.OK || !strings.Contains(r.Text, w) {
				t.Errorf("%s lacks %q:\n%s", tool, w, r.Text)
			}
		}
		if total := fmt.Sprintf("(%d total", files); tool == "glob" && !strings.HasPrefix(r.Text, total) {
			t.Errorf("%s does not say %q:\n%s", tool, total, r.Text)
		}
		for _, name := range []string{`"bad\xff.txt"`, `"new\nline.txt"`, `"esc\x1b[31m.txt"`, "-rf", "中文.txt"} {
			if !strings.Contains(r.Text, "\n"+name) {
				t.Errorf("%s lacks %s:\n%s", tool, name, r.Text)
			}
		}
	}
	rows := []string{"pipe  fifo", "sock  socket", "loop  symlink", "up  symlink", "locked/", `"bad\xff.txt"  7 bytes`}
	if o.device {
		rows = append(rows, "zero  device")
	}
	r := next(t, o.Set, "list_dir")
	for _, row := range rows {
		if !r.OK || !strings.Contains(r.Text+"\n", "\n"+row+"\n") {
			t.Errorf("list_dir lacks the row %q:\n%s", row, r.Text)
		}
	}
}
