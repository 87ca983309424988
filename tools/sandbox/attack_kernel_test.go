//go:build linux

package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks are doors of the kernel that no build and no test needs.
func kernelAttacks() []attack {
	return []attack{
		{name: "io_uring", do: func(victim) finding {
			params := make([]byte, 120)
			_, _, no := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
			return unlessErrno(no, "io_uring_setup")
		}},
		{name: "userfaultfd", do: func(victim) finding {
			const userModeOnly = 1
			_, _, no := unix.Syscall(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC, 0, 0)
			return unlessErrno(no, "userfaultfd")
		}},
		{name: "bpf", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			attr := make([]byte, 72) // BPF_MAP_CREATE: type array, key, value, entries
			for i, n := range []uint32{2, 4, 4, 1} {
				binary.NativeEndian.PutUint32(attr[4*i:], n)
			}
			_, _, no := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
			return unlessErrno(no, "bpf")
		}},
		{name: "perf", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			_, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			return unless(err, "perf_event_open")
		}},
		{name: "keyctl", do: func(victim) finding {
			return first(
				func() finding {
					_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
					return unless(err, "find the session's keys")
				},
				func() finding {
					_, err := unix.AddKey("user", "muster-attack", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
					return unless(err, "add a key")
				},
			)
		}},
		{name: "personality", do: func(victim) finding {
			_, _, no := unix.Syscall(unix.SYS_PERSONALITY, 0x0040000|0x0400000, 0, 0) // no random addresses, readable is executable
			return unlessErrno(no, "turn off address randomisation")
		}},
		{name: "fanotify", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			_, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
			return unless(err, "fanotify_init")
		}},
		{name: "sysv_shm", do: func(v victim) finding {
			b, err := unix.SysvShmAttach(v.Shm, 0, unix.SHM_RDONLY)
			return secretIn(b, err, "attach host memory")
		}},
		{name: "syslog", needs: as(unix.CAP_SYSLOG), do: func(victim) finding {
			const readAll = 3
			b := make([]byte, 16)
			_, err := unix.Klogctl(readAll, b)
			return unless(err, "read the kernel's log")
		}},
		{name: "open_disk", needs: as(unix.CAP_SYS_RAWIO), maybe: "a machine may keep its disk from root", do: func(v victim) finding {
			if v.Disk == "" {
				return lacking("this machine shows no disk")
			}
			return openAndClose(v.Disk, os.O_RDONLY)
		}},
		{name: "devices", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			var ways []func() finding
			for _, name := range []string{"kmsg", "kvm", "fuse", "net/tun", "vsock", "vhost-vsock", "uinput", "btrfs-control", "userfaultfd"} {
				ways = append(ways, func() finding { return openAndClose("/dev/"+name, os.O_RDWR) })
			}
			return first(ways...)
		}},
		{name: "userns_bare", do: func(v victim) finding { return runProgram(v, program(native, unshareUser(272))) }},
		{name: "int80", do: func(v victim) finding { return runProgram(v, program(int80, unshareUser(310))) }},
		{name: "ia32_program", do: func(v victim) finding { return runProgram(v, program(ia32, unshareUser(310))) }},
		{name: "x32", never: "kernels are built without it, or boot with it off", do: func(v victim) finding {
			return runProgram(v, program(native, unshareUser(0x40000000|272)))
		}},
	}
}

func unshareUser(number int) []sysCall { return []sysCall{{number, []int64{unix.CLONE_NEWUSER}}} }

