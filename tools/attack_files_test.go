//go:build linux

package tools

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// secret is what no tool may show, and what no file outside may lose.
const secret = "outside-secret-0451"

// den is a workspace with a folder beside it that stands for all that is outside.
type den struct {
	*Set
	ws, out string
}

func newDen(t testing.TB, change ...func(*Config)) den {
	t.Helper()
	s := newSet(t, change...)
	d := den{s, s.cfg.Tree.Dir, filepath.Join(filepath.Dir(s.cfg.Tree.Dir), "out")}
	for _, dir := range []string{d.out, d.out + "/.ssh"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret", secret + ".txt", ".ssh/authorized_keys"} {
		if err := os.WriteFile(filepath.Join(d.out, name), []byte(secret+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d den) link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(d.ws, name)); err != nil {
		t.Fatal(err)
	}
}

// outside describes every file outside: a change of any is an escape.
func (d den) outside(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(d.out, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			text = content(name)
		}
		fmt.Fprintf(&b, "%s %v %d %v %q\n", name, info.Mode(), info.Size(), info.ModTime(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// pathTools call every tool that takes a path, with that path.
func pathTools() []struct {
	name string
	call func(t testing.TB, s *Set, path string) Reply
} {
	one := func(tool string, pairs ...any) func(testing.TB, *Set, string) Reply {
		return func(t testing.TB, s *Set, path string) Reply {
			t.Helper()
			arg := "path"
			if tool == "run_command" {
				arg = "workdir"
			}
			return call(t, s, tool, append([]any{arg, path}, pairs...)...)
		}
	}
	return []struct {
		name string
		call func(t testing.TB, s *Set, path string) Reply
	}{
		{"read_file", one("read_file")},
		{"write_file", one("write_file", "content", "written")},
		{"edit_file", one("edit_file", "old_string", "secret", "new_string", "edited")},
		{"list_dir", one("list_dir")},
		{"grep", one("grep", "pattern", "secret")},
		{"glob", one("glob", "pattern", "**/*")},
		{"run_command", one("run_command", "command", "cat secret; ls", "timeout_secs", 50)},
	}
}

// checkInside holds what must be true of every reply: it shows nothing of the outside, and no raw control character.
func (d den) checkInside(t testing.TB, r Reply, before string) {
	t.Helper()
	if strings.Contains(r.Text, secret) {
		t.Errorf("%s shows the outside: %s", r.Tool, clip(r.Text))
	}
	checkPlain(t, r)
	if after := d.outside(t); after != before {
		t.Errorf("%s changed the outside:\n%s\nit was\n%s", r.Tool, after, before)
	}
}

func checkPlain(t testing.TB, r Reply) {
	t.Helper()
	if !utf8.ValidString(r.Text) || strings.ContainsFunc(r.Text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 }) {
		t.Errorf("%s: the text is not plain: %q", r.Tool, clip(r.Text))
	}
	if strings.Contains(r.Text, " broke: ") {
		t.Errorf("%s: %s", r.Tool, r.Text)
	}
}

// within fails the test where f takes longer than anything here may.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s hangs", what)
	}
}

// TestFileAttackPaths names the outside in every way to every tool that takes a path.
func TestFileAttackPaths(t *testing.T) {
	d := newDen(t)
	d.link(t, d.out+"/secret", "absolute")
	d.link(t, "../out/secret", "relative")
	d.link(t, "chain1", "chain")
	d.link(t, "chain2", "chain1")
	d.link(t, "relative", "chain2")
	d.link(t, d.out, "folder")
	d.link(t, "../out", "relfolder")
	d.link(t, "relfolder", "folderchain")
	d.link(t, "/proc/self/root"+d.out, "proc")
	d.link(t, "../out/new", "dangling")
	if err := os.Mkdir(d.ws+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	d.link(t, "../../out", "sub/up")
	before := d.outside(t)
	paths := []string{
		"..", "../", "../out", "../out/secret", "./../out/secret", "sub/../../out/secret", "sub/../../../" + filepath.Base(filepath.Dir(d.ws)) + "/out/secret",
		"/", "/etc", "/etc/passwd", d.out, d.out + "/secret", d.ws + "/../out/secret", d.ws + "x", "//" + d.out + "/secret",
		"absolute", "absolute/", "absolute/.", "relative", "relative/", "relative/.", "chain", "chain/", "chain/.",
		"folder", "folder/", "folder/.", "folder/secret", "folder/./secret", "folder//secret", "folder/.ssh/authorized_keys",
		"relfolder", "relfolder/", "relfolder/.", "relfolder/secret", "folderchain/", "folderchain/.", "folderchain/secret",
		"sub/up", "sub/up/", "sub/up/.", "sub/up/secret", "proc", "proc/", "proc/secret", "dangling", "dangling/",
	}
	for _, tool := range pathTools() {
		t.Run(tool.name, func(t *testing.T) {
			for _, p := range paths {
				var r Reply
				within(t, p, func() { r = tool.call(t, d.Set, p) })
				d.checkInside(t, r, before)
				switch {
				case r.OK:
					t.Errorf("%s of %q: %s", tool.name, p, clip(r.Text))
				case r.Class != Permission && r.Class != Input:
					t.Errorf("%s of %q: class %s: %s", tool.name, p, r.Class, clip(r.Text))
				}
			}
		})
	}
}

// TestFileAttackTilde: ~ is the name of a file, whatever the HOME.
func TestFileAttackTilde(t *testing.T) {
	d := newDen(t)
	t.Setenv("HOME", d.out)
	before := d.outside(t)
	for _, tool := range pathTools() {
		for _, p := range []string{"~/secret", "~/.ssh/authorized_keys", "~/.ssh", "$HOME/secret"} {
			d.checkInside(t, tool.call(t, d.Set, p), before)
		}
	}
	if got := content(d.ws + "/~/.ssh/authorized_keys"); got != "written" {
		t.Errorf("the file named with ~ is %q", got)
	}
}

// TestFileAttackKinds: what is no regular file is neither read nor waited for, and never written through.
func TestFileAttackKinds(t *testing.T) {
	d := newDen(t)
	made := map[string]func(name string) error{
		"fifo": func(name string) error { return syscall.Mkfifo(name, 0o666) },
		"socket": func(name string) error {
			l, err := net.Listen("unix", name)
			t.Cleanup(func() { l.Close() })
			return err
		},
		"folder": func(name string) error { return os.Mkdir(name, 0o777) },
		"null":   func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
		"zero":   func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) },
		"tty":    func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))) },
	}
	before := d.outside(t)
	for kind, make := range made {
		if err := make(d.ws + "/" + kind); err != nil {
			if os.Geteuid() == 0 {
				t.Logf("no %s here: %v", kind, err)
			}
			continue
		}
		d.link(t, kind, kind+"-link")
		info, err := os.Lstat(d.ws + "/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range pathTools() {
			for _, p := range []string{kind, kind + "-link", kind + "/x"} {
				if kind == "folder" && tool.name != "read_file" && tool.name != "edit_file" {
					continue
				}
				within(t, tool.name+" of a "+kind, func() {
					r := tool.call(t, d.Set, p)
					d.checkInside(t, r, before)
					// A search of something that is no file finds nothing, and says why.
					if r.OK && tool.name != "grep" && tool.name != "glob" {
						t.Errorf("%s of %s: %s", tool.name, p, clip(r.Text))
					}
				})
			}
		}
		if now, err := os.Lstat(d.ws + "/" + kind); err != nil || now.Mode() != info.Mode() {
			t.Errorf("%s is no longer what it was: %v, %v", kind, now, err)
		}
	}
	within(t, "a search of the whole workspace", func() {
		for _, tool := range []string{"grep", "glob"} {
			r := call(t, d.Set, tool, "pattern", "*secret*")
			d.checkInside(t, r, before)
			if !r.OK {
				t.Errorf("%s: %s", tool, r.Text)
			}
		}
	})
}

