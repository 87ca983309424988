package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemFolders are read-only inside. The rest of the machine is not there at all.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"}

// etcNames are what programs need of /etc and what holds nothing of this machine's own: certificates, the linker's cache, alternatives.
// Users, names and hosts are written anew.
var etcNames = []string{
	"ssl", "ca-certificates", "ca-certificates.conf", "pki", "crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone",
	"alternatives", "mime.types", "magic", "services", "protocols", "fonts", "terminfo", "inputrc", "bash.bashrc", "profile",
	"java-17-openjdk", "python3", "perl", "php", "R", "maven", "gradle", "debian_version", "os-release", "lsb-release", "alpine-release",
}

// deviceNames are the devices inside, all of them harmless.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

// fixture is something to be seen inside: a detached mount, or an empty folder if fd is below 0.
type fixture struct {
	target string // absolute
	fd     int
	file   bool
}

// rootPlan is a new root being made.
type rootPlan struct {
	fixtures []fixture
	links    [][2]string // target, name
}

func (p *rootPlan) close() {
	for _, f := range p.fixtures {
		if f.fd >= 0 {
			_ = unix.Close(f.fd)
		}
	}
}

// newRoot puts this process into a root that holds what the box allows and nothing else. Everything is taken from the old root first,
// as detached mounts, so that what is then covered does not matter.
func newRoot(box *boxSpec, ids int) error {
	p := &rootPlan{}
	defer p.close()
	if err := p.collect(box, ids); err != nil {
		return err
	}
	fd, err := tmpfs("/", "mode=0755", "size=16m", "nr_inodes=4096")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const door = "/tmp" // any folder will do: it is covered for a moment
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, door, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return at("mount the new root", err)
	}
	if err := unix.Fchdir(fd); err != nil {
		return at("enter the new root", err)
	}
	if err := p.furnish(box); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return at("change the root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return at("let go of the old root", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return at("enter the new root", err)
	}
	shut := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return at("make the root read-only", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &shut))
}

// collect takes the mounts from the old root.
func (p *rootPlan) collect(box *boxSpec, ids int) error {
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	for _, dir := range systemFolders {
		if target, err := os.Readlink(dir); err == nil { // merged into /usr
			p.links = append(p.links, [2]string{target, dir})
			continue
		}
		if err := p.bind(dir, dir, unix.MOUNT_ATTR_RDONLY|quiet, -1); err != nil && !errors.Is(err, unix.ENOENT) {
			return at("take "+dir, err)
		}
	}
	names := etcNames
	if box.host {
		names = append([]string{"hosts", "resolv.conf", "host.conf"}, names...)
	}
	for _, name := range names {
		if err := p.bind("/etc/"+name, "/etc/"+name, unix.MOUNT_ATTR_RDONLY|quiet, -1); err != nil && !errors.Is(err, unix.ENOENT) {
			return at("take /etc/"+name, err)
		}
	}
	for _, name := range deviceNames {
		if err := p.bind("/dev/"+name, "/dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, -1); err != nil && !errors.Is(err, unix.ENOENT) {
			return at("take /dev/"+name, err)
		}
	}
	if err := p.program(unix.MOUNT_ATTR_RDONLY | quiet); err != nil {
		return at("take the sandbox's program", err)
	}
	for _, file := range box.readable {
		if p.within(file) {
			continue
		}
		err := p.place(file, unix.MOUNT_ATTR_RDONLY|quiet, ids)
		if err != nil && ids >= 0 { // a file system that maps no ids shows what it shows to everyone
			err = p.place(file, unix.MOUNT_ATTR_RDONLY|quiet, -1)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) {
			return at("take "+file, err)
		}
	}
	for _, dir := range box.writable {
		if err := p.place(dir, quiet, ids); err != nil {
			return at("take "+dir, err)
		}
	}
	return p.fresh(box)
}

// program takes this program, which the helpers of the box run again. One whose file was replaced since it began is copied.
func (p *rootPlan) program(attrs uint64) error {
	name, err := os.Readlink(selfExe)
	if err != nil {
		return err
	}
	var own, named unix.Stat_t
	if err := unix.Stat(selfExe, &own); err != nil {
		return err
	}
	if unix.Stat(name, &named) == nil && own.Dev == named.Dev && own.Ino == named.Ino {
		return p.bind(name, hiddenExe, attrs, -1)
	}
	in, err := os.Open(selfExe)
	if err != nil {
		return err
	}
	defer in.Close()
	fd, err := tmpfs(hiddenExe, "mode=0755", "size="+strconv.Itoa(int(own.Size)+1<<20))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	file, err := unix.Openat(fd, "program", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(file), hiddenExe)
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil { // who writes to it could not run it
		return err
	}
	how := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	tree, err := unix.OpenTree(fd, "program", how)
	if err == nil {
		p.fixtures = append(p.fixtures, fixture{hiddenExe, tree, true})
	}
	return err
}

// within says that a path is seen already, as the system's.
func (p *rootPlan) within(file string) bool { return inAny(file, systemFolders) }

// inAny says that a path is one of the folders or in one.
func inAny(file string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(file+"/", strings.TrimSuffix(dir, "/")+"/") })
}

// Shows says whether commands under p see a file, given by its absolute path without symlinks: a program that they are to run, say.
func (p Policy) Shows(file string) bool {
	return p.Mode == "off" || inAny(file, systemFolders) || inAny(file, p.Readable) || inAny(file, p.Writable)
}

