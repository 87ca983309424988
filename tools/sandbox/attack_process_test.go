//go:build linux

package sandbox

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// both makes an attack on the worker and the same on an ordinary program of the user, which does not hide itself as a worker does:
// what the worker hides, only who has needs gets at.
func both(name string, needs need, do func(t target) finding) []attack {
	aim := func(t target) finding {
		if group, err := unix.Getpgid(t.PID); err == nil && group == unix.Getpgrp() {
			return stopped("process %d is another in here", t.PID) // a thread of this command, where process numbers are small
		}
		return do(t)
	}
	return []attack{
		{name: name, needs: needs, do: func(v victim) finding { return aim(v.Worker) }},
		{name: name + "_bystander", do: func(v victim) finding { return aim(v.Bystander) }},
	}
}

// secretAttacks want what a process holds.
func secretAttacks() []attack {
	list := []attack{
		{name: "own_env", do: func(victim) finding { return secretIn([]byte(strings.Join(os.Environ(), "\n")), nil, "environment") }},
		{name: "parent_env", needs: as(unix.CAP_SYS_PTRACE), do: func(v victim) finding { return environOf(v.Parent) }},
		{name: "init_env", needs: as(unix.CAP_SYS_PTRACE), maybe: "the host's first process may hide even from root", do: func(v victim) finding {
			b, err := os.ReadFile("/proc/1/environ")
			if ns, nserr := os.Readlink("/proc/self/ns/pid"); nserr == nil && ns == v.PIDNS && len(b) > 0 {
				return works("read %d bytes of the host's first process", len(b))
			}
			return secretIn(b, err, "environment of process 1")
		}},
		{name: "cmdline", never: "no secret stands in an argument", do: func(victim) finding { return secretOfAny("cmdline") }},
		{name: "environ_of_any", do: func(victim) finding { return secretOfAny("environ") }},
		{name: "leaked_fd", do: func(victim) finding {
			b := make([]byte, 100)
			n, err := unix.Pread(leakedFD, b, 0)
			return secretIn(b[:max(n, 0)], err, "read descriptor "+itoa(leakedFD))
		}},
		{name: "ctl_fd", do: inheritedFDs},
	}
	list = append(list, both("environ", as(unix.CAP_SYS_PTRACE), func(t target) finding { return environOf(t.PID) })...)
	list = append(list, both("mem", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		f, err := os.Open("/proc/" + itoa(t.PID) + "/mem")
		if err != nil {
			return stopped("open the memory: %v", err)
		}
		defer f.Close()
		b := make([]byte, keyBytes)
		n, err := f.ReadAt(b, int64(t.Addr))
		return secretIn(b[:n], err, "memory")
	})...)
	list = append(list, both("vm_readv", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		b := make([]byte, keyBytes)
		n, err := vm(t, b, unix.ProcessVMReadv)
		return secretIn(b[:max(n, 0)], err, "process_vm_readv")
	})...)
	list = append(list, both("vm_writev", as(unix.CAP_SYS_PTRACE), func(t target) finding { // beside the key
		t.Addr += uint64(keyBytes)
		_, err := vm(t, []byte("written"), unix.ProcessVMWritev)
		return unless(err, "process_vm_writev")
	})...)
	list = append(list, both("ptrace", as(unix.CAP_SYS_PTRACE), ptrace)...)
	list = append(list, both("procroot", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		names, err := os.ReadDir("/proc/" + itoa(t.PID) + "/root/")
		return unless(err, "list the root of a process: "+itoa(len(names)))
	})...)
	list = append(list, both("procfd", as(unix.CAP_SYS_PTRACE), func(t target) finding { return readSecret("/proc/" + itoa(t.PID) + "/fd/" + itoa(t.FileFD)) })...)
	list = append(list, both("procfd_pipe", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		return openAndClose("/proc/"+itoa(t.PID)+"/fd/"+itoa(t.PipeFD), os.O_RDONLY)
	})...)
	return append(list, both("pidfd_getfd", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		p, err := unix.PidfdOpen(t.PID, 0)
		if err != nil {
			return stopped("pidfd_open: %v", err)
		}
		fd, err := unix.PidfdGetfd(p, t.FileFD, 0)
		if err != nil {
			return stopped("pidfd_getfd: %v", err)
		}
		b := make([]byte, 100)
		n, err := unix.Pread(fd, b, 0)
		return secretIn(b[:max(n, 0)], err, "read a stolen descriptor")
	})...)
}

