//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unlimited is for attacks that do not concern resources: the test program under the race detector takes terabytes of addresses.
var unlimited = Limits{Processes: -1, MemoryBytes: -1, CPUSecs: -1, FileBytes: -1, OpenFiles: -1, TmpBytes: -1, DiskBytes: -1, DiskFiles: -1}

// with are l's limits, and no others.
func (l Limits) with() Limits {
	all := unlimited
	for _, v := range []struct{ from, to *int }{{&l.Processes, &all.Processes}, {&l.CPUSecs, &all.CPUSecs}, {&l.OpenFiles, &all.OpenFiles}} {
		if *v.from != 0 {
			*v.to = *v.from
		}
	}
	for _, v := range []struct{ from, to *int64 }{
		{&l.MemoryBytes, &all.MemoryBytes}, {&l.FileBytes, &all.FileBytes}, {&l.TmpBytes, &all.TmpBytes}, {&l.DiskBytes, &all.DiskBytes}, {&l.DiskFiles, &all.DiskFiles},
	} {
		if *v.from != 0 {
			*v.to = *v.from
		}
	}
	return all
}

// try runs one command that tries attacks, beside a command of another agent.
func (w *worker) try(confine string, names []string) ([]finding, error) {
	server, err := w.startOther(confine)
	if err != nil {
		return nil, fmt.Errorf("the other agent: %w", err)
	}
	defer server()
	return w.attack(confine, unlimited, names)
}

func (w *worker) attack(confine string, limits Limits, names []string) ([]finding, error) {
	told, err := json.Marshal(w.victim)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(w.Exe, "attacker")
	cmd.Dir = w.Workspace
	cmd.Env = []string{pathEnv, role + "=attacker", "ATTACKS=" + strings.Join(names, " "), "VICTIM=" + string(told)}
	said, end, err := w.run(confine, limits, cmd)
	if err != nil {
		return nil, err
	}
	all := verdicts(said)
	if len(names) == 1 {
		all = []finding{hear(names[0], said, end)}
	}
	if len(all) != len(names) {
		return nil, fmt.Errorf("%d of %d attacks reported: %w: %s", len(all), len(names), end, said)
	}
	return all, nil
}

// tryAlone runs a command for a single attack, in a workspace of its own.
func (w *worker) tryAlone(confine string, a attack) ([]finding, error) {
	one := &worker{victim: w.victim, dir: w.dir, key: w.key}
	one.Workspace = w.dir + "/ws-" + a.name
	if err := os.Mkdir(one.Workspace, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		_ = os.Chmod(one.Workspace+"/shut", 0o700)
		_ = os.RemoveAll(one.Workspace)
	}()
	if a.script == "" {
		return one.attack(confine, a.limits.with(), []string{a.name})
	}
	if a.program != nil {
		if !amd64 {
			return []finding{{a.name, untried, "a program in the machine code of amd64"}}, nil
		}
		if err := os.WriteFile(one.Workspace+"/program", a.program, 0o755); err != nil {
			return nil, err
		}
		defer removeSegments()
	}
	cmd := exec.Command("/bin/sh", "-c", a.script)
	cmd.Dir = one.Workspace
	hold := "0"
	if confine != "none" && (!strings.HasPrefix(confine, "only ") || strings.Contains(confine, "rlimits")) {
		hold = "60" // far more than the guard takes on a busy machine
	}
	cmd.Env = []string{pathEnv, "WS=" + one.Workspace, "TMP=/tmp", "SHM=/dev/shm", "HOLD=" + hold}
	said, end, err := one.run(confine, a.limits.with(), cmd)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", a.name, err)
	case strings.Contains(said, worked):
		return []finding{{a.name, worked, "nothing stopped it"}}, nil
	}
	return []finding{{a.name, blocked, fmt.Sprintf("%v %.300s", end, said)}}, nil
}

// errEnd is how a command ended; a nil one is exit 0.
func errEnd(e Exit) error {
	if e.Code == 0 && e.Limit == "" {
		return nil
	}
	return fmt.Errorf("ended with %d %s, limit %q", e.Code, e.Signal, e.Limit)
}

// run runs one command to its end in a box of its own, or without one. The last error is of the starting.
func (w *worker) run(confine string, limits Limits, cmd *exec.Cmd) (said string, end, err error) {
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if confine == "none" {
		cmd.Env = append(os.Environ(), cmd.Env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			return "", nil, err
		}
		late := time.AfterFunc(10*attackBound, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		end = cmd.Wait()
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // what it left
		return out.String(), end, nil
	}
	box, err := confined(confine, w.policy(w.Workspace, limits))
	if err != nil {
		return "", nil, err
	}
	defer box.Close()
	p, err := box.Start(cmd)
	if err != nil {
		return "", nil, err
	}
	late := time.AfterFunc(10*attackBound, p.Kill)
	defer late.Stop()
	e, err := p.Wait()
	return out.String(), errors.Join(err, errEnd(e)), nil
}

func (w *worker) policy(dir string, limits Limits) Policy {
	return Policy{Writable: []string{dir}, Readable: []string{filepath.Dir(w.Exe)}, Limits: limits}
}

// startOther starts a command of another agent, in a box of its own, and finds it among the host's processes.
func (w *worker) startOther(confine string) (end func(), err error) {
	mark := "server-" + w.key[len(keyMark):]
	cmd := exec.Command(w.Exe, mark)
	cmd.Dir = w.Other.Dir
	cmd.Env = []string{pathEnv, role + "=server", "OTHER_KEY=" + otherMark + w.key[len(keyMark):], "OTHER_TMP=" + otherTmp(w.Other)}
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer pr.Close()
	defer pw.Close()
	cmd.Stdout = pw
	if confine == "none" {
		cmd.Env = append(os.Environ(), cmd.Env...)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = os.Remove("/tmp/" + otherTmp(w.Other)) }
	} else {
		box, err := confined(confine, w.policy(w.Other.Dir, unlimited))
		if err != nil {
			return nil, err
		}
		p, err := box.Start(cmd)
		if err != nil {
			box.Close()
			return nil, err
		}
		end = func() { p.Kill(); _, _ = p.Wait(); box.Close() }
	}
	w.Other.Port, w.Other.Abstract, w.Other.PID = 0, "", 0
	_ = pr.SetReadDeadline(time.Now().Add(attackBound))
	dir := w.Other.Dir
	err = json.NewDecoder(pr).Decode(&w.Other)
	w.Other.Dir = dir
	for _, p := range processes() {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); err == nil && strings.Contains(string(line), mark) {
			w.Other.PID = p.pid
		}
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// playServer is a command of another agent: it has a secret in its environment, in its workspace and in its /tmp, and answers
// with it.
func playServer() int {
	key := os.Getenv("OTHER_KEY")
	if err := os.WriteFile("secret", []byte(key), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.WriteFile("/tmp/"+os.Getenv("OTHER_TMP"), []byte(key), 0o600)
	var o other
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		o.Port = l.Addr().(*net.TCPAddr).Port
		go answerStreams(l, key)
	}
	if l, err := net.Listen("unix", "@"+os.Getenv("OTHER_TMP")); err == nil {
		o.Abstract = os.Getenv("OTHER_TMP")
		go answerStreams(l, key)
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		return 1
	}
	for {
		_ = unix.Pause()
	}
}

// playClient greets the port that it is told, and prints the answer.
func playClient() int {
	v := greet("tcp", "127.0.0.1:"+os.Args[1])
	fmt.Println(v.Outcome, v.Text)
	if v.Outcome != worked {
		return 1
	}
	return 0
}
