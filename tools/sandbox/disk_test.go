//go:build linux

package sandbox

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// plantDeep makes a folder in a folder, again and again, with a file and an empty folder beside each; it returns how many of all that it made.
func plantDeep(t *testing.T, dir string, depth int) (made int64) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		for _, name := range []string{"before", strings.Repeat("m", 20), "zzz"} {
			if err := unix.Mkdirat(at, name, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		file, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(file)
		below, err := unix.Openat(at, strings.Repeat("m", 20), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = below
		made += 4
	}
	_ = unix.Close(at)
	return made
}

func TestCensusCountsWhatIsNewAtAnyDepth(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.MkdirAll(filepath.Join(old, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "folder", "file"), make([]byte, 5000), 0o644); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	// The kernel's clock for files ticks a few hundred times a second: what comes next is to be of a later tick.
	eventually(t, "the clock of files goes on", func() bool {
		then := time.Now()
		if err := os.Chtimes(filepath.Join(old, "folder"), then, then); err != nil {
			t.Fatal(err)
		}
		var folder unix.Stat_t
		if unix.Stat(filepath.Join(old, "folder", "file"), &st) != nil || unix.Stat(filepath.Join(old, "folder"), &folder) != nil {
			t.Fatal("stat")
		}
		return folder.Ctim.Nano() > st.Ctim.Nano()
	})
	since := st.Ctim.Nano() + 1
	want := plantDeep(t, dir, 700) + 1 // and old/folder, which has a new time
	before := openFDs(t)
	for _, slice := range []time.Duration{time.Hour, 1} {
		c := newCensus([]string{dir}, since, since)
		pieces := 1
		for !c.goOn(time.Now().Add(slice)) {
			pieces++
		}
		if c.files != want || c.shut {
			t.Errorf("in %d pieces: %d files, want %d; shut: %v", pieces, c.files, want, c.shut)
		}
		if slice == 1 && pieces < 100 {
			t.Errorf("%d pieces only", pieces)
		}
	}
	if now := openFDs(t); now > before {
		t.Errorf("%d descriptors open, %d before", now, before)
	}
}

func TestCensusTellsOfShutFolders(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t, "^TestCensusTellsOfShutFolders$")
		return
	}
	dir := t.TempDir()
	shut := filepath.Join(dir, "shut")
	if err := os.Mkdir(shut, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(shut, 0o700) })
	for since, want := range map[int64]bool{0: true, time.Now().Add(time.Hour).UnixNano(): false} {
		c := newCensus([]string{dir}, since, since)
		if !c.goOn(time.Now().Add(time.Hour)) || c.shut != want {
			t.Errorf("shut is %v, want %v", c.shut, want)
		}
	}
}

// smallDisk is a disk of its own for a test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("muster-test", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size="+size); err != nil {
		t.Skipf("no disk of its own can be made here: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// A command that fills the disk takes it from the worker too, whose board may be on it.
func TestDiskKeepsAReserve(t *testing.T) {
	const mb = 1_000_000
	rungs(t, func(t *testing.T, r rung) {
		if !layersOf(r, "none").has(layerLimits) {
			t.Skip("nothing is limited at this rung")
		}
		for name, c := range map[string]struct {
			script, stdout string
			others         int    // bytes on the disk that are there before
			limit          string // that ends the command, in Exit.Limit
			full           bool   // it is faster than who looks
			proc           bool   // only /proc tells of it
		}{
			"one file":        {script: "exec head -c 100000000 /dev/zero >big", limit: "file size: what the disk has to spare"},
			"one file, later": {script: "exec head -c 100000000 /dev/zero >big", others: 10 * mb, limit: "file size: what the disk has to spare"},
			"many files":      {script: "i=0; while :; do head -c 1000000 /dev/zero >f$i; i=$((i+1)); done 2>/dev/null", limit: "disk: only ", full: true},
			"nameless files": {script: "for i in 3 4; do eval \"exec $i>gone\"; rm gone; head -c 15000000 /dev/zero >&$i; done 2>/dev/null; sleep 100",
				limit: "disk: only ", full: true, proc: true},
			"filled by others": {script: "echo own >own; sleep 0.5; cat own", stdout: "own\n", others: 23 * mb, full: true},
		} {
			t.Run(name, func(t *testing.T) {
				if c.proc && r == fullNoProc {
					t.Skip("without /proc nobody sees them")
				}
				dir := smallDisk(t, "24m")
				if err := os.WriteFile(filepath.Join(dir, "others"), make([]byte, c.others), 0o600); err != nil {
					t.Fatal(err)
				}
				got := shellIn(t, r, dir, c.script)
				if (got.Limit == "") != (c.limit == "") || !strings.HasPrefix(got.Limit, c.limit) || got.stdout != c.stdout {
					t.Errorf("got %+v", got)
				}
				if got.Limit != "" && !strings.Contains(got.Limit, "2.4 MiB are kept in reserve") {
					t.Errorf("limit %q", got.Limit)
				}
				if s := spareOf([]string{dir}); !c.full && s.bytes < 0 {
					t.Errorf("it left %d bytes of %d in reserve", s.free, s.reserve)
				}
			})
		}
	})
}

func TestReserve(t *testing.T) {
	for disk, want := range map[int64]int64{0: 0, 1000: 100, 1 << 30: 1 << 30 / 10, 5 << 30: 512 << 20, 1 << 40: 512 << 20} {
		if got := reserveOf(disk); got != want {
			t.Errorf("of %d bytes %d are kept, want %d", disk, got, want)
		}
	}
	for _, c := range []struct{ spare, limit, want int64 }{
		{100, 50, 50}, {100, 200, 93}, {100, -1, 93}, {10, -1, 7}, {-5, 200, 7}, {-5, -1, 7}, {math.MaxInt64, -1, -1}, {math.MaxInt64, 50, 50},
	} {
		if got := (spare{bytes: c.spare, reserve: 70}).bound(c.limit); got != c.want {
			t.Errorf("with %d to spare a limit of %d is %d, want %d", c.spare, c.limit, got, c.want)
		}
	}
}
