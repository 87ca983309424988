package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openHandles counts the open descriptors of this process.
func openHandles(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(names)
}

func walkedTree(t *testing.T, files map[string]string) *Tree {
	dir := filepath.Join(t.TempDir(), "ws")
	plant(t, dir, files)
	tree := treeAt(t, dir)
	t.Cleanup(func() { tree.Close() })
	return tree
}

func TestWalkPrunes(t *testing.T) {
	tree := walkedTree(t, map[string]string{
		"main.go": "", "src/a.go": "", "node_modules/x/y.js": "", "src/node_modules/z.js": "", "vendor/v.go": "", ".git": "gitdir: elsewhere",
		".hidden/h": "", "a/build/b": "", "note.log": "", ".gitignore": "*.log\n/skip/\n", "skip/s": "", "src/skip/k": "",
	})
	got, skipped := walked(t, tree, ".", WalkOptions{})
	if want := []string{".gitignore", ".hidden/h", "main.go", "src/a.go", "src/skip/k"}; !slices.Equal(got, want) {
		t.Errorf("walked %q, want %q", got, want)
	}
	want := "[1 pruned .git 1 pruned build 2 pruned node_modules 1 pruned vendor 2 ignored by .gitignore]"
	if r := fmt.Sprint(skipped.Reasons()); r != want {
		t.Errorf("skipped %s, want %s", r, want)
	}
	if got, skipped := walked(t, tree, ".", WalkOptions{NoIgnore: true}); len(got) != 12 || len(skipped.Reasons()) != 0 {
		t.Errorf("without rules %q, skipped %v; want all 12", got, skipped.Reasons())
	}
	if got, _ := walked(t, tree, ".", WalkOptions{Prune: []string{"src"}}); slices.Contains(got, "src/a.go") || !slices.Contains(got, "vendor/v.go") {
		t.Errorf("own list gives %q, want vendor and not src", got)
	}
}

func TestWalkGoesIntoWhatIsNamed(t *testing.T) {
	tree := walkedTree(t, map[string]string{"node_modules/x/y.js": "", "node_modules/node_modules/n": "", "skip/s": "", "skip/t.log": "", ".gitignore": "skip\n*.log", "a.log": ""})
	for path, want := range map[string][]string{
		"node_modules":          {"node_modules/x/y.js"},
		"skip":                  {"skip/s"},
		"a.log":                 {"a.log"},
		"./skip/../a.log":       {"a.log"},
		tree.Dir + "/skip/s":    {"skip/s"},
		"node_modules/x":        {"node_modules/x/y.js"},
		tree.Dir:                {".gitignore"},
		"node_modules/x/./y.js": {"node_modules/x/y.js"},
	} {
		if got, _ := walked(t, tree, path, WalkOptions{}); !slices.Equal(got, want) {
			t.Errorf("below %s: %q, want %q", path, got, want)
		}
	}
}

// A file that git tracks is handed out whatever the rules and the list say of it and its folders; its neighbours are not.
func TestWalkNeverHidesWhatGitTracks(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" version "+version, func(t *testing.T) {
				tree := walkedTree(t, map[string]string{
					"a.cfg": "", "b.cfg": "", "build/deep/tracked.go": "", "build/deep/other.go": "", "build/more/x": "", "gen/g.go": "", "gen/h.go": "",
					"dist/d": "", ".gitignore": "*.cfg\ngen/\n",
				})
				gitIn(t, tree.Dir, "init", "-q", "--object-format="+format, ".")
				gitIn(t, tree.Dir, "-c", "index.version="+version, "add", "-f", "a.cfg", "build/deep/tracked.go", "gen/g.go")
				if version == "3" {
					gitIn(t, tree.Dir, "-c", "index.version=3", "add", "-N", "-f", "b.cfg")
					gitIn(t, tree.Dir, "-c", "index.version=3", "rm", "-q", "--cached", "-f", "b.cfg")
					gitIn(t, tree.Dir, "-c", "index.version=3", "add", "-N", ".gitignore")
				}
				got, _ := walked(t, tree, ".", WalkOptions{})
				if want := []string{".gitignore", "a.cfg", "build/deep/tracked.go", "gen/g.go"}; !slices.Equal(got, want) {
					t.Errorf("walked %q, want %q", got, want)
				}
			})
		}
	}
}