// place is bind for a path of the policy: it is seen under the name it was given, also where that leads through symlinks.
func (p *rootPlan) place(name string, attrs uint64, ids int) error {
	name = path.Clean(name)
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	if real == "/" {
		return fmt.Errorf("the whole machine cannot be a folder of a box: %w", unix.EINVAL)
	}
	if real != name {
		p.links = append(p.links, [2]string{real, name})
	}
	return p.bind(real, real, attrs, ids)
}

// bind takes source with all that is mounted below it. With ids, what its owner has there belongs to the box's uid.
func (p *rootPlan) bind(source, target string, attrs uint64, ids int) error {
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return err
	}
	how := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	set := unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	flags := uint(unix.AT_EMPTY_PATH)
	if ids >= 0 {
		set.Attr_set |= unix.MOUNT_ATTR_IDMAP
		set.Userns_fd = uint64(ids)
	} else {
		how |= unix.AT_RECURSIVE
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, how)
	if err != nil {
		return err
	}
	if err := unix.MountSetattr(fd, "", flags, &set); err != nil {
		_ = unix.Close(fd)
		return err
	}
	p.fixtures = append(p.fixtures, fixture{target, fd, st.Mode&unix.S_IFMT != unix.S_IFDIR})
	return nil
}

// fresh adds what is the box's own.
func (p *rootPlan) fresh(box *boxSpec) error {
	size := "size=" + strconv.Itoa(int(max(box.limits.TmpBytes, 1<<20)))
	for _, f := range []struct {
		target  string
		options []string
	}{
		{"/tmp", []string{"mode=1777", size, "nr_inodes=200000"}},
		{"/dev/shm", []string{"mode=1777", size, "nr_inodes=20000"}},
	} {
		fd, err := tmpfs(f.target, f.options...)
		if err != nil {
			return err
		}
		p.fixtures = append(p.fixtures, fixture{f.target, fd, false})
	}
	if fd, err := mountOf("devpts", "newinstance", "ptmxmode=0666", "mode=0620"); err == nil { // without it, programs have no terminals of their own
		p.fixtures = append(p.fixtures, fixture{"/dev/pts", fd, false})
		p.links = append(p.links, [2]string{"pts/ptmx", "/dev/ptmx"})
	}
	proc := fixture{"/proc", -1, false}
	if box.layers.has(layerProc) {
		fd, err := mountOf("proc")
		if err != nil {
			return at("mount /proc", err)
		}
		proc.fd = fd
	}
	p.fixtures = append(p.fixtures, proc)
	p.links = append(p.links, [][2]string{
		{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
		{"../tmp", "/var/tmp"}, {"../run", "/var/run"},
	}...)
	for _, dir := range []string{"/run", "/var", "/home", "/mnt", "/srv"} {
		p.fixtures = append(p.fixtures, fixture{dir, -1, false})
	}
	return nil
}

// furnish moves everything into the new root, which is the working folder.
func (p *rootPlan) furnish(box *boxSpec) error {
	slices.SortStableFunc(p.fixtures, func(a, b fixture) int { return strings.Compare(a.target, b.target) })
	for _, f := range p.fixtures {
		name := "." + f.target
		if err := makePoint(name, f.file); err != nil {
			return at("make "+f.target, err)
		}
		if f.fd < 0 {
			continue
		}
		if err := unix.MoveMount(f.fd, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return at("mount "+f.target, err)
		}
	}
	for _, l := range p.links {
		name := "." + l[1]
		if _, err := os.Lstat(name); err == nil {
			continue // what it stands for is there by another way
		}
		if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
			return at("make "+path.Dir(l[1]), err)
		}
		if err := os.Symlink(l[0], name); err != nil {
			return at("link "+l[1], err)
		}
	}
	return accounts(box)
}

// makePoint makes what a mount can be put on, unless it is there: below a folder that is mounted already, nothing is made.
func makePoint(name string, file bool) error {
	if st, err := os.Lstat(name); err == nil && st.IsDir() != file {
		return nil
	}
	if !file {
		return os.MkdirAll(name, 0o755)
	}
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// accounts writes the users, groups and hosts that there are inside.
func accounts(box *boxSpec) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if box.layers.has(layerUID) {
		uid, gid = box.uid, box.gid
	}
	passwd, group := "nobody:x:65534:65534:nobody:/:/bin/false\n", "nogroup:x:65534:\n"
	if uid != 0 {
		passwd += "root:x:0:0:root:/:/bin/sh\n"
		group += "root:x:0:\n"
	}
	passwd = fmt.Sprintf("agent:x:%d:%d:agent:/tmp:/bin/sh\n", uid, gid) + passwd
	group = fmt.Sprintf("agent:x:%d:\n", gid) + group
	for name, content := range map[string]string{
		"passwd": passwd, "group": group,
		"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost\n",
		"resolv.conf":   "",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"hostname":      "sandbox\n",
		"machine-id":    strings.Repeat("0", 32) + "\n",
	} {
		name = "./etc/" + name
		if _, err := os.Lstat(name); err == nil {
			continue // the host's
		}
		if err := os.MkdirAll("./etc", 0o755); err != nil {
			return at("make /etc", err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return at("write "+name[1:], err)
		}
	}
	return nil
}

func tmpfs(target string, options ...string) (int, error) {
	fd, err := mountOf("tmpfs", options...)
	return fd, at("make a tmpfs for "+target, err)
}

// mountOf makes a detached mount of a new file system, without devices and setuid programs.
func mountOf(kind string, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		key, value, has := strings.Cut(o, "=")
		if has {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return -1, fmt.Errorf("option %s: %w", o, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	switch kind {
	case "tmpfs":
		attrs = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV // programs are built in /tmp
	case "devpts":
		attrs = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
}
