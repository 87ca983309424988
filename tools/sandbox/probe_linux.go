package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const killBare = "subreaper"

var probe = sync.OnceValue(runProbe)

// Probe finds the best rung of this machine, by running each with a self-test inside until one holds. It is done once a process.
func Probe() Report { return probe() }

func runProbe() Report {
	var lacking []Lack
	for _, r := range ladder {
		if r == fullSameUID && os.Geteuid() != 0 {
			continue // for an ordinary user that is what "full" is
		}
		l := layersOf(r, "none")
		open, err := selfTest(l)
		if err == nil {
			return Report{Rung: string(r), Kill: killOf(l), Memory: memoryOf(l), Network: networkOf(l, "none"), Open: open, Lacking: lacking}
		}
		lacking = append(lacking, Lack{Rung: string(r), Why: err.Error(), Get: remedy(r, err)})
	}
	return Report{Rung: string(bare), Kill: "none", Memory: "none", Network: "open", Lacking: lacking}
}

func networkAt(r rung, wanted string) string { return networkOf(layersOf(r, wanted), wanted) }

// remedy tells how to get a rung that failed.
func remedy(r rung, err error) string {
	switch {
	case r == landlocked:
		return "a kernel from 6.2 on with Landlock among its security modules: lsm=landlock,… on its command line"
	case r == filtered || r == limited || r == bare:
		return ""
	case errors.Is(err, unix.ENOSPC):
		return "allow user namespaces: sysctl user.max_user_namespaces=15000"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EUSERS):
		return "allow user namespaces: outside of containers sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; " +
			"in one, run it with security options seccomp=unconfined, apparmor=unconfined and systempaths=unconfined"
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return "a kernel from 5.12 on; as root, files on a file system whose mounts can map ids, such as ext4, xfs, btrfs or tmpfs"
	}
	return ""
}

// selfTest starts this program as a command with these layers, which starts a daemon, tries what it can reach of a worker and of the files
// around it, and is killed.
func selfTest(l layer) (open []string, err error) {
	dir, err := os.MkdirTemp("", "muster-selftest-")
	if err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	defer os.RemoveAll(dir)
	canary, inside := filepath.Join(dir, "canary"), filepath.Join(dir, "inside")
	if err := os.WriteFile(canary, []byte("canary"), 0o600); err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	if err := os.Mkdir(inside, 0o700); err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	address := ""
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		defer l.Close()
		address = l.Addr().String()
	}
	b := &Box{live: map[*Process]bool{}}
	if _, err := b.space.openLayers(Policy{Writable: []string{inside}}, l); err != nil {
		return nil, err
	}
	defer b.Close()
	out := &verdict{said: make(chan struct{})}
	exe := selfExe
	if l.has(layerMount) {
		exe = hiddenExe
	}
	cmd := &exec.Cmd{
		Path: exe, Dir: inside, Stdout: out,
		Args: []string{selfTestName, strconv.Itoa(int(l)), canary, strconv.Itoa(os.Getpid()), startOf(os.Getpid()), address},
	}
	p, err := b.start(cmd, true, func() {})
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(handshakeBound)
	defer late.Stop()
	select {
	case <-out.said:
	case <-p.Done():
	case <-late.C:
	}
	p.Kill()
	e, err := p.Wait()
	text := strings.TrimSpace(out.text.String())
	words, ok := strings.CutSuffix(text, lastWord)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("self-test ended with %d %s %s: %s", e.Code, e.Signal, e.Limit, text)
	case !e.Killed || e.Survivors != 0 || e.Left != 1 && l.has(layerProc):
		return nil, fmt.Errorf("self-test and its daemon: killed %v, %d others ended, %d survived", e.Killed, e.Left, e.Survivors)
	}
	open = strings.Fields(words)
	if _, err := os.Lstat(canary + newSuffix); err != nil { // it wrote into a folder of its own that stands where this one does
		open = slices.DeleteFunc(open, func(w string) bool { return w == "write" })
	}
	return open, nil
}