// leakedFD is a descriptor that some library of the worker forgot to close at exec.
const leakedFD = 200

func environOf(pid int) finding { return readSecret("/proc/" + itoa(pid) + "/environ") }

// secretOfAny looks for a secret in the named file of every process in sight.
func secretOfAny(file string) finding {
	files, err := filepath.Glob("/proc/[0-9]*/" + file)
	last := stopped("%d processes in sight, %v", len(files), err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if v := secretIn(b, err, "read "+f); v.Outcome == worked {
			return v
		}
	}
	return last
}

// inheritedFDs looks for a pipe, socket or file that a command has no business with. The runtime's own are of other kinds.
func inheritedFDs(victim) finding {
	for fd := 3; fd < 256; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || fd == leakedFD {
			continue
		}
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFSOCK || kind == unix.S_IFIFO || kind == unix.S_IFREG {
			return works("descriptor %d is open, of mode %o", fd, st.Mode)
		}
	}
	return stopped("nothing but the three streams")
}

func vm(t target, b []byte, call func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error)) (int, error) {
	local := []unix.Iovec{{Base: unsafe.SliceData(b)}}
	local[0].SetLen(len(b))
	return call(t.PID, local, []unix.RemoteIovec{{Base: uintptr(t.Addr), Len: len(b)}}, 0)
}

func ptrace(t target) finding {
	runtime.LockOSThread()
	if err := unix.PtraceSeize(t.PID); err != nil {
		return stopped("seize: %v", err)
	}
	if err := unix.PtraceInterrupt(t.PID); err != nil {
		return stopped("interrupt: %v", err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(t.PID, &ws, unix.WALL, nil); err != nil {
		return stopped("wait: %v", err)
	}
	b := make([]byte, keyBytes)
	n, err := unix.PtracePeekData(t.PID, uintptr(t.Addr), b)
	_ = unix.PtraceDetach(t.PID)
	return secretIn(b[:max(n, 0)], err, "peek")
}

// processAttacks want to harm or to see a process. The signal is one that nobody minds.
func processAttacks() []attack {
	list := []attack{
		{name: "kill_init", alone: true, mayDie: true, do: killInit},
		{name: "list_procs", do: func(v victim) finding {
			b, err := os.ReadFile("/proc/" + itoa(v.Bystander.PID) + "/cmdline")
			if err == nil && !strings.Contains(string(b), "bystander") {
				return stopped("process %d is another in here", v.Bystander.PID)
			}
			return unless(err, "see the processes of the host")
		}},
		{name: "setuid0", needs: as(unix.CAP_SETUID), do: func(v victim) finding {
			if err := unix.Setresuid(0, 0, 0); err != nil {
				return stopped("become root: %v", err)
			}
			return capabilities(v) // without them it is a name
		}},
		{name: "suid", do: setUID},
		{name: "capabilities", needs: as(unix.CAP_KILL), do: capabilities},
		{name: "oom_lower", needs: as(unix.CAP_SYS_RESOURCE), do: func(victim) finding {
			return unless(os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0), "be spared when memory runs out")
		}},
	}
	list = append(list, both("kill", 0, func(t target) finding { return unless(unix.Kill(t.PID, unix.SIGWINCH), "kill") })...)
	list = append(list, both("tgkill", 0, func(t target) finding { return unless(unix.Tgkill(t.PID, t.PID, unix.SIGWINCH), "tgkill") })...)
	list = append(list, both("sigqueue", 0, func(t target) finding {
		info := make([]byte, 128) // siginfo_t: number, error, code
		binary.NativeEndian.PutUint32(info, uint32(unix.SIGWINCH))
		binary.NativeEndian.PutUint32(info[8:], ^uint32(0)) // SI_QUEUE
		_, _, no := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(t.PID), uintptr(unix.SIGWINCH), uintptr(unsafe.Pointer(&info[0])))
		return unlessErrno(no, "rt_sigqueueinfo")
	})...)
	list = append(list, both("pidfd_kill", 0, func(t target) finding {
		p, err := unix.PidfdOpen(t.PID, 0)
		if err != nil {
			return stopped("pidfd_open: %v", err)
		}
		return unless(unix.PidfdSendSignal(p, unix.SIGWINCH, nil, 0), "pidfd_send_signal")
	})...)
	list = append(list, both("prlimit", 0, func(t target) finding {
		var now unix.Rlimit
		if err := unix.Prlimit(t.PID, unix.RLIMIT_CORE, nil, &now); err != nil {
			return stopped("read a limit: %v", err)
		}
		return unless(unix.Prlimit(t.PID, unix.RLIMIT_CORE, &now, nil), "set a limit")
	})...)
	list = append(list, both("renice", 0, func(t target) finding {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, t.PID) // 20 less the value
		if err != nil {
			return stopped("getpriority: %v", err)
		}
		return unless(unix.Setpriority(unix.PRIO_PROCESS, t.PID, 20-nice), "setpriority")
	})...)
	list = append(list, both("affinity", 0, func(t target) finding {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(t.PID, &set); err != nil {
			return stopped("sched_getaffinity: %v", err)
		}
		return unless(unix.SchedSetaffinity(t.PID, &set), "sched_setaffinity")
	})...)
	list = append(list, both("scheduler", 0, func(t target) finding {
		attr, err := unix.SchedGetAttr(t.PID, 0)
		if err != nil {
			return stopped("sched_getattr: %v", err)
		}
		return unless(unix.SchedSetAttr(t.PID, attr, 0), "sched_setattr")
	})...)
	list = append(list, both("oom_adj", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		name := "/proc/" + itoa(t.PID) + "/oom_score_adj"
		now, err := os.ReadFile(name)
		if err != nil {
			return stopped("%v", err)
		}
		return unless(os.WriteFile(name, now, 0), "write oom_score_adj")
	})...)
	return append(list, both("kcmp", as(unix.CAP_SYS_PTRACE), func(t target) finding {
		const vmOf = 1 // KCMP_VM
		_, _, no := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(t.PID), vmOf, 0, 0, 0)
		return unlessErrno(no, "kcmp")
	})...)
}