// namespaceAttacks want powers in a world of their own, or the way into another's.
func namespaceAttacks() []attack {
	return []attack{
		{name: "userns", do: func(v victim) finding { return startWith(v, &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) }},
		{name: "userns_clone", do: func(victim) finding {
			return cloned(func() (uintptr, syscall.Errno) { return rawClone(unix.CLONE_NEWUSER) }, "clone")
		}},
		{name: "userns_clone3", do: func(victim) finding {
			return cloned(func() (uintptr, syscall.Errno) { return rawClone3(unix.CLONE_NEWUSER) }, "clone3")
		}},
		{name: "userns_mounts", maybe: "the program lies where a new user may not go", do: func(v victim) finding {
			return startWith(v, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}})
		}},
		{name: "namespaces", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			return startWith(v, &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS})
		}},
		{name: "setns", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			runtime.LockOSThread()
			return first(
				func() finding { return enter("/proc/"+itoa(v.Worker.PID)+"/ns/net", unix.CLONE_NEWNET) },
				func() finding { return enter("/proc/"+itoa(v.Bystander.PID)+"/ns/net", unix.CLONE_NEWNET) },
				func() finding { return enter("/proc/1/ns/ipc", unix.CLONE_NEWIPC) },
				func() finding { return enter("/proc/"+itoa(v.Parent)+"/ns/uts", unix.CLONE_NEWUTS) },
			)
		}},
		{name: "setns_pidfd", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			runtime.LockOSThread()
			fd, err := unix.PidfdOpen(v.Worker.PID, 0)
			if err != nil {
				return stopped("pidfd_open: %v", err)
			}
			return unless(unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWIPC), "setns by pidfd")
		}},
		{name: "chroot", needs: as(unix.CAP_SYS_CHROOT), do: func(v victim) finding { return unless(unix.Chroot(v.Workspace), "chroot") }},
		// A file system that does not exist and a folder that is no mount: who may mount is told so.
		{name: "mount", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			return permitted(unix.Mount("none", v.Workspace, "muster-none", 0, ""), "mount", unix.ENODEV)
		}},
		{name: "mount_new", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			return first(
				func() finding {
					_, err := unix.Fsopen("muster-none", unix.FSOPEN_CLOEXEC)
					return permitted(err, "fsopen", unix.ENODEV)
				},
				func() finding {
					_, err := unix.OpenTree(unix.AT_FDCWD, v.Workspace, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
					return unless(err, "open_tree")
				},
			)
		}},
		{name: "umount", needs: as(unix.CAP_SYS_ADMIN), do: func(v victim) finding {
			return permitted(unix.Unmount(v.Workspace, 0), "umount", unix.EINVAL)
		}},
		{name: "mknod_null", needs: as(unix.CAP_MKNOD), do: func(v victim) finding { return mknod(v, unix.S_IFCHR, int(unix.Mkdev(1, 3))) }},
		{name: "mknod_disk", needs: as(unix.CAP_MKNOD), do: func(v victim) finding {
			if v.DiskNumber == 0 {
				return lacking("this machine shows no disk")
			}
			return mknod(v, unix.S_IFBLK, v.DiskNumber)
		}},
	}
}

// startWith runs a program with attributes.
func startWith(v victim, attr *syscall.SysProcAttr) finding {
	cmd := exec.Command(v.Exe)
	cmd.Env = []string{role + "=nothing"}
	cmd.SysProcAttr = attr
	return unless(cmd.Run(), "run a program in new namespaces")
}

func enter(name string, kind int) finding {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stopped("open %s: %v", name, err)
	}
	defer unix.Close(fd)
	return unless(unix.Setns(fd, kind), "setns")
}

func mknod(v victim, kind uint32, dev int) finding {
	name := v.Workspace + "/node"
	if err := unix.Mknod(name, kind|0o600, dev); err != nil {
		return unless(err, "mknod")
	}
	defer os.Remove(name)
	opened := openAndClose(name, os.O_RDONLY)
	return works("made a device node; %s", opened.Text)
}

// cloned is the finding on a child that a raw call made, which ends at once.
func cloned(clone func() (uintptr, syscall.Errno), what string) finding {
	pid, no := clone()
	if no == 0 {
		_, _ = unix.Wait4(int(pid), nil, 0, nil)
	}
	return unlessErrno(no, what)
}

