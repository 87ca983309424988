//go:build linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fileAttacks reach for files outside of the workspace.
func fileAttacks() []attack {
	return []attack{
		{name: "write_outside", do: func(v victim) finding { return plant(v.Home + "/planted") }},
		{name: "write_ssh", do: func(v victim) finding {
			f, err := os.OpenFile(v.Home+"/.ssh/authorized_keys", os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				defer f.Close()
			}
			return unless(err, "open authorized_keys to append")
		}},
		{name: "read_outside", do: func(v victim) finding { return readSecret(v.Home + "/secret") }},
		{name: "read_roundabout", do: func(v victim) finding {
			rel, err := filepath.Rel(v.Workspace, v.Home+"/secret")
			if err != nil {
				return lacking("%v", err)
			}
			if err := os.Chdir(v.Workspace); err != nil {
				return lacking("enter the workspace: %v", err)
			}
			_ = os.Symlink(v.Home, v.Workspace+"/way-out")
			defer os.Remove(v.Workspace + "/way-out")
			return first(
				func() finding { return readSecret(rel) },
				func() finding { return readSecret(v.Workspace + "/way-out/secret") },
				func() finding { return readSecret("/proc/self/cwd/" + rel) },
				func() finding { return readSecret("/proc/self/root" + v.Home + "/secret") },
				func() finding { return readSecret("/proc/thread-self/root" + v.Home + "/secret") },
			)
		}},
		{name: "list_outside", do: func(v victim) finding {
			names, err := os.ReadDir(v.Home)
			if err == nil && len(names) == 0 {
				return stopped("the folder is empty in here")
			}
			return unless(err, "list the home")
		}},
		{name: "chdir_outside", do: func(v victim) finding { return unless(unix.Chdir(v.Home), "enter the home") }},
		{name: "stat_outside", do: func(v victim) finding {
			info, err := os.Stat(v.Home + "/secret")
			if err == nil {
				return works("it has %d bytes", info.Size())
			}
			return unless(err, "stat")
		}},
		{name: "exec_outside", do: func(v victim) finding {
			return unless(exec.Command(v.Home+"/tool").Run(), "run a program in the home")
		}},
		{name: "watch_outside", do: func(v victim) finding {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return lacking("inotify: %v", err)
			}
			_, err = unix.InotifyAddWatch(fd, v.Home, unix.IN_ACCESS)
			return unless(err, "watch the home")
		}},
		{name: "mkdir_outside", do: func(v victim) finding {
			err := os.Mkdir(v.Home+"/folder", 0o700)
			defer os.Remove(v.Home + "/folder")
			return unless(err, "make a folder in the home")
		}},
		{name: "symlink_outside", do: func(v victim) finding {
			err := os.Symlink("x", v.Home+"/link")
			defer os.Remove(v.Home + "/link")
			return unless(err, "make a symlink in the home")
		}},
		{name: "unlink_outside", do: func(v victim) finding {
			err := os.Remove(v.Home + "/disposable")
			if err == nil {
				_ = os.WriteFile(v.Home+"/disposable", []byte("x"), 0o600)
			}
			return unless(err, "remove a file in the home")
		}},
		{name: "truncate_outside", do: func(v victim) finding {
			return unless(os.Truncate(v.Home+"/disposable", 1), "truncate a file in the home")
		}},
	}
}

