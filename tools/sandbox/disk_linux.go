package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	diskSlice = guardBeat / 2   // of a walk over the disk, between two looks at memory
	diskPause = 2 * time.Second // the longest after a walk that found nothing
	diskShare = 10              // a pause is so many times as long as the walk before
	diskStep  = 512             // bytes of a path that are gone at once
)

// room is what was free on the disk of a box's first folder when it began.
type room struct {
	begun int64 // unix nanoseconds
	bytes int64
	files int64
}

func (r *room) fields(c *codec) {
	number(c, &r.begun)
	number(c, &r.bytes)
	number(c, &r.files)
}

// roomOf is what there is now; all zero where nobody can tell.
func roomOf(dirs []string) room {
	r := room{begun: time.Now().UnixNano()}
	var st unix.Statfs_t
	if len(dirs) > 0 && unix.Statfs(dirs[0], &st) == nil {
		r.bytes, r.files = int64(st.Bavail)*st.Bsize, int64(st.Ffree)
	}
	return r
}

// spare is what a command may take of the disks that it may write on, and what is free on the one with the least.
type spare struct {
	bytes, free, reserve int64
}

// spareOf is what there is now; where nobody can tell, that is plenty.
func spareOf(dirs []string) spare {
	least := spare{bytes: math.MaxInt64}
	for _, d := range dirs {
		var st unix.Statfs_t
		if unix.Statfs(d, &st) != nil || st.Blocks == 0 {
			continue
		}
		s := spare{free: int64(st.Bavail) * st.Bsize, reserve: reserveOf(int64(st.Blocks) * st.Bsize)}
		if s.bytes = s.free - s.reserve; s.bytes < least.bytes {
			least = s
		}
	}
	return least
}

// little is what a command may write all the same where nothing is to spare.
func (s spare) little() int64 { return s.reserve / 10 }

// bound is the size of a file that is allowed, where limit would be without it: no single file takes the reserve, however fast it is made.
func (s spare) bound(limit int64) int64 {
	most := max(s.bytes-s.little(), s.little()) // blocks are whole, and take others to be found by
	if s.bytes == math.MaxInt64 || limit > 0 && limit < most {
		return limit
	}
	return most
}

// diskGuard is the part of a guard that looks after the disk.
type diskGuard struct {
	begun   time.Time     // the command
	quietly int64         // bytes that have gone by others' doing
	walk    time.Time     // not before
	due     time.Time     // at the latest
	census  *census       // that goes on
	took    time.Duration // it, so far
}

// disk looks first at what is free, which costs nothing, and only then for who took it.
func (g *guard) disk(tree []proc) string {
	l, d := g.box.limits, &g.diskGuard
	if g.box.began.bytes == 0 || len(g.box.writable) == 0 {
		return ""
	}
	var st unix.Statfs_t
	if unix.Statfs(g.box.writable[0], &st) != nil {
		return ""
	}
	gone, files := g.box.began.bytes-int64(st.Bavail)*st.Bsize, int64(st.Ffree)
	spare := spareOf(g.box.writable)
	low := spare.bytes < 0
	many := l.DiskFiles > 0 && g.box.began.files-files > l.DiskFiles
	much := l.DiskBytes > 0 && gone-d.quietly > l.DiskBytes
	if d.census == nil {
		suspect := (low || many || much) && !time.Now().Before(d.walk)
		if !suspect && time.Now().Before(d.due) { // others may free what this one takes: once in a while it is looked at all the same
			return ""
		}
		d.census, d.took = newCensus(g.box.writable, g.box.began.begun, d.begun.UnixNano()), 0
	}
	begun := time.Now()
	seen, done := d.census, d.census.goOn(begun.Add(diskSlice))
	nameless := unlinked(tree)
	bytes, recent := seen.bytes+nameless, seen.recent+nameless
	d.took += time.Since(begun)
	switch {
	case l.DiskBytes > 0 && bytes > l.DiskBytes:
		return fmt.Sprintf("disk: %s written, %s allowed", size(bytes), size(l.DiskBytes))
	case l.DiskFiles > 0 && seen.files > l.DiskFiles:
		return fmt.Sprintf("disk: %d files made, %d allowed", seen.files, l.DiskFiles)
	case low && recent > spare.little():
		return fmt.Sprintf("disk: only %s of it are free, %s are kept in reserve, and this command has written %s", size(spare.free), size(spare.reserve), size(recent))
	case !done:
		return ""
	case seen.shut && much: // who hides what is there is not believed that it was somebody else
		return fmt.Sprintf("disk: %s have gone, %s allowed, and folders that cannot be looked into hide who took them", size(gone-d.quietly), size(l.DiskBytes))
	case !seen.shut:
		d.quietly = max(d.quietly, gone-bytes) // the rest was somebody else
	}
	d.census = nil
	d.walk = time.Now().Add(min(diskShare*d.took, diskPause))
	d.due = time.Now().Add(max(2*diskShare*d.took, time.Second))
	return ""
}

