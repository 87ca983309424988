//go:build linux

package sandbox

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// user is one of the two that commands may be run by.
type user struct {
	name string
	uid  int
}

// users are root and an ordinary user; where the test is not run by root, it is the only one.
func users() []user {
	if os.Geteuid() != 0 {
		return []user{{"user", os.Geteuid()}}
	}
	return []user{{"root", 0}, {"user", 65534}}
}

// employed is a running worker as the test sees it.
type employed struct {
	t       *testing.T
	cmd     *exec.Cmd
	orders  *json.Encoder
	answers *json.Decoder
	rungs   []string // that the worker's user gets here
}

// employ starts a worker of a user.
func employ(t *testing.T, u user) *employed {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe := furnishPrograms(t, dir, u)
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Logf("no terminal: %v", err)
	} else {
		t.Cleanup(func() { _ = terminal.Close(); _ = tty.Close() })
	}
	key := make([]byte, 8)
	_, _ = rand.Read(key)
	cmd := exec.Command(exe, filepath.Join(dir, "run"), exe, "")
	cmd.Dir = "/"
	cmd.Env = append(withoutTmp(os.Environ()), role+"=worker", "PROVIDER_KEY="+keyMark+hex.EncodeToString(key))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tty != nil {
		_ = tty.Chown(u.uid, u.uid)
		cmd.Args[3] = tty.Name()
		cmd.ExtraFiles = []*os.File{tty}
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 3
	}
	if u.uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	e := &employed{t: t, cmd: cmd, orders: json.NewEncoder(in), answers: json.NewDecoder(bufio.NewReader(out))}
	a := e.answer()
	if a.Err != "" {
		t.Fatalf("a worker of %s: %s", u.name, a.Err)
	}
	for _, why := range a.Lacking {
		t.Log(why)
	}
	e.rungs = a.Rungs
	return e
}

// withoutTmp leaves the temporary folder of the test out, which an ordinary user may not use.
func withoutTmp(env []string) []string {
	var kept []string
	for _, v := range env {
		if len(v) < 7 || v[:7] != "TMPDIR=" {
			kept = append(kept, v)
		}
	}
	return kept
}

// furnishPrograms copies the test program where everybody may run it, and makes the worker's folder.
func furnishPrograms(t *testing.T, dir string, u user) string {
	t.Helper()
	for _, d := range []string{dir, filepath.Join(dir, "bin"), filepath.Join(dir, "run")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe := filepath.Join(dir, "bin", "attacker")
	copyProgram(t, exe)
	idle := idleOf(exe)
	copyProgram(t, idle)
	if os.Geteuid() == 0 {
		setuid := filepath.Join(dir, "bin", "setuid")
		copyProgram(t, setuid)
		if err := os.Chmod(setuid, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{exe, idle, filepath.Join(dir, "run")} {
			if err := os.Chown(name, u.uid, u.uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return exe
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open(selfExe)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
}

func (e *employed) answer() (a answer) {
	e.t.Helper()
	if err := e.answers.Decode(&a); err != nil {
		e.t.Fatalf("the worker says nothing more: %v", err)
	}
	return a
}

func (e *employed) order(confine string, names []string) answer {
	e.t.Helper()
	if err := e.orders.Encode(order{Confine: confine, Attacks: names}); err != nil {
		e.t.Fatal(err)
	}
	a := e.answer()
	if a.Err != "" {
		e.t.Fatalf("%s: %s", confine, a.Err)
	}
	return a
}

// allNames are the names of all attacks.
func allNames() (names []string) {
	for _, a := range attacks() {
		names = append(names, a.name)
	}
	return names
}

// holds says whether this machine's root, or the ordinary user, has what an attack needs.
func (n need) holds(t *testing.T, u user) bool {
	t.Helper()
	if n == 0 {
		return true
	}
	if u.uid != 0 {
		return false
	}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]); err != nil {
		t.Fatal(err)
	}
	c := uint(n - 1)
	return caps[c/32].Effective&(1<<(c%32)) != 0
}

// filteredByEngines are the attacks on system calls that container engines keep from everybody, by a filter of their own. Under it,
// nothing can show that they would work.
var filteredByEngines = []string{
	"vm_readv_bystander", "vm_writev_bystander", "pidfd_getfd_bystander", "kcmp_bystander", "userfaultfd", "keyctl", "personality",
	"userns", "userns_bare", "userns_clone", "userns_clone3", "int80", "ia32_program",
	"suid_fchmodat2",
}

// stoppedByEngine says that the filter that this test was started under may stop an attack.
func stoppedByEngine(name string) bool {
	return underFilter() && slices.Contains(filteredByEngines, name)
}

// underFilter says that this process has a filter of system calls.
var underFilter = sync.OnceValue(func() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode != 0
})

// TestAttacksWork tries every attack without a sandbox: what cannot work there would prove nothing where it is blocked.
func TestAttacksWork(t *testing.T) {
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			found := employ(t, u).order("none", allNames())
			for _, f := range found.Verdicts {
				a, _ := findAttack(f.Name)
				t.Run(f.Name, func(t *testing.T) {
					should := a.needs.holds(t, u) && a.never+a.maybe == "" && !stoppedByEngine(f.Name)
					switch {
					case f.Outcome == worked && a.never != "":
						t.Errorf("it works (%s), although %s", f.Text, a.never)
					case f.Outcome == untried || f.Outcome == absent:
						t.Logf("cannot be tried here: %s", f.Text)
					case f.Outcome != worked && should:
						t.Errorf("%s: %s", f.Outcome, f.Text)
					default:
						t.Logf("%s: %s", f.Outcome, f.Text)
					}
				})
			}
		})
	}
}

// exceptions are the attacks that work at a rung, beside those that work at "full". A rung that is not here is below what anybody gets
// without asking for it.
var exceptions = map[rung][]string{
	full: {"symlink_plant", "fifo_plant"}, // in the job's own files, for which the file tools are made
	// uid 0 is not bound by the kernel's limit of processes: the guard ends what is there at its next look, a tenth of a second later.
	fullSameUID: {"fork_bomb", "threads"},
	fullNoProc:  {"fork_bomb", "threads", "mem_hog_procs", "ghost_files"}, // no guard looks at processes
	landlocked: {
		"threads", "fork_bomb", "interfaces", "list_procs", // as above; the host's network cards and processes can be seen
		"chdir_outside", "stat_outside", "watch_outside", "chmod_outside", "chown_outside", "utime_outside", "xattr_outside", // not among Landlock's rights
	},
}

// TestAttacks tries every attack at every rung that this machine gives.
func TestAttacks(t *testing.T) {
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			e := employ(t, u)
			for _, r := range e.rungs {
				excepted, checked := exceptions[rung(r)]
				if !checked {
					continue // nobody gets these without asking for them; TestMatrix shows what single layers are worth
				}
				t.Run(r, func(t *testing.T) {
					found := e.order(r, allNames())
					for _, f := range found.Verdicts {
						if f.Outcome == worked && !slices.Contains(excepted, f.Name) && !slices.Contains(exceptions[full], f.Name) {
							t.Errorf("%s worked: %s", f.Name, f.Text)
						} else {
							t.Logf("%s %s: %s", f.Name, f.Outcome, f.Text)
						}
					}
					for _, c := range found.Changed {
						if rung(r) == landlocked {
							t.Logf("afterwards: %s", c) // by what is excepted
						} else {
							t.Errorf("afterwards: %s", c)
						}
					}
				})
			}
		})
	}
}
