package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func gone(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := os.Lstat(n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", n, err)
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%s holds %v, %v", dir, left, err)
	}
}

func TestCheckoutIsPrivateAndHasHistory(t *testing.T) {
	dir := newRepo(t)
	put(t, filepath.Join(dir, "a.txt"), "changed\n")
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	one, two := checkout(t, c, "one", snap.Commit, bundle), checkout(t, c, "two/with odd name", snap.Commit, nil)
	if one.Dir == two.Dir || one.Scratch == two.Scratch {
		t.Fatalf("shared: %s, %s", one.Dir, two.Dir)
	}
	mustWrite(t, one, "a.txt", "mine\n")
	if got, _ := readAll(two, "a.txt"); got != "changed\n" {
		t.Errorf("the other tree has %q", got)
	}
	if got := get(t, filepath.Join(dir, "a.txt")); got != "changed\n" {
		t.Errorf("the user's file is %q", got)
	}
	if got := userGit(t, two.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status: %q", got)
	}
	if got := userGit(t, two.Dir, "log", "--format=%s"); got != "Files as they were\nfirst" {
		t.Errorf("log: %q", got)
	}
	if got := userGit(t, two.Dir, "symbolic-ref", "HEAD"); got != "refs/heads/muster" {
		t.Errorf("branch: %q", got)
	}
	if err := runIn(t, two.Dir, "git", "commit", "-q", "--allow-empty", "-m", "without identity"); err != nil {
		t.Errorf("commit in the tree: %v", err)
	}
	for _, sub := range []string{"home", "tmp"} {
		if info, err := os.Stat(filepath.Join(one.Scratch, sub)); err != nil || !info.IsDir() {
			t.Errorf("scratch: %v", err)
		}
	}
	slotDir := filepath.Dir(one.Dir)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, slotDir, slotDir+".lock")
	if _, err := os.Stat(two.Dir); err != nil {
		t.Errorf("the other tree went too: %v", err)
	}
}

func TestCheckoutOfNothing(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	tree := checkout(t, openCache(t, t.TempDir()), "a", "", nil)
	if got := listing(t, tree.Dir); len(got) > 0 {
		t.Errorf("not empty: %v", got)
	}
	mustWrite(t, tree, "f", "x\n")
	var patch bytes.Buffer
	list, err := tree.Changes(context.Background(), &patch)
	if err != nil || len(list) != 1 || list[0] != (Change{Path: "f", Added: 1}) || !strings.Contains(patch.String(), "+x") {
		t.Errorf("changes: %+v, %v\n%s", list, err, &patch)
	}
	if err := runIn(t, tree.Dir, "git", "add", "f"); err != nil {
		t.Errorf("git in the empty tree: %v", err)
	}
}

func TestCheckoutBusy(t *testing.T) {
	dir := newRepo(t)
	cacheDir := t.TempDir()
	c := openCache(t, cacheDir)
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	if _, err := openCache(t, cacheDir).Checkout(context.Background(), "a", snap.Commit, false, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("second checkout of an attempt: %v", err)
	}
	if _, err := os.Stat(filepath.Join(tree.Dir, "a.txt")); err != nil {
		t.Error("the living attempt's tree was touched")
	}
}

func TestReadersShareOneTree(t *testing.T) {
	dir := newRepo(t)
	cacheDir := t.TempDir()
	c := openCache(t, cacheDir)
	snap, bundle := bundleOf(t, c, dir)
	var mu sync.Mutex
	var trees []*Tree
	var wg sync.WaitGroup
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		wg.Go(func() {
			other, err := OpenCache(cacheDir) // as another process would
			if err != nil {
				t.Error(err)
				return
			}
			tree, err := other.Checkout(context.Background(), name, snap.Commit, true, deliver(bundle))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			trees = append(trees, tree)
			mu.Unlock()
		})
	}
	wg.Wait()
	for i, tree := range trees {
		if tree.Dir != trees[0].Dir || !tree.ReadOnly || (i > 0 && tree.Scratch == trees[0].Scratch) {
			t.Errorf("tree %d: %+v", i, tree)
		}
		if got, err := readAll(tree, "a.txt"); err != nil || got != "one\ntwo\n" {
			t.Errorf("read: %q, %v", got, err)
		}
		if list, err := tree.Changes(context.Background(), io.Discard); err != nil || list != nil {
			t.Errorf("changes: %v, %v", list, err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(trees[0].Dir, "a.txt")); (err == nil) != (i < len(trees)-1) {
			t.Errorf("after %d of %d closed: %v", i+1, len(trees), err)
		}
	}
	empty(t, filepath.Join(cacheDir, basesDir))
	empty(t, filepath.Join(cacheDir, treesDir))
}