// TestFileAttackSparse: a file of a tebibyte that holds nothing does not fill the memory.
func TestFileAttackSparse(t *testing.T) {
	d := newDen(t, func(c *Config) { c.Caps.TimeoutSecs, c.Caps.WalkSecs = 1, 1 }) // to go through the file would take an hour
	if err := os.WriteFile(d.ws+"/sparse", []byte("first line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	size := int64(1 << 40)
	for os.Truncate(d.ws+"/sparse", size) != nil { // what this file system takes
		size /= 2
	}
	held := resident(t)
	for _, tool := range pathTools()[:6] {
		within(t, tool.name, func() {
			r := tool.call(t, d.Set, "sparse")
			checkPlain(t, r)
			if tool.name == "write_file" && r.OK || tool.name == "edit_file" && r.OK {
				t.Errorf("%s: %s", tool.name, clip(r.Text))
			}
		})
	}
	r := call(t, d.Set, "read_file", "path", "sparse", "offset", 1, "limit", 1)
	checkPlain(t, r)
	if grown := resident(t) - held; grown > 256<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	if info, err := os.Stat(d.ws + "/sparse"); err != nil || info.Size() != size {
		t.Errorf("the file of %d bytes is now %v, %v", size, info, err)
	}
}

// TestFileAttackHardLink: a file that has another name outside is not written through that name.
func TestFileAttackHardLink(t *testing.T) {
	for _, tool := range []string{"write_file", "edit_file"} {
		d := newDen(t)
		if err := os.Link(d.out+"/secret", d.ws+"/linked"); err != nil {
			t.Fatal(err)
		}
		before := d.outside(t)
		read := call(t, d.Set, "read_file", "path", "linked") // so that the write is no conflict
		if !read.OK {
			t.Fatal(read.Text)
		}
		args := []any{"path", "linked", "content", "written"}
		if tool == "edit_file" {
			args = []any{"path", "linked", "old_string", "outside", "new_string", "written"}
		}
		r := call(t, d.Set, tool, args...)
		if after := d.outside(t); after != before {
			t.Errorf("%s changed the outside:\n%s", tool, after)
		}
		if !r.OK || !strings.Contains(content(d.ws+"/linked"), "written") {
			t.Errorf("%s: %s", tool, r.Text)
		}
	}
}

// TestFileAttackSetUID: no tool makes or keeps a program that runs as somebody else.
func TestFileAttackSetUID(t *testing.T) {
	d := newDen(t)
	for i, mode := range []fs.FileMode{fs.ModeSetuid, fs.ModeSetgid, fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky} {
		name := fmt.Sprintf("program%d", i)
		put(t, d.Set, name, "old text")
		call(t, d.Set, "read_file", "path", name)
		for _, args := range [][]any{{"edit_file", "old_string", "old", "new_string", "new"}, {"write_file", "content", "newer"}} {
			if err := os.Chmod(filepath.Join(d.ws, name), 0o755|mode); err != nil {
				t.Fatal(err)
			}
			r := call(t, d.Set, args[0].(string), append([]any{"path", name}, args[1:]...)...)
			info, err := os.Stat(filepath.Join(d.ws, name))
			if !r.OK || err != nil || info.Mode() != 0o755 {
				t.Errorf("after %s the mode is %v, %v: %s", r.Tool, info.Mode(), err, r.Text)
			}
		}
	}
}

// rawObj is an object with a path of bytes as they are, valid or not.
func rawObj(arg, path string, rest json.RawMessage) json.RawMessage {
	quoted, err := json.Marshal(path)
	if err != nil || !utf8.ValidString(path) {
		quoted = []byte(`"` + path + `"`)
	}
	return json.RawMessage(fmt.Sprintf("{%q:%s,%s", arg, quoted, rest[1:]))
}

// TestFileAttackNames: names that break terminals, lines and buffers break nothing.
func TestFileAttackNames(t *testing.T) {
	d := newDen(t)
	before := d.outside(t)
	names := map[string]bool{ // whether a file may have the name at all
		"nul\x00name": false, "new\nline": true, "esc\x1b]0;title\x07": true, "csi\u009b31m": true, "bad\xff\xfe": true, "bidi\u202etxt": true,
		strings.Repeat("x", 5000): false, strings.Repeat("d/", 2500) + "x": false, "tab\tname": true, "\r\rover": true, "-rf": true, " ": true, "...": true,
		"*": true, "[a": true, "{a,b}": true, `back\slash`: true, "$(id)": true, "`id`": true, ";true": true,
	}
	for name, possible := range names {
		if possible {
			put(t, d.Set, name, "found secret\n")
		}
		for _, tool := range []struct{ name, arg, rest string }{
			{"read_file", "path", `{"limit":5}`}, {"write_file", "path", `{"content":"found secret\n"}`}, {"edit_file", "path", `{"old_string":"found","new_string":"found"}`},
			{"list_dir", "path", `{"limit":5}`}, {"grep", "path", `{"pattern":"secret"}`}, {"glob", "path", `{"pattern":"*"}`}, {"glob", "pattern", `{"path":"."}`},
			{"run_command", "workdir", `{"command":"true"}`},
		} {
			within(t, tool.name, func() {
				r := d.Invoke(t.Context(), Request{ID: "1", Tool: tool.name, Args: rawObj(tool.arg, name, json.RawMessage(tool.rest))})
				d.checkInside(t, r, before)
				if refused := !possible || (strings.Contains(name, "\xff") || strings.Contains(name, "\x00")); refused && tool.arg != "pattern" && (r.OK || r.Class != Input) {
					t.Errorf("%s took %.20q: %s", tool.name, name, clip(r.Text))
				}
			})
		}
	}
	for _, r := range []Reply{call(t, d.Set, "list_dir", "path", "."), call(t, d.Set, "glob", "pattern", "**"), call(t, d.Set, "grep", "pattern", "found")} {
		d.checkInside(t, r, before)
		if !r.OK {
			t.Errorf("%s: %s", r.Tool, clip(r.Text))
		}
		for line := range strings.SplitSeq(r.Text, "\n") { // a name with a newline stays one row
			if strings.HasPrefix(line, "line") {
				t.Errorf("%s: a name became a row of its own: %q", r.Tool, line)
			}
		}
	}
}

// TestFileAttacksAsOrdinaryUser runs the tests of this file, and the races, as somebody who is not root.
func TestFileAttacksAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this run is an ordinary user's already")
	}
	dir, err := os.MkdirTemp("", "tools-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^(TestFileAttack.*|TestPathToolsWhile.*)$", "-test.v", "-test.timeout", "300s")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFileAttackPaths") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}