func TestWalkReadsASplitIndex(t *testing.T) {
	tree := walkedTree(t, map[string]string{"a.cfg": "", "b.cfg": "", "c.cfg": "", ".gitignore": "*.cfg"})
	gitIn(t, tree.Dir, "init", "-q", ".")
	gitIn(t, tree.Dir, "add", "-f", "a.cfg")
	gitIn(t, tree.Dir, "update-index", "--split-index")
	gitIn(t, tree.Dir, "add", "-f", "b.cfg")
	got, _ := walked(t, tree, ".", WalkOptions{})
	if want := []string{".gitignore", "a.cfg", "b.cfg"}; !slices.Equal(got, want) {
		t.Errorf("walked %q, want %q", got, want)
	}
}

func TestWalkSkipsWhatIsNoFile(t *testing.T) {
	tree := walkedTree(t, map[string]string{"d/a.txt": ""})
	outside := t.TempDir()
	plant(t, outside, map[string]string{"secret": ""})
	for link, target := range map[string]string{"up": "..", "d/self": ".", "d/s2": ".", "dead": "nowhere", "out": outside, "file": "d/a.txt", "out2": outside + "/secret"} {
		if err := os.Symlink(target, filepath.Join(tree.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: filepath.Join(tree.Dir, "sock")}); err != nil {
		t.Skipf("the folder's path is too long for a socket: %v", err)
	}
	got, skipped := walked(t, tree, ".", WalkOptions{NoIgnore: true})
	if !slices.Equal(got, []string{"d/a.txt"}) || skipped.Symlinks != 7 || skipped.Special != 2 {
		t.Errorf("walked %q, %v; want one file, 7 symlinks, 2 special", got, skipped.Reasons())
	}
	for _, name := range []string{"pipe", "sock"} {
		var pe *PathError
		if _, err := tree.Walk(context.Background(), name, WalkOptions{}, nil); !errors.As(err, &pe) || !errors.Is(err, ErrNotRegular) {
			t.Errorf("walk of %s: %v, want ErrNotRegular", name, err)
		}
	}
	// A link that is named is followed inside, and never out.
	if got, _ := walked(t, tree, "d/self", WalkOptions{}); !slices.Equal(got, []string{"d/self/a.txt"}) {
		t.Errorf("below a named link: %q", got)
	}
	if got, _ := walked(t, tree, "file", WalkOptions{}); !slices.Equal(got, []string{"file"}) {
		t.Errorf("a named link to a file: %q", got)
	}
	for _, name := range []string{"out", "out2", "..", "/etc", "out/secret"} {
		if _, err := tree.Walk(context.Background(), name, WalkOptions{}, nil); !errors.Is(err, ErrOutside) {
			t.Errorf("walk of %s: %v, want ErrOutside", name, err)
		}
	}
	if _, err := tree.Walk(context.Background(), "d/a.tx", WalkOptions{}, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "d/a.txt") {
		t.Errorf("walk of what is not there: %v, want the nearest name", err)
	}
}

func TestWalkStopsAtItsBounds(t *testing.T) {
	files := map[string]string{}
	for i := range 1500 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = ""
	}
	tree := walkedTree(t, files)
	before := openHandles(t)
	got, skipped := walked(t, tree, ".", WalkOptions{MaxFiles: 1000})
	if len(got) != 1000 || skipped.Files != 1000 || !strings.Contains(skipped.Stopped, "after 1000 files") {
		t.Errorf("%d files, stopped %q; want 1000", len(got), skipped.Stopped)
	}
	if got, skipped = walked(t, tree, ".", WalkOptions{MaxFiles: 1500}); len(got) != 1500 || skipped.Stopped != "" {
		t.Errorf("exactly as many as allowed: %d files, stopped %q", len(got), skipped.Stopped)
	}
	if got, _ := walked(t, tree, ".", WalkOptions{MaxDepth: 1}); len(got) != 0 {
		t.Errorf("one level has %q", got)
	}
	if got, _ := walked(t, tree, ".", WalkOptions{MaxDepth: 2}); len(got) != 1500 {
		t.Errorf("two levels have %d files", len(got))
	}

	timeUp := make(chan struct{})
	var once sync.Once
	skipped, err := tree.Walk(context.Background(), ".", WalkOptions{MaxTime: time.Millisecond}, func(Walked) error {
		once.Do(func() { time.AfterFunc(50*time.Millisecond, func() { close(timeUp) }) })
		<-timeUp
		return nil
	})
	if err != nil || !strings.Contains(skipped.Stopped, "after 1ms") || skipped.Files >= 1500 {
		t.Errorf("time: %d files, stopped %q, %v", skipped.Files, skipped.Stopped, err)
	}

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	if _, err := tree.Walk(ctx, ".", WalkOptions{}, func(Walked) error { cancel(cause); <-ctx.Done(); return nil }); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := tree.Walk(context.Background(), ".", WalkOptions{}, func(Walked) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("error of the callback: %v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != "broken" {
				t.Errorf("panic of the callback: %v", p)
			}
		}()
		_, _ = tree.Walk(context.Background(), ".", WalkOptions{}, func(Walked) error { panic("broken") })
	}()
	if after := openHandles(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func TestWalkIsBoundedInDepth(t *testing.T) {
	tree := walkedTree(t, map[string]string{"top": ""})
	path := tree.Dir
	for range 3000 {
		path += "/d"
	}
	// The path is longer than the system takes at once.
	dir, err := unix.Open(tree.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range 3000 {
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkdirat(dir, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		var below int
		below, err = unix.Openat(dir, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(dir)
		dir = below
	}
	unix.Close(dir)
	t.Cleanup(func() { removeTree(tree.Dir + "/d") })
	got, skipped := walked(t, tree, ".", WalkOptions{})
	if !slices.Equal(got, []string{"top"}) || skipped.TooDeep != 1 {
		t.Errorf("walked %q, %v; want one folder too deep", got, skipped.Reasons())
	}
	plant(t, tree.Dir+strings.Repeat("/d", maxDepth), map[string]string{"deep": ""})
	if got, _ := walked(t, tree, ".", WalkOptions{}); len(got) != 2 {
		t.Errorf("walked %q, want the file at the deepest level too", got)
	}
}

func TestWalkManyFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 6_000 {
		files[fmt.Sprintf("d/%d", i)] = ""
	}
	tree := walkedTree(t, files)
	var seen [Lanes]map[string]bool
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	var running [Lanes]atomic.Int32
	if _, err := tree.Walk(context.Background(), ".", WalkOptions{}, func(w Walked) error {
		if running[w.Lane].Add(1) != 1 {
			return errors.New("two calls in one lane")
		}
		seen[w.Lane][w.Path] = true
		running[w.Lane].Add(-1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, s := range seen {
		total += len(s)
	}
	if total != 6_000 {
		t.Errorf("%d files, want 6000 in all lanes, each once", total)
	}
}

// Where a folder does not tell the kind of its entries, each is asked for.
func TestKindAt(t *testing.T) {
	tree := walkedTree(t, map[string]string{"file": "", "folder/x": ""})
	if err := os.Symlink("folder", filepath.Join(tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(tree.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for name, want := range map[string]kind{"file": kindFile, "folder": kindFolder, "link": kindLink, "pipe": kindOther, "gone": kindOther} {
		if got := kindAt(int(dir.Fd()), name); got != want {
			t.Errorf("%s: kind %d, want %d", name, got, want)
		}
	}
}