func TestReadersComeAndGo(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 5 {
				tree, err := c.Checkout(context.Background(), "r"+strconv.Itoa(i), snap.Commit, true, deliver(bundle))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := readAll(tree, "a.txt"); err != nil || got != "one\ntwo\n" {
					t.Errorf("read: %q, %v", got, err)
				}
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	empty(t, filepath.Join(c.dir, basesDir))
	empty(t, filepath.Join(c.dir, treesDir))
}

func TestReclaimDropsCutImports(t *testing.T) {
	c := openCache(t, t.TempDir())
	pack := filepath.Join(c.dir, "store-sha1.git/objects/pack")
	old, fresh := filepath.Join(pack, "tmp_pack_old"), filepath.Join(pack, "tmp_pack_new")
	put(t, old, "x")
	put(t, fresh, "x")
	long := time.Now().Add(-2 * importBound)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reclaim(context.Background()); err != nil {
		t.Fatal(err)
	}
	gone(t, old)
	if get(t, fresh) != "x" {
		t.Error("a pack that may be coming in was removed")
	}
}

func TestBundleIsChecked(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	ctx := context.Background()
	other := strings.Repeat("1", 40)
	if _, err := c.Checkout(ctx, "a", other, false, deliver(bundle)); err == nil {
		t.Error("a bundle without the commit was taken")
	}
	cut := append([]byte{}, bundle...)
	cut[len(cut)-30] ^= 0xff
	if _, err := c.Checkout(ctx, "a", snap.Commit, false, deliver(cut)); err == nil {
		t.Error("a damaged bundle was taken")
	}
	lie := bytes.Replace(bundle, []byte("refs/muster/"+snap.Commit), []byte("refs/muster/"+other), 1)
	if _, err := c.Checkout(ctx, "a", other, false, deliver(lie)); !errors.Is(err, ErrNoCommit) {
		t.Errorf("a bundle that lies: %v", err)
	}
	for _, bad := range []string{"", "--upload-pack=x", "HEAD", "../x"} {
		if bad == "" {
			continue
		}
		if _, err := c.Checkout(ctx, "a", bad, false, deliver(bundle)); err == nil {
			t.Errorf("%q was taken for a commit", bad)
		}
	}
	cause := errors.New("no such artifact")
	if _, err := c.Checkout(ctx, "a", snap.Commit, false, func(io.Writer) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("fetch that fails: %v", err)
	}
	empty(t, filepath.Join(c.dir, treesDir))
	checkout(t, c, "a", snap.Commit, bundle)
}

// commitOf makes a commit of a hand-made tree object, and the bundle of it.
func commitOf(t *testing.T, dir, tree, author string) (string, []byte) {
	t.Helper()
	hash := func(kind, content string) string {
		cmd := exec.Command("git", "hash-object", "-w", "--literally", "--stdin", "-t", kind)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(content)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	treeID := hash("tree", tree)
	commit := hash("commit", "tree "+treeID+"\nauthor "+author+"\ncommitter "+author+"\n\nx\n")
	userGit(t, dir, "update-ref", "refs/muster/"+commit, commit)
	var b bytes.Buffer
	cmd := exec.Command("git", "bundle", "create", "-", "refs/muster/"+commit)
	cmd.Dir, cmd.Stdout = dir, &b
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return commit, b.Bytes()
}

func TestBundleWithBadObjects(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	raw := func(id string) string {
		b := make([]byte, 20)
		for i := range b {
			hi, lo := strings.IndexByte("0123456789abcdef", id[2*i]), strings.IndexByte("0123456789abcdef", id[2*i+1])
			b[i] = byte(hi<<4 | lo)
		}
		return string(b)
	}
	file, folder := raw(userGit(t, dir, "rev-parse", "HEAD:a.txt")), raw(userGit(t, dir, "rev-parse", "HEAD:d"))
	const author = "a <a@b> 1 +0000"
	for what, tree := range map[string]string{
		"repository": "40000 .git\x00" + folder, "dots": "40000 ..\x00" + folder, "slash": "100644 a/b\x00" + file, "twice": "100644 a\x00" + file + "100644 a\x00" + file,
	} {
		commit, bundle := commitOf(t, dir, tree, author)
		if tree, err := c.Checkout(context.Background(), "a", commit, false, deliver(bundle)); err == nil {
			t.Errorf("%s: taken", what)
			tree.Close()
		}
	}
	// Old programs wrote such things, and nobody is harmed by them.
	commit, bundle := commitOf(t, dir, "100644 a\x00"+file+"040000 d\x00"+folder, "a a@b> 1 +0000")
	if got := listing(t, checkout(t, c, "a", commit, bundle).Dir); len(got) != 2 {
		t.Errorf("old history: %v", got)
	}
}

func TestWorkThatNobodyAskedForIsSaved(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	clean := checkout(t, c, "clean", snap.Commit, bundle)
	asked := checkout(t, c, "asked", snap.Commit, bundle)
	unasked := checkout(t, c, "unasked", snap.Commit, bundle)
	for _, tree := range []*Tree{asked, unasked} {
		mustWrite(t, tree, "a.txt", "work\n")
		userGit(t, tree.Dir, "commit", "-qam", "on no other branch")
	}
	if _, err := asked.Changes(context.Background(), io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, tree := range []*Tree{clean, asked, unasked} {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
	if clean.Saved != "" || asked.Saved != "" || unasked.Saved == "" {
		t.Fatalf("saved: %q, %q, %q", clean.Saved, asked.Saved, unasked.Saved)
	}
	userGit(t, dir, "apply", unasked.Saved)
	if got := get(t, filepath.Join(dir, "a.txt")); got != "work\n" {
		t.Errorf("the saved patch gives %q", got)
	}
}

func TestReclaimAfterKill(t *testing.T) {
	if cacheDir := os.Getenv("MUSTER_TEST_CACHE"); cacheDir != "" {
		// The process that is to be killed: it makes trees, works in one, says so, and waits.
		ctx := context.Background()
		c := openCache(t, cacheDir)
		var b bytes.Buffer
		snap, err := c.Snapshot(ctx, os.Getenv("MUSTER_TEST_DIR"), &b)
		if err != nil {
			t.Fatal(err)
		}
		private, err := c.Checkout(ctx, "killed", snap.Commit, false, deliver(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Checkout(ctx, "reader", snap.Commit, true, nil); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, private, "a.txt", "half done\n")
		os.Stdout.WriteString("\nready " + snap.Commit + "\n")
		io.Copy(io.Discard, os.Stdin)
		return
	}
	dir, cacheDir := newRepo(t), t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReclaimAfterKill$")
	cmd.Env = append(os.Environ(), "MUSTER_TEST_CACHE="+cacheDir, "MUSTER_TEST_DIR="+dir)
	stdin, _ := cmd.StdinPipe()
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	commit := ""
	for lines := bufio.NewScanner(out); commit == "" && lines.Scan(); {
		commit, _ = strings.CutPrefix(lines.Text(), "ready ")
		if len(commit) != 40 {
			commit = ""
		}
	}
	if commit == "" {
		t.Fatal("the other process did not start")
	}
	c := openCache(t, cacheDir)
	if list, err := c.Reclaim(context.Background()); err != nil || len(list) > 0 {
		t.Errorf("reclaimed from a living process: %v, %v", list, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	list, err := c.Reclaim(context.Background())
	if err != nil || len(list) != 2 {
		t.Fatalf("reclaimed: %+v, %v", list, err)
	}
	for _, r := range list {
		if r.Err != nil || (r.Saved != "") != (r.Attempt == "killed") {
			t.Errorf("reclaimed: %+v", r)
		}
		if r.Saved != "" && !strings.Contains(get(t, r.Saved), "+half done") {
			t.Errorf("saved: %s", get(t, r.Saved))
		}
	}
	for _, d := range []string{treesDir, basesDir, snapshotsDir} {
		empty(t, filepath.Join(cacheDir, d))
	}
	tree := checkout(t, c, "killed", commit, nil)
	if got, err := readAll(tree, "a.txt"); err != nil || got != "one\ntwo\n" {
		t.Errorf("a new tree of the attempt: %q, %v", got, err)
	}
}