// newSuffix is of the file that a self-test tries to make beside its canary.
const newSuffix = ".new"

// lastWord is said by a self-test that got to its end and waits to be killed.
const lastWord = "end"

// verdict is what a self-test says.
type verdict struct {
	text strings.Builder
	said chan struct{} // closed after lastWord
}

func (v *verdict) Write(p []byte) (int, error) {
	before := strings.HasSuffix(v.text.String(), lastWord+"\n")
	v.text.Write(p)
	if !before && strings.HasSuffix(v.text.String(), lastWord+"\n") {
		close(v.said)
	}
	return len(p), nil
}

// startOf is when the process of that number began, which tells it from another one that has the number in another namespace.
func startOf(pid int) string {
	p, _ := readProc(pid)
	return strconv.FormatUint(p.start, 10)
}

// runSelfTest is the command of a self-test: args are its layers, a canary file, the worker's process number and its start, and an address it listens on.
// A single argument is the daemon that it starts. Both stay until they are killed.
func runSelfTest(args []string) int {
	if len(args) != 5 {
		return stay()
	}
	n, err := strconv.Atoi(args[0])
	l, canary, worker, address := layer(n), args[1], args[2], args[4]
	if err != nil {
		fmt.Printf("layers %q", args[0])
		return 1
	}
	if err := holds(l); err != nil {
		fmt.Print(err)
		return 1
	}
	exe := selfExe
	if l.has(layerMount) {
		exe = hiddenExe
	}
	_, err = syscall.ForkExec(exe, []string{selfTestName, "stay"}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Printf("start a daemon: %v", err)
		return 1
	}
	pid, _ := strconv.Atoi(worker)
	hidden := l.has(layerPID) && startOf(pid) != args[3] // that number is somebody else here
	for _, try := range []struct {
		word string
		do   func() error
	}{
		{"read", func() error { _, err := os.ReadFile(canary); return err }},
		{"write", func() error { return os.WriteFile(canary+newSuffix, nil, 0o600) }},
		{"chmod", func() error { return os.Chmod(canary, 0o600) }},
		{"stat", func() error { _, err := os.Stat(canary); return err }},
		{"signal", func() error { return unix.Kill(pid, 0) }},
		{"environ", func() error { _, err := os.ReadFile("/proc/" + worker + "/environ"); return err }},
		{"processes", func() error { _, err := os.Stat("/proc/" + worker); return err }},
		{"connect", func() error { return dial(address) }},
		{"namespaces", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }}, // last: refused anyway to a program of several threads, with another error
	} {
		if hidden && slices.Contains([]string{"signal", "environ", "processes"}, try.word) {
			continue
		}
		err := try.do()
		if err == nil || try.word == "namespaces" && errors.Is(err, unix.EINVAL) {
			fmt.Println(try.word)
		}
	}
	fmt.Println(lastWord)
	return stay()
}

// holds says whether the layers that work inward do: a rung of which a part is missing in silence is none.
func holds(l layer) error {
	if l.has(layerPID | layerProc) {
		self, err := os.Readlink("/proc/self")
		if err != nil || self != strconv.Itoa(os.Getpid()) || os.Getpid() == 1 || os.Getppid() != 1 {
			return fmt.Errorf("process %d of parent %d is %q in /proc", os.Getpid(), os.Getppid(), self)
		}
	}
	if err := os.WriteFile("own", []byte("x"), 0o600); err != nil {
		return fmt.Errorf("write in its own folder: %w", err)
	}
	if l.has(layerCaps) {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil || data[0].Effective|data[0].Permitted|data[1].Effective|data[1].Permitted != 0 {
			return fmt.Errorf("it has capabilities (%v)", err)
		}
	}
	if l.has(layerSeccomp) {
		if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, false); !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("system calls are not filtered: %v", err)
		}
	}
	if l.has(layerUID) && os.Getuid() == 0 {
		return errors.New("it has the uid of the worker")
	}
	return nil
}

func stay() int {
	for {
		_ = unix.Pause()
	}
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
