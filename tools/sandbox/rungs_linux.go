package sandbox

import (
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// layer is one way to confine; a rung is a set of them. Beside these, every command has its own session, no terminal, the environment that
// it was given and no descriptor beyond 0, 1 and 2.
type layer uint32

const (
	layerUser     layer = 1 << iota // user namespace, with the worker's own uid in it: what an ordinary user needs for the next four
	layerPID                        // pid namespaces of the box and, in it, of each command
	layerMount                      // a new root with nothing in it but what is allowed
	layerNet                        // an own network, loopback only
	layerIPC                        // own System V objects and host name
	layerProc                       // an own /proc, with layerPID
	layerUID                        // a uid of the box's own, as root
	layerCaps                       // no capabilities and no way to new ones
	layerLandlock                   // files, signals and abstract sockets by Landlock
	layerSeccomp                    // the system calls that nobody needs
	layerSockets                    // with layerSeccomp: no sockets but netlink, where there is no own network
	layerShmless                    // with layerSeccomp: no System V memory, where nothing bounds it
	layerLimits                     // rlimits and the watchdog
)

const spaces = layerUser | layerPID | layerMount | layerNet | layerIPC

func (l layer) has(all layer) bool { return l&all == all }

// layersOf is what a rung is made of on this machine.
func layersOf(r rung, network string) layer {
	l := layerCaps | layerLandlock | layerSeccomp | layerLimits
	root := os.Geteuid() == 0
	switch r {
	case full, fullSameUID, fullNoProc:
		l |= layerPID | layerMount | layerNet | layerIPC | layerProc
		if !root || !mayMount() {
			l |= layerUser
		}
		if root && r == full {
			l |= layerUID
		}
		if r == fullNoProc {
			l &^= layerProc
		}
	case landlocked:
		l |= layerSockets | layerShmless
	case filtered:
		l = layerCaps | layerSeccomp | layerSockets | layerShmless | layerLimits
	case limited:
		l = layerCaps | layerLimits
	default:
		return 0
	}
	if network == "open" {
		l &^= layerNet | layerSockets
	}
	return l
}

// mayMount says whether this process has what a holder needs, without a user namespace.
func mayMount() bool {
	const needs = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SETPCAP

	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&needs == needs
}

// killOf is how a tree is ended with these layers.
func killOf(l layer) string {
	if l.has(layerPID) {
		return "pidns"
	}
	return "subreaper"
}

func memoryOf(l layer) string {
	switch {
	case !l.has(layerLimits):
		return "none"
	case l.has(layerPID) && !l.has(layerProc):
		return "rlimit" // nothing to watch by
	}
	return "watchdog"
}

// networkOf is what holds of the policy's network with these layers.
func networkOf(l layer, wanted string) string {
	switch {
	case l&(layerNet|layerSockets) == 0:
		return "open"
	case wanted == "proxy":
		return "proxy"
	}
	return "none"
}

// boxSpec is what a holder makes, and what each of its inits and stages must know.
type boxSpec struct {
	layers   layer
	proxy    bool // a listener on proxyAddress inside
	host     bool // names are looked up as on the host
	uid, gid int  // of commands, with layerUID
	owner    int  // uid and gid on disk of what is writable, with layerUID
	group    int
	writable []string
	readable []string
	limits   Limits
	began    room
	tasks    int // of this uid elsewhere, which count against its limit, without layerUser and layerUID
}

func (s *boxSpec) fields(c *codec) {
	number(c, &s.layers)
	flag(c, &s.proxy)
	flag(c, &s.host)
	number(c, &s.uid)
	number(c, &s.gid)
	number(c, &s.owner)
	number(c, &s.group)
	texts(c, &s.writable)
	texts(c, &s.readable)
	s.limits.fields(c)
	s.began.fields(c)
	number(c, &s.tasks)
}

func (l *Limits) fields(c *codec) {
	number(c, &l.Processes)
	number(c, &l.MemoryBytes)
	number(c, &l.CPUSecs)
	number(c, &l.FileBytes)
	number(c, &l.OpenFiles)
	number(c, &l.TmpBytes)
	number(c, &l.DiskBytes)
	number(c, &l.DiskFiles)
}

// commandSpec is what a stage becomes. Its descriptors are stdin, stdout and stderr.
type commandSpec struct {
	dir, path string
	args, env []string
	self      bool // a self-test: this program stays in reach
}

func (s *commandSpec) fields(c *codec) {
	text(c, &s.dir)
	text(c, &s.path)
	texts(c, &s.args)
	texts(c, &s.env)
	flag(c, &s.self)
}

// newBoxSpec is p on these layers. The folders exist.
func newBoxSpec(p Policy, l layer) boxSpec {
	s := boxSpec{
		layers: l, proxy: p.Network == "proxy", host: p.Network == "open",
		writable: p.Writable, readable: p.Readable, limits: p.Limits.orDefaults(),
		began: roomOf(p.Writable),
	}
	if l.has(layerUID) {
		// One uid a box, out of so many that two boxes of this machine never share one.
		s.uid = 200_000 + rand.IntN(1<<30)
		s.gid = s.uid
		if len(p.Writable) > 0 {
			var st unix.Stat_t
			if unix.Stat(p.Writable[0], &st) == nil {
				s.owner, s.group = int(st.Uid), int(st.Gid)
			}
		}
	}
	if !l.has(layerUID) && !l.has(layerUser) && l.has(layerLimits) {
		s.tasks = tasksOf(os.Geteuid())
	}
	return s
}

// tasksOf counts the threads of a uid on this machine.
func tasksOf(uid int) (n int) {
	for _, p := range processes() {
		dir := "/proc/" + strconv.Itoa(p.pid)
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || int(st.Uid) != uid {
			continue
		}
		names, err := readNames(dir + "/task")
		if err == nil {
			n += len(names)
		}
	}
	return n
}