// killInit kills what keeps the command's tree together, and looks whether it is still there. The worker itself gets a harmless signal.
func killInit(v victim) finding {
	parent := os.Getppid()
	if parent == v.Worker.PID {
		return unless(unix.Kill(parent, unix.SIGWINCH), "kill the parent")
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); parent == 1 && (err != nil || ns == v.PIDNS) {
		return lacking("the parent is gone already, or may be the host's first process")
	}
	err := unix.Kill(parent, unix.SIGKILL)
	_ = unix.Kill(parent, unix.SIGTERM)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if now := os.Getppid(); now != parent {
			return works("killed the parent, and lives on below %d", now)
		}
		<-tick.C
	}
	return stopped("the parent lives (kill: %v)", err)
}

// setUID runs a program that a system administrator gave the set-uid bit, and looks whether it ran as root.
func setUID(v victim) finding {
	if v.SetUID == "" {
		return lacking("only root can plant a set-uid program")
	}
	if os.Geteuid() == 0 {
		return lacking("already root, which a set-uid program adds nothing to")
	}
	cmd := exec.Command(v.SetUID)
	cmd.Env = []string{role + "=uid"}
	out, err := cmd.Output()
	if err != nil {
		return stopped("run it: %v", err)
	}
	if strings.TrimSpace(string(out)) == "0" {
		return works("ran a program as root")
	}
	return stopped("it runs as %s", out)
}

func capabilities(victim) finding {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil { // without /proc
		var caps [2]unix.CapUserData
		if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]); err != nil {
			return lacking("capget: %v", err)
		}
		if caps[0].Effective|caps[1].Effective|caps[0].Permitted|caps[1].Permitted != 0 {
			return works("%+v", caps)
		}
		return stopped("none")
	}
	for line := range strings.Lines(string(b)) {
		name, set, _ := strings.Cut(line, ":\t")
		if strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(set, "0\n") != "" {
			return works("%s", strings.TrimSpace(line))
		}
	}
	return stopped("none")
}

func unlessErrno(no unix.Errno, what string) finding { return unless(orNil(no), what) }

// orNil is the error of a raw call.
func orNil(no unix.Errno) error {
	if no == 0 {
		return nil
	}
	return no
}