// census adds up what was made or changed below some folders since a time. It is taken piece by piece, so that a tree of any size on a disk of
// any speed is seen whole in the end. What is moved meanwhile may count twice or never; the next census tells.
type census struct {
	since   int64     // unix nanoseconds, as in the ctime of a file, which only the kernel sets
	lately  int64     // a later time
	ahead   []*folder // not looked into yet
	here    *folder   // looked into now
	entries *os.File  // of here
	bytes   int64
	recent  int64 // those since lately
	files   int64
	shut    bool // the box has a folder that cannot be looked into

	// A folder on the way to the last one that lay deep: the next ones lie near it.
	base   *folder
	baseFD int
}

// folder is one on the way down. It does not hold its path: paths grow with the depth of a tree, and memory with them.
type folder struct {
	above *folder
	name  string
	ours  bool // changed since, and by nobody else
}

func newCensus(dirs []string, since, lately int64) *census {
	c := &census{since: since, lately: lately, baseFD: unix.AT_FDCWD}
	for _, d := range dirs {
		c.ahead = append(c.ahead, &folder{name: d})
	}
	return c
}

// goOn counts on until a time, at least a little; done says that everything has been counted.
func (c *census) goOn(until time.Time) (done bool) {
	for {
		if c.entries == nil && !c.next() {
			c.rebase(nil, unix.AT_FDCWD)
			return true
		}
		names, err := c.entries.Readdirnames(100)
		for _, name := range names {
			c.count(name)
		}
		if err != nil { // the end
			_ = c.entries.Close()
			c.entries = nil
		}
		if !time.Now().Before(until) {
			return false
		}
	}
}

// next opens the next folder that can be opened.
func (c *census) next() bool {
	for len(c.ahead) > 0 {
		last := len(c.ahead) - 1
		c.here, c.ahead = c.ahead[last], c.ahead[:last]
		fd, err := c.open(c.here)
		if err == nil {
			c.entries = os.NewFile(uintptr(fd), c.here.name)
			return true
		}
		c.shut = c.shut || errors.Is(err, unix.EACCES) && c.here.ours // else it is gone, another thing now, or somebody else's
	}
	return false
}

func (c *census) count(name string) {
	var st unix.Stat_t
	if unix.Fstatat(int(c.entries.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	bytes := st.Blocks * 512 / max(1, int64(st.Nlink))
	changed := st.Ctim.Nano() >= c.since
	if changed {
		c.files++
		c.bytes += bytes
	}
	if st.Ctim.Nano() >= c.lately {
		c.recent += bytes
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		c.ahead = append(c.ahead, &folder{c.here, name, changed && int(st.Uid) == os.Geteuid()})
	}
}

// open opens a folder at any depth: from the base where the way leads over it, and in steps, since the kernel takes no path of any length.
func (c *census) open(f *folder) (fd int, err error) {
	var steps []string // from the last to the first
	var ends []*folder // where each begins
	from := unix.AT_FDCWD
	for at := f; at != nil; {
		if at == c.base {
			from = c.baseFD
			break
		}
		path := at.name
		for at = at.above; at != nil && at != c.base && len(path)+len(at.name) < diskStep; at = at.above {
			path = at.name + "/" + path
		}
		steps, ends = append(steps, path), append(ends, at)
	}
	const dir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for i := len(steps) - 1; i >= 0; i-- {
		if i == 0 {
			fd, err = unix.Openat(from, steps[i], dir, 0)
		} else if fd, err = unix.Openat(from, steps[i], dir|unix.O_PATH, 0); err == nil {
			c.rebase(ends[i-1], fd)
			from = fd
		}
		if err != nil {
			return -1, err
		}
	}
	return fd, nil
}

func (c *census) rebase(f *folder, fd int) {
	if c.baseFD >= 0 {
		_ = unix.Close(c.baseFD)
	}
	c.base, c.baseFD = f, fd
}

// unlinked sums files of the tree that have no name any more: those that are open, and those that are only mapped, of which the length of
// the mapping is all that can be seen.
func unlinked(tree []proc) (bytes int64) {
	seen := map[uint64]bool{}
	for _, p := range tree {
		dir := "/proc/" + strconv.Itoa(p.pid)
		names, err := readNames(dir + "/fd")
		if err != nil {
			continue
		}
		for _, n := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/fd/"+n, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 && !seen[st.Ino] {
				seen[st.Ino] = true
				bytes += st.Blocks * 512
			}
		}
		maps, err := os.ReadFile(dir + "/maps")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(maps)) { // "from-to rights offset device inode   name (deleted)"
			f := strings.Fields(line)
			if len(f) < 7 || f[len(f)-1] != "(deleted)" || strings.HasPrefix(f[5], "/dev/zero") || strings.HasPrefix(f[5], "/SYSV") {
				continue
			}
			from, to, _ := strings.Cut(f[0], "-")
			low, _ := strconv.ParseInt(from, 16, 64)
			high, _ := strconv.ParseInt(to, 16, 64)
			if ino, err := strconv.ParseUint(f[4], 10, 64); err == nil && !seen[ino] {
				seen[ino] = true
				bytes += high - low
			}
		}
	}
	return bytes
}
