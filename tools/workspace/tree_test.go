package workspace

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTest makes a tree of a new folder, with a folder beside it that stands for the outside.
func openTest(t *testing.T) (tree *Tree, dir, out string) {
	t.Helper()
	top := t.TempDir()
	dir, out = filepath.Join(top, "ws"), filepath.Join(top, "out")
	for _, d := range []string{dir, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(out, "secret"), "secret")
	tree, err := OpenDir(dir, filepath.Join(top, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree, dir, out
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readAll(tree *Tree, name string) (string, error) {
	f, err := tree.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(b), err
}

func TestOpenInside(t *testing.T) {
	tree, dir, _ := openTest(t)
	put(t, filepath.Join(dir, "d/a.txt"), "A")
	put(t, filepath.Join(dir, "two\nlines"), "N")
	put(t, filepath.Join(dir, "~"), "T")
	put(t, filepath.Join(dir, "note "), "S")
	link(t, "a.txt", filepath.Join(dir, "d/rel"))
	link(t, filepath.Join(dir, "d"), filepath.Join(dir, "abs"))
	link(t, "../ws/d/a.txt", filepath.Join(dir, "round"))
	for name, want := range map[string]string{
		"d/a.txt": "A", "./d//a.txt": "A", "no/../d/a.txt": "A", "d/rel": "A", "abs/a.txt": "A", "abs/rel": "A",
		filepath.Join(dir, "d/a.txt"): "A", dir + "/x/../d/a.txt": "A", "../ws/d/a.txt": "A", "round": "A",
		"two\nlines": "N", "~": "T", "note ": "S",
	} {
		if got, err := readAll(tree, name); err != nil || got != want {
			t.Errorf("read %q: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestRootThroughSymlink(t *testing.T) {
	_, dir, _ := openTest(t)
	put(t, filepath.Join(dir, "a"), "A")
	alias := filepath.Join(filepath.Dir(dir), "alias")
	link(t, dir, alias)
	tree, err := OpenDir(alias, filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, name := range []string{"a", alias + "/a", dir + "/a"} {
		if got, err := readAll(tree, name); err != nil || got != "A" {
			t.Errorf("read %q: %q, %v", name, got, err)
		}
		if rel, err := tree.Rel(name); err != nil || rel != "a" {
			t.Errorf("rel %q: %q, %v", name, rel, err)
		}
	}
	if rel, err := tree.Rel(alias); err != nil || rel != "." {
		t.Errorf("rel of the root: %q, %v", rel, err)
	}
}

func TestOutsideIsRefused(t *testing.T) {
	tree, dir, out := openTest(t)
	link(t, out, filepath.Join(dir, "absdir"))
	link(t, "../out", filepath.Join(dir, "reldir"))
	link(t, filepath.Join(out, "secret"), filepath.Join(dir, "absfile"))
	link(t, "absfile", filepath.Join(dir, "chain"))
	link(t, "../out/new", filepath.Join(dir, "dangling"))
	link(t, "/proc/self/root", filepath.Join(dir, "proc"))
	names := []string{
		"..", "../out/secret", "a/../../out/secret", "/", "/etc/passwd", out + "/secret", dir + "/../out/secret", dir + "x",
		"absdir/secret", "reldir/secret", "absdir/", "absfile", "chain", "dangling", "proc/etc/passwd",
	}
	for _, name := range names {
		if got, err := readAll(tree, name); !errors.Is(err, ErrOutside) {
			t.Errorf("read %q: %q, %v; want ErrOutside", name, got, err)
		}
		if _, err := tree.Stat(name); !errors.Is(err, ErrOutside) {
			t.Errorf("stat %q: %v", name, err)
		}
		if _, err := tree.ReadDir(name); !errors.Is(err, ErrOutside) {
			t.Errorf("list %q: %v", name, err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if _, err := write(tree, name, []byte("x")); !errors.Is(err, ErrOutside) {
			t.Errorf("write %q: %v", name, err)
		}
	}
	if got := get(t, filepath.Join(out, "secret")); got != "secret" {
		t.Errorf("outside file is %q", got)
	}
	if left, _ := os.ReadDir(out); len(left) != 1 {
		t.Errorf("outside folder holds %v", left)
	}
}

func TestBadPaths(t *testing.T) {
	tree, _, _ := openTest(t)
	for _, name := range []string{"", "a\x00b", "a\xffb"} {
		_, rerr := tree.Open(name)
		_, werr := write(tree, name, nil)
		_, perr := tree.Rel(name)
		for _, err := range []error{rerr, werr, perr} {
			if !errors.Is(err, ErrBadPath) {
				t.Errorf("%q: %v, want ErrBadPath", name, err)
			}
		}
	}
}

func TestNotRegular(t *testing.T) {
	tree, dir, _ := openTest(t)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kinds := map[string]string{"folder": KindFolder, "fifo": KindFIFO, "sock": KindSocket, ".": KindFolder}
	if os.Geteuid() == 0 && unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) == nil {
		kinds["null"] = KindDevice
	}
	for name, kind := range kinds {
		_, rerr := tree.Open(name)
		_, werr := write(tree, name, []byte("x"))
		for _, err := range []error{rerr, werr} {
			var pe *PathError
			if !errors.As(err, &pe) || !errors.Is(err, ErrNotRegular) || pe.Kind != kind {
				t.Errorf("%s: %v, want kind %s", name, err, kind)
			}
		}
	}
	if _, err := tree.ReadDir("fifo"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("list of a FIFO: %v", err)
	}
	if _, err := write(tree, "fifo/x", nil); err == nil {
		t.Error("write below a FIFO succeeded")
	}
	if _, err := write(tree, "new/", nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("write of a folder's name: %v", err)
	}
}

func TestSymlinkLoop(t *testing.T) {
	tree, dir, _ := openTest(t)
	link(t, "b", filepath.Join(dir, "a"))
	link(t, "a", filepath.Join(dir, "b"))
	link(t, ".", filepath.Join(dir, "self"))
	_, rerr := tree.Open("a")
	_, werr := write(tree, "a", nil)
	for _, err := range []error{rerr, werr} {
		if !errors.Is(err, syscall.ELOOP) {
			t.Errorf("loop: %v, want ELOOP", err)
		}
	}
	if _, err := tree.ReadDir("self/self/self"); err != nil {
		t.Errorf("list through a link to the folder itself: %v", err)
	}
}

func TestNearestNames(t *testing.T) {
	tree, dir, _ := openTest(t)
	for _, n := range []string{"src/main.go", "src/walk.go", "README.md", "other"} {
		put(t, filepath.Join(dir, n), "")
	}
	for name, want := range map[string]string{
		"src/mian.go": "src/main.go", "readme.md": "README.md", "scr/main.go": "src/main.go", "README": "README.md",
	} {
		_, err := tree.Open(name)
		var pe *PathError
		if !errors.As(err, &pe) || !errors.Is(err, fs.ErrNotExist) || !slices.Contains(pe.Near, want) {
			t.Errorf("%s: %v, want %s among the nearest", name, err, want)
		}
	}
	_, err := tree.Open("zzzzzz/qqqqqqqq")
	if want := `read "zzzzzz/qqqqqqqq": does not exist`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	link(t, "src/gone.go", filepath.Join(dir, "dangling"))
	if _, err := tree.Open("dangling"); err == nil || !strings.Contains(err.Error(), "it is a symlink") || strings.Contains(err.Error(), "nearest") {
		t.Errorf("a dangling link: %v", err)
	}
}

func TestReadDir(t *testing.T) {
	tree, dir, out := openTest(t)
	put(t, filepath.Join(dir, "d/f"), "12345")
	link(t, out, filepath.Join(dir, "d/l"))
	infos, err := tree.ReadDir("d")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, i := range infos {
		got[i.Name()] = i.Mode().Type()
	}
	if len(got) != 2 || got["f"] != 0 || got["l"] != fs.ModeSymlink {
		t.Errorf("entries: %v", got)
	}
	if _, err := tree.ReadDir("d/f"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("list of a file: %v", err)
	}
	if i, err := tree.Lstat("d/l"); err != nil || i.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("lstat of a link: %v, %v", i, err)
	}
}

func TestScratch(t *testing.T) {
	tree, dir, _ := openTest(t)
	name, err := tree.Spill("out.txt", []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(tree, name); err != nil || got != "kept" {
		t.Errorf("read of %q: %q, %v", name, got, err)
	}
	if rel, err := tree.Rel(name); err != nil || rel != name {
		t.Errorf("rel of a scratch path: %q, %v", rel, err)
	}
	if _, err := write(tree, name, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("write to scratch: %v", err)
	}
	link(t, name, filepath.Join(dir, "l"))
	if got, err := readAll(tree, "l"); err != nil || got != "kept" {
		t.Errorf("read through a link into scratch: %q, %v", got, err)
	}
	if _, err := write(tree, "l", nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("write through a link into scratch: %v", err)
	}
	for _, bad := range []string{"", "..", "a/b", "/x"} {
		if _, err := tree.Spill(bad, nil); !errors.Is(err, ErrBadPath) {
			t.Errorf("spill %q: %v", bad, err)
		}
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree.Scratch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("scratch after close: %v", err)
	}
	if _, err := os.Lstat(dir); err != nil {
		t.Errorf("the folder itself after close: %v", err)
	}
}

func TestScratchMustBeNewAndOutside(t *testing.T) {
	_, dir, out := openTest(t)
	if _, err := OpenDir(dir, out); err == nil || get(t, filepath.Join(out, "secret")) != "secret" {
		t.Errorf("a scratch folder with content was taken: %v", err)
	}
	if _, err := OpenDir(dir, filepath.Join(dir, "s")); err == nil {
		t.Error("a scratch folder inside the root was taken")
	}
	if _, err := os.Lstat(filepath.Join(dir, "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("refused scratch folder is left: %v", err)
	}
}

func TestSharedTreeIsNotWritten(t *testing.T) {
	tree, _, _ := openTest(t)
	tree.ReadOnly = true
	if _, err := write(tree, "a", nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("write to a shared tree: %v", err)
	}
}