// rawClone makes a child, as fork does, that does nothing but end.
//
//go:norace
func rawClone(flags uintptr) (uintptr, syscall.Errno) {
	pid, _, no := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && no == 0 {
		for {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return pid, no
}

// rawClone3 does the same by the newer call, whose flags a filter cannot see.
//
//go:norace
func rawClone3(flags uint64) (uintptr, syscall.Errno) {
	args := [11]uint64{0: flags, 4: uint64(syscall.SIGCHLD)} // struct clone_args
	pid, _, no := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), unsafe.Sizeof(args), 0)
	if pid == 0 && no == 0 {
		for {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return pid, no
}

// adminAttacks want to run the machine. Each either sets what is set already or is refused, past the check of rights, for its arguments.
func adminAttacks() []attack {
	return []attack{
		{name: "sysctl", needs: as(unix.CAP_DAC_OVERRIDE), do: func(victim) finding {
			const name = "/proc/sys/kernel/core_pattern"
			now, err := os.ReadFile(name)
			if err != nil {
				return stopped("%v", err)
			}
			return unless(os.WriteFile(name, now, 0), "write a sysctl")
		}},
		{name: "sysrq", needs: as(unix.CAP_DAC_OVERRIDE), do: func(victim) finding { return openAndClose("/proc/sysrq-trigger", os.O_WRONLY) }},
		{name: "sysfs", needs: as(unix.CAP_DAC_OVERRIDE), do: func(victim) finding {
			return first(
				func() finding { return openAndClose("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY) },
				func() finding { return openAndClose("/sys/power/state", os.O_WRONLY) },
				func() finding { return openAndClose("/sys/kernel/uevent_helper", os.O_WRONLY) },
				func() finding { return openAndClose("/sys/kernel/profiling", os.O_WRONLY) },
			)
		}},
		{name: "cgroup", needs: as(unix.CAP_DAC_OVERRIDE), do: func(victim) finding {
			var ways []func() finding
			for _, name := range []string{"", "unified/", "memory/", "pids/"} {
				ways = append(ways, func() finding { return openAndClose("/sys/fs/cgroup/"+name+"cgroup.procs", os.O_WRONLY) })
			}
			return first(ways...)
		}},
		{name: "hostname", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			now, err := os.Hostname()
			if err != nil {
				return lacking("%v", err)
			}
			return unless(unix.Sethostname([]byte(now)), "sethostname")
		}},
		{name: "settime", needs: as(unix.CAP_SYS_TIME), do: func(victim) finding {
			now := unix.NsecToTimespec(time.Now().UnixNano())
			return unless(unix.ClockSettime(unix.CLOCK_REALTIME, &now), "set the clock")
		}},
		{name: "adjtime", needs: as(unix.CAP_SYS_TIME), do: func(victim) finding {
			var t unix.Timex
			if _, err := unix.Adjtimex(&t); err != nil {
				return stopped("adjtimex: %v", err)
			}
			t.Modes = unix.ADJ_TICK
			_, err := unix.Adjtimex(&t)
			return unless(err, "set the clock's tick")
		}},
		{name: "reboot", needs: as(unix.CAP_SYS_BOOT), do: func(victim) finding { // wrong magic numbers
			_, _, no := unix.Syscall6(unix.SYS_REBOOT, 0, 0, 0, 0, 0, 0)
			return permitted(orNil(no), "reboot", unix.EINVAL)
		}},
		{name: "kexec", needs: as(unix.CAP_SYS_BOOT), do: func(victim) finding { // more segments than there may be
			_, _, no := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 1<<20, 0, 0, 0, 0)
			return first(
				func() finding { return permitted(orNil(no), "kexec_load", unix.EINVAL) },
				func() finding {
					_, _, no := unix.Syscall6(unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, ^uintptr(0), 0)
					return permitted(orNil(no), "kexec_file_load", unix.EINVAL, unix.EBADF)
				},
			)
		}},
		{name: "modules", needs: as(unix.CAP_SYS_MODULE), do: func(victim) finding {
			return first(
				func() finding { return permitted(unix.FinitModule(-1, "", 0), "finit_module", unix.EBADF) },
				func() finding { return permitted(unix.InitModule([]byte("x"), ""), "init_module", unix.ENOEXEC) },
				func() finding {
					return permitted(unix.DeleteModule("muster_none", unix.O_NONBLOCK), "delete_module", unix.ENOENT)
				},
			)
		}},
	}
}

// accountAttacks want to change what the machine keeps.
func accountAttacks() []attack {
	return []attack{
		{name: "swap", needs: as(unix.CAP_SYS_ADMIN), do: func(victim) finding {
			name, err := unix.BytePtrFromString("/no/such/swap")
			if err != nil {
				return lacking("%v", err)
			}
			_, _, no := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0)
			return permitted(orNil(no), "swapon", unix.ENOENT)
		}},
		{name: "acct", needs: as(unix.CAP_SYS_PACCT), do: func(victim) finding {
			err := unix.Acct("/no/such/file")
			if errors.Is(err, unix.ENOSYS) {
				return lacking("%v", err)
			}
			return permitted(err, "acct", unix.ENOENT)
		}},
	}
}
