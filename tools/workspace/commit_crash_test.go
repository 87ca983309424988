package workspace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The environment of this binary as a process that commits in a folder and is killed at a step.
const (
	dieAt    = "MUSTER_TEST_COMMIT_DIES"  // number of the step
	dieIn    = "MUSTER_TEST_COMMIT_TOP"   // folder with the cache, and ws
	dieAfter = "MUSTER_TEST_COMMIT_STALE" // set: a file is changed at the last moment, so that all is undone
	dieOwn   = "MUSTER_TEST_COMMIT_OWN"   // set: the tree is a checkout
)

// commitAndDie is that process. It says at which step it ends.
func commitAndDie(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv(dieAt))
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCache(filepath.Join(os.Getenv(dieIn), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	var tree *Tree
	if os.Getenv(dieOwn) == "" {
		tree, err = c.Folder(t.Context(), filepath.Join(os.Getenv(dieIn), "ws"), filepath.Join(t.TempDir(), "scratch"))
	} else if tree, err = c.Checkout(t.Context(), "one", "", false, nil); err == nil {
		furnish(t, tree.Dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	tree.step = func(what string) {
		if what == "do grown2" && os.Getenv(dieAfter) != "" {
			put(t, filepath.Join(tree.Dir, "grown1"), "theirs")
		}
		n++
		fmt.Printf("step %d: %s\n", n, what)
		if n == at {
			fmt.Println("dies at " + what)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	_, err = tree.Commit(t.Context(), furnishSteps())
	fmt.Printf("ended: %v\n", err)
}

// runDying runs it. died is the step at which it was killed, "" if it came to its end.
func runDying(t *testing.T, top string, at int, env ...string) (died, out string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCommitSurvivesDeath$")
	cmd.Env = append(append(os.Environ(), dieAt+"="+strconv.Itoa(at), "MUSTER_TEST_COMMIT_TOP="+top, "TMPDIR="+t.TempDir()), env...)
	text, err := cmd.CombinedOutput()
	out = string(text)
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(out, "ended: "):
		return "", out
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		_, died, _ = strings.Cut(out, "dies at ")
		return strings.TrimSpace(died), out
	}
	t.Fatalf("%v\n%s", err, out)
	return "", ""
}

// stepNumber is the number of a step, which a process that is not killed tells.
func stepNumber(t *testing.T, step string, env ...string) int {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	furnish(t, dir)
	_, out := runDying(t, top, 0, env...)
	m := regexp.MustCompile(`(?m)^step (\d+): ` + step + `$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no step %s: %s", step, out)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// TestCommitSurvivesDeath kills a process that commits at each of its steps in turn, and opens the folder again in each way there is: either nothing was
// done, or, from the moment at which all is, everything.
func TestCommitSurvivesDeath(t *testing.T) {
	if os.Getenv(dieAt) != "" {
		commitAndDie(t)
		return
	}
	reopen := map[string]func(t *testing.T, c *Cache, live *Tree, dir string){
		"Folder": func(t *testing.T, c *Cache, _ *Tree, dir string) {
			again, err := c.Folder(t.Context(), dir, filepath.Join(t.TempDir(), "s"))
			if err != nil {
				t.Fatal(err)
			}
			again.Close()
		},
		"InPlace": func(t *testing.T, c *Cache, _ *Tree, dir string) {
			again, err := c.InPlace(t.Context(), "next", dir, false)
			if err != nil {
				t.Fatal(err)
			}
			again.Close()
		},
		"Reclaim": func(t *testing.T, c *Cache, _ *Tree, _ string) {
			if _, err := c.Reclaim(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"next commit": func(t *testing.T, _ *Cache, live *Tree, _ string) {
			if _, err := live.Commit(t.Context(), []Step{{Deed: Put, Path: "still", Data: []byte("still\n")}}); err != nil {
				t.Fatal(err)
			}
		},
	}
	undone, done := 0, 0
	for at := 1; ; at++ {
		names := []string{"Folder", "InPlace", "Reclaim", "next commit"}
		way := names[at%len(names)]
		top := t.TempDir()
		dir := filepath.Join(top, "ws")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		furnish(t, dir)
		c, err := OpenCache(filepath.Join(top, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		live, err := c.Folder(t.Context(), dir, filepath.Join(top, "live"))
		if err != nil {
			t.Fatal(err)
		}
		before := picture(t, dir)
		step, out := runDying(t, top, at)
		if step == "" {
			if now := picture(t, dir); now != after || !strings.Contains(out, "ended: <nil>") {
				t.Errorf("not killed: %s\n%s", out, now)
			}
			live.Close()
			break
		}
		reopen[way](t, c, live, dir)
		want := before
		if strings.HasPrefix(step, "finish") {
			want = after
			done++
		} else {
			undone++
		}
		if now := picture(t, dir); now != want {
			t.Errorf("killed at %q, then %s:\n%s", step, way, now)
		}
		if left := journals(t, c); len(left) > 1 || len(left) == 1 && !strings.HasSuffix(left[0], lockSuffix) {
			t.Errorf("killed at %q: left written down: %v", step, left)
		}
		live.Close()
	}
	t.Logf("undone %d times, finished %d times", undone, done)
	if undone < 20 || done < 5 {
		t.Errorf("undone %d times, finished %d times", undone, done)
	}
}

// TestUndoSurvivesDeath kills a process while it undoes a commit.
func TestUndoSurvivesDeath(t *testing.T) {
	met := 0
	for at := stepNumber(t, "do grown2", dieAfter+"=1"); ; at++ {
		top := t.TempDir()
		dir := filepath.Join(top, "ws")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		furnish(t, dir)
		before := picture(t, dir)
		step, out := runDying(t, top, at, dieAfter+"=1")
		if step == "" {
			if !strings.Contains(out, ErrStale.Error()) {
				t.Errorf("ended otherwise: %s", out)
			}
			break
		}
		if !strings.HasPrefix(step, "undo ") {
			continue
		}
		met++
		c, err := OpenCache(filepath.Join(top, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := get(t, filepath.Join(dir, "sub/grown2")); got != "theirs" {
			t.Errorf("killed at %q: what came meanwhile is now %q", step, got)
		}
		put(t, filepath.Join(dir, "grown1"), "old\n")
		if now := picture(t, dir); now != before {
			t.Errorf("killed at %q:\n%s", step, now)
		}
	}
	if met < 5 {
		t.Errorf("killed %d times while undoing", met)
	}
}

// TestCheckoutSurvivesDeath has a private tree whose process is gone in the middle of a commit: what is saved of it is no half.
func TestCheckoutSurvivesDeath(t *testing.T) {
	at := stepNumber(t, "do run", dieOwn+"=1")
	for _, way := range []string{"reclaimed", "taken again"} {
		top := t.TempDir()
		if step, out := runDying(t, top, at, dieOwn+"=1"); step != "do run" {
			t.Fatalf("it died at %q: %s", step, out)
		}
		c, err := OpenCache(filepath.Join(top, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		if way == "reclaimed" {
			_, err = c.Reclaim(t.Context())
		} else {
			var tree *Tree
			if tree, err = c.Checkout(t.Context(), "one", "", false, nil); err == nil {
				defer tree.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		saved, err := filepath.Glob(filepath.Join(globQuote(c.dir), savedDir, "*.patch"))
		if err != nil || len(saved) == 0 {
			t.Fatalf("%s: nothing was saved: %v", way, err)
		}
		patch := get(t, saved[len(saved)-1])
		if !strings.Contains(patch, "+old a\n") || strings.Contains(patch, "+new a\n") || strings.Contains(patch, ".muster-") {
			t.Errorf("%s: saved\n%s", way, patch)
		}
	}
}

// TestTornFileIsPutBack has a file that is written in place, and of which a part was written when its process ended.
func TestTornFileIsPutBack(t *testing.T) {
	at := stepNumber(t, "settle")
	for _, c := range []struct{ now, want string }{
		{"old twin, a longer text than the new one\n", "old"},
		{"new twin\n", "old"},
		{"new twin\n a longer text than the new one\n", "old"},
		{"new twin, a longer text than the new one\n", "old"},
		{"their text\n", "their text\n"},
		{"", ""},
		{"new twin\n and much more of theirs, longer than any of the two texts\n", "new twin\n and much more of theirs, longer than any of the two texts\n"},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "ws")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		furnish(t, dir)
		if step, out := runDying(t, top, at); step != "settle" {
			t.Fatalf("it died at %q: %s", step, out)
		}
		put(t, filepath.Join(dir, "twin1"), c.now)
		cache, err := OpenCache(filepath.Join(top, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want == "old" {
			want = "old twin, a longer text than the new one\n"
		}
		if got := get(t, filepath.Join(dir, "sub/twin2")); got != want {
			t.Errorf("%q became %q, want %q", c.now, got, want)
		}
		if got := get(t, filepath.Join(dir, "a")); got != "old a\n" {
			t.Errorf("another file of the commit holds %q", got)
		}
	}
}

// TestTornNewContentIsDropped has a process that ended in the middle of writing a file's new content, also one that is the same as the old one.
func TestTornNewContentIsDropped(t *testing.T) {
	at := stepNumber(t, "write same")
	for _, part := range []string{"", "sa", "same\n"} {
		top := t.TempDir()
		dir := filepath.Join(top, "ws")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		furnish(t, dir)
		before := picture(t, dir)
		if step, out := runDying(t, top, at); step != "write same" {
			t.Fatalf("it died at %q: %s", step, out)
		}
		torn := slices.DeleteFunc(leftovers(t, dir), func(name string) bool { return get(t, name) != "same\n" })
		if len(torn) != 1 {
			t.Fatalf("it left %v", torn)
		}
		put(t, torn[0], part)
		c, err := OpenCache(filepath.Join(top, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := picture(t, dir); now != before {
			t.Errorf("with %q of it written:\n%s", part, now)
		}
	}
}

// TestCommitSurvivesDeathAnywhere kills a process that commits again and again, wherever it is. All files are of one commit afterwards.
func TestCommitSurvivesDeathAnywhere(t *testing.T) {
	const files, deaths = 8, 20
	top := os.Getenv(dieIn)
	if top == "" {
		top = t.TempDir()
	}
	dir := filepath.Join(top, "ws")
	commitOften := func(c *Cache) {
		tree, err := c.Folder(t.Context(), dir, filepath.Join(t.TempDir(), "scratch"))
		if err != nil {
			t.Fatal(err)
		}
		tree.step = func(what string) { fmt.Println(what) }
		for k := 0; ; k++ {
			var steps []Step
			for i := range files {
				steps = append(steps, Step{Deed: Put, Path: fmt.Sprint("f", i), Data: fmt.Append(nil, k)})
			}
			steps = append(steps, Step{Deed: Move, Path: fmt.Sprint("d", k%2, "/moved"), To: fmt.Sprint("d", (k+1)%2, "/moved")})
			if _, err := tree.Commit(t.Context(), steps); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := OpenCache(filepath.Join(top, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(dieIn) != "" {
		commitOften(c)
	}
	cut := 0
	for n := range deaths {
		os.RemoveAll(dir)
		put(t, filepath.Join(dir, "d0/moved"), "moved")
		for i := range files {
			put(t, filepath.Join(dir, fmt.Sprint("f", i)), "0")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestCommitSurvivesDeathAnywhere$")
		cmd.Env = append(os.Environ(), dieIn+"="+top, "TMPDIR="+t.TempDir())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for i := 0; i <= 5*n && lines.Scan(); i++ {
		}
		cmd.Process.Kill()
		cmd.Wait()
		cut += len(slices.DeleteFunc(journals(t, c), func(name string) bool { return strings.HasSuffix(name, lockSuffix) }))
		if _, err := c.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i := range files {
			seen[get(t, filepath.Join(dir, fmt.Sprint("f", i)))] = true
		}
		moved, _ := filepath.Glob(filepath.Join(globQuote(dir), "d*", "*"))
		if len(seen) != 1 || len(moved) != 1 || len(leftovers(t, dir)) > 0 {
			t.Errorf("files of several commits: %v, %v, %v", seen, moved, leftovers(t, dir))
		}
	}
	if t.Logf("%d of %d were killed in a commit", cut, deaths); cut < deaths/4 {
		t.Errorf("only %d of %d were killed in a commit", cut, deaths)
	}
}

// TestReplaceIsUndone has a system that cannot exchange two names, at each of its steps.
func TestReplaceIsUndone(t *testing.T) {
	for _, state := range []map[string]string{
		{"f": "old", "t": "new"},
		{"f": "old", "t": "new", "t.old": "old"},
		{"t": "new", "t.old": "old"}, // where there are no hard links
		{"f": "new", "t.old": "old"},
		{"f": "new", "t": "old"},
		{"f": "old"},
	} {
		tree, dir, _ := openTest(t)
		for name, text := range state {
			put(t, filepath.Join(dir, name), text)
		}
		p := &swapPart{spot: &spot{area: tree.main, entry: entry{Dir: ".", Base: "f", Temp: "t", New: *sumOf("new")}}}
		if err := p.pin(); err != nil {
			t.Fatal(err)
		}
		if err := p.undo(); err != nil {
			t.Error(err)
		}
		if now := picture(t, dir); !strings.HasSuffix(now, "\nf -rw-r--r-- 1 names \"old\"\n") {
			t.Errorf("%v became\n%s", state, now)
		}
		if state["t"] == "new" && state["f"] == "old" {
			put(t, filepath.Join(dir, "t"), "new")
			if err := p.replace(); err != nil || get(t, filepath.Join(dir, "f")) != "new" || get(t, filepath.Join(dir, "t")) != "old" || p.has("t.old") {
				t.Errorf("replace: %v\n%s", err, picture(t, dir))
			}
		}
		p.dir.Close()
	}
}

// TestTornKeptContentIsNotUsed has a process that ended while it kept the old content of a file that it was to write in place.
func TestTornKeptContentIsNotUsed(t *testing.T) {
	at := stepNumber(t, "stage grown2")
	top := t.TempDir()
	dir := filepath.Join(top, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	furnish(t, dir)
	before := picture(t, dir)
	if step, out := runDying(t, top, at); step != "stage grown2" {
		t.Fatalf("it died at %q: %s", step, out)
	}
	c, err := OpenCache(filepath.Join(top, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range journals(t, c) {
		if strings.HasSuffix(name, keptSuffix) {
			kept, _ := filepath.Glob(filepath.Join(globQuote(name), "*.old"))
			if len(kept) != 1 {
				t.Fatalf("kept: %v", kept)
			}
			put(t, kept[0], "old")
			if err := os.Remove(strings.TrimSuffix(kept[0], ".old") + ".new"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := picture(t, dir); now != before {
		t.Errorf("it left\n%s", now)
	}
}