// mixedFileAttacks change what files are, or carry them over the border.
func mixedFileAttacks() []attack {
	return []attack{
		{name: "chmod_outside", do: func(v victim) finding {
			err := os.Chmod(v.Home+"/disposable", 0o666)
			if err == nil {
				_ = os.Chmod(v.Home+"/disposable", 0o600)
			}
			return unless(err, "open a file in the home to everybody")
		}},
		{name: "chown_outside", do: func(v victim) finding {
			return unless(os.Chown(v.Home+"/disposable", os.Getuid(), os.Getgid()), "change the owner of a file in the home")
		}},
		{name: "utime_outside", do: func(v victim) finding {
			then := time.Unix(1_000_000_000, 0)
			return unless(os.Chtimes(v.Home+"/disposable", then, then), "change the time of a file in the home")
		}},
		{name: "xattr_outside", do: func(v victim) finding {
			err := unix.Setxattr(v.Home+"/disposable", "user.muster", []byte("x"), 0)
			_ = unix.Removexattr(v.Home+"/disposable", "user.muster")
			return unless(err, "set an attribute of a file in the home")
		}},
		{name: "hardlink_in", do: func(v victim) finding {
			err := os.Link(v.Home+"/secret", v.Workspace+"/stolen")
			defer os.Remove(v.Workspace + "/stolen")
			return unless(err, "link a file of the home into the workspace")
		}},
		{name: "rename_in", do: func(v victim) finding {
			err := os.Rename(v.Home+"/disposable", v.Workspace+"/taken")
			if err == nil {
				err = os.Rename(v.Workspace+"/taken", v.Home+"/disposable")
			}
			return unless(err, "move a file of the home into the workspace and back")
		}},
		{name: "rename_out", do: func(v victim) finding {
			if err := os.WriteFile(v.Workspace+"/own", []byte("x"), 0o600); err != nil {
				return lacking("write in the workspace: %v", err)
			}
			defer os.Remove(v.Workspace + "/own")
			err := os.Rename(v.Workspace+"/own", v.Home+"/moved")
			defer os.Remove(v.Home + "/moved")
			return unless(err, "move a file of the workspace into the home")
		}},
		{name: "tmp_shared", do: func(v victim) finding { return readSecret(v.HostTmp) }},
		{name: "shm_shared", do: func(v victim) finding {
			if v.HostShm == "" {
				return lacking("the worker could write no file in /dev/shm")
			}
			return readSecret(v.HostShm)
		}},
		{name: "read_shadow", needs: as(unix.CAP_DAC_READ_SEARCH), do: func(victim) finding { return openAndClose("/etc/shadow", os.O_RDONLY) }},
		{name: "write_etc", needs: as(unix.CAP_DAC_OVERRIDE), do: func(victim) finding { return openAndClose("/etc/passwd", os.O_WRONLY) }},
		{name: "write_programs", do: func(v victim) finding { return openAndClose(idleOf(v.Exe), os.O_WRONLY) }},
		{name: "exe_worker", needs: as(unix.CAP_SYS_PTRACE), do: func(v victim) finding { return overwriteExe(v, "/proc/"+itoa(v.Worker.PID)+"/exe") }},
		{name: "exe_bystander", do: func(v victim) finding { return overwriteExe(v, "/proc/"+itoa(v.Bystander.PID)+"/exe") }},
		{name: "exe_init", needs: as(unix.CAP_SYS_PTRACE), do: func(v victim) finding {
			return first(
				func() finding { return overwriteExe(v, "/proc/1/exe") },
				func() finding { return overwriteExe(v, "/proc/"+itoa(v.Parent)+"/exe") },
			)
		}},
		{name: "open_by_handle", needs: as(unix.CAP_DAC_READ_SEARCH), do: openByHandle},
		// These two work everywhere, on purpose: what a command leaves in its workspace is met by the file tools, and tested there.
		{name: "symlink_plant", do: func(v victim) finding {
			err := os.Symlink(v.Home+"/secret", v.Workspace+"/planted")
			defer os.Remove(v.Workspace + "/planted")
			return unless(err, "plant a symlink to the secret in the workspace")
		}},
		{name: "fifo_plant", do: func(v victim) finding {
			err := unix.Mkfifo(v.Workspace+"/pipe", 0o600)
			defer os.Remove(v.Workspace + "/pipe")
			return unless(err, "plant a FIFO in the workspace")
		}},
	}
}

func plant(name string) finding {
	err := os.WriteFile(name, []byte("planted"), 0o600)
	defer os.Remove(name)
	return unless(err, "write "+name)
}

func readSecret(name string) finding {
	b, err := os.ReadFile(name)
	return secretIn(b, err, "read "+name)
}

// openAndClose opens a file and touches nothing in it.
func openAndClose(name string, flag int) finding {
	f, err := os.OpenFile(name, flag|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return missing("%s is not here", name)
	}
	defer f.Close()
	return unless(err, "open "+name)
}

// idleOf is a program beside another, of the same owner, that nobody runs.
func idleOf(exe string) string { return filepath.Dir(exe) + "/idle" }

// overwriteExe opens the program of a process, where it is the test program and none of the system's.
func overwriteExe(v victim, link string) finding {
	to, err := os.Readlink(link)
	if err != nil {
		return stopped("read the link %s: %v", link, err)
	}
	if filepath.Base(strings.TrimSuffix(to, " (deleted)")) != filepath.Base(v.Exe) {
		return stopped("%s is %s, not a program of ours", link, to)
	}
	f, err := os.OpenFile(link, os.O_WRONLY, 0)
	if err == nil {
		defer f.Close()
	}
	if errors.Is(err, unix.ETXTBSY) { // while it runs; whether it could be written then, one that nobody runs tells
		err = unix.Access(link, unix.W_OK)
		if idle := openAndClose(idleOf(v.Exe), os.O_WRONLY); err == nil && idle.Outcome != worked {
			return idle
		}
	}
	return unless(err, "open "+link+" to write")
}

// openByHandle reaches a file past all folders, by its number on the disk.
func openByHandle(v victim) finding {
	if len(v.Handle) == 0 {
		return lacking("this file system gives no handles")
	}
	ws, err := unix.Open(v.Workspace, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return lacking("open the workspace: %v", err)
	}
	fd, err := unix.OpenByHandleAt(ws, unix.NewFileHandle(v.HandleType, v.Handle), unix.O_RDONLY)
	if err != nil {
		return stopped("open_by_handle_at: %v", err)
	}
	var b [100]byte
	n, err := unix.Read(fd, b[:])
	return secretIn(b[:max(n, 0)], err, "read by handle")
}
